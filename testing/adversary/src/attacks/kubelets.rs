//! Kubelets that do not behave as kubelets.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use device_plugin::{KUBELET_SOCKET, Listener as _, Transport, UnixSockets};
use kubelet_double::{Faults, KubeletDouble, KubeletOptions, RegisterFault, StreamFault};
use tokio::io::AsyncWriteExt;
use tokio::time::{sleep, timeout};

use crate::target::{Target, block_on};

/// How long each kubelet lives.
const LIFE: Duration = Duration::from_millis(200);

/// How long one that ends every stream lives.
const LONG_LIFE: Duration = Duration::from_secs(2);

/// Text for logs and terminals.
const MESSAGE: &str = "\u{1b}[2Jno\nlevel=error \0\u{202e}";

/// One kubelet after the other.
pub(super) fn hostile(target: &Target) -> Result<u64> {
    block_on(async {
        let directory = target.node.directory();
        let mut count = 0;
        while target.goes_on(count) {
            for faults in faults() {
                let ends_streams = faults.stream == StreamFault::DropAfter(Duration::ZERO);
                let mut kubelet =
                    KubeletDouble::start(UnixSockets, &directory, KubeletOptions::default())
                        .context("cannot listen as the kubelet")?;
                kubelet.set_faults(faults);
                sleep(if ends_streams { LONG_LIFE } else { LIFE }).await;
                if count % 2 == 0 {
                    kubelet.kill();
                } else {
                    kubelet.stop().await;
                }
                count += 1;
            }
            for answer in [&b""[..], b"HTTP/1.1 400 \x1b[2J\r\n\r\n", &[0xFF; 4096]] {
                answer_with(answer, &directory).await?;
                count += 1;
            }
        }
        Ok(count)
    })
}

fn faults() -> Vec<Faults> {
    let register = [
        RegisterFault::Refuse(MESSAGE.to_owned()),
        RegisterFault::Refuse(MESSAGE.repeat(10_000)),
        RegisterFault::RefuseAfterDial(MESSAGE.to_owned()),
        RegisterFault::Hang,
        RegisterFault::None,
    ];
    let streams =
        [StreamFault::DropAfter(Duration::ZERO), StreamFault::NeverRead, StreamFault::NeverOpen];
    let register = register.map(|register| Faults { register, ..Faults::default() });
    let streams = streams.map(|stream| Faults { stream, ..Faults::default() });
    register.into_iter().chain(streams).collect()
}

/// Listens as the kubelet, and sends the same bytes to everybody.
async fn answer_with(answer: &[u8], directory: &Path) -> Result<()> {
    let socket = directory.join(KUBELET_SOCKET);
    let _ = std::fs::remove_file(&socket);
    let mut listener = UnixSockets.bind(&socket).context("cannot listen as the kubelet")?;
    let serving = async {
        loop {
            if let Ok(mut stream) = listener.accept().await {
                let _ = stream.write_all(answer).await;
            }
        }
    };
    let _ = timeout(LIFE, serving).await;
    let _ = std::fs::remove_file(&socket);
    Ok(())
}
