//! A device plugin whose devices can break, with a readiness probe.
//!
//! Every file of a folder is a device, which is healthy while the file is empty. A probe sends an
//! HTTP request to an address. The answer is 200 while a kubelet has the devices, and 503
//! otherwise.
//!
//! `cargo run -p device-plugin --example health FOLDER ADDRESS [DIRECTORY]`

use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use std::{env, fs, io};

use device_plugin::{
    AdvertisedDevice, ContainerResponse, DeviceList, DevicePlugin, DeviceSpec, Readiness, Resource,
    Status, async_trait, default_device_plugin_dir,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

struct Gadgets {
    folder: PathBuf,
    devices: watch::Receiver<Arc<DeviceList>>,
}

#[async_trait]
impl Resource for Gadgets {
    fn name(&self) -> &'static str {
        "example.com/gadget"
    }

    fn devices(&self) -> watch::Receiver<Arc<DeviceList>> {
        self.devices.clone()
    }

    async fn allocate(&self, ids: &[String]) -> Result<ContainerResponse, Status> {
        let mut response = ContainerResponse::default();
        for id in ids {
            // The newest list may not have reached the kubelet yet.
            let path = self.folder.join(id);
            if !tokio::fs::metadata(&path).await.is_ok_and(|file| file.len() == 0) {
                return Err(Status::failed_precondition(format!("device `{id}` is broken")));
            }
            response.devices.push(DeviceSpec {
                host_path: path.display().to_string(),
                container_path: format!("/dev/gadgets/{id}"),
                permissions: "r".to_owned(),
            });
        }
        Ok(response)
    }
}

fn read(folder: &Path) -> Result<DeviceList, Box<dyn Error>> {
    let mut devices = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let mut device = AdvertisedDevice::healthy(entry.file_name().to_string_lossy());
        device.healthy = entry.metadata()?.len() == 0;
        devices.push(device);
    }
    Ok(DeviceList::new(devices)?)
}

/// Pushes a new list whenever the folder changes, until nobody needs it.
async fn follow(folder: PathBuf, devices: watch::Sender<Arc<DeviceList>>) {
    while !devices.is_closed() {
        sleep(Duration::from_millis(200)).await;
        match read(&folder) {
            Ok(list) => {
                devices.send_if_modified(|known| {
                    let is_new = **known != list;
                    *known = Arc::new(list);
                    is_new
                });
            }
            Err(error) => tracing::warn!(%error, "cannot read the devices"),
        }
    }
}

/// Answers probes until the listener fails.
async fn probe(listener: TcpListener, readiness: watch::Receiver<Readiness>) -> io::Result<()> {
    loop {
        let (mut connection, _) = listener.accept().await?;
        let is_ready = readiness.borrow().is_ready();
        let status = if is_ready { "200 OK" } else { "503 Service Unavailable" };
        let answer = format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
        // The answer is the same for every request, and a client that goes away is not an error.
        let _ = timeout(Duration::from_secs(1), connection.read(&mut [0; 1024])).await;
        let _ = connection.write_all(answer.as_bytes()).await;
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    tracing_subscriber::fmt().init();
    let mut arguments = env::args_os().skip(1);
    let (Some(folder), Some(address)) = (arguments.next(), arguments.next()) else {
        return Err("usage: health FOLDER ADDRESS [DIRECTORY]".into());
    };
    let folder = PathBuf::from(folder);
    let listener = TcpListener::bind(address.to_string_lossy().as_ref()).await?;
    let directory = arguments.next().map_or_else(default_device_plugin_dir, PathBuf::from);
    let (sender, devices) = watch::channel(Arc::new(read(&folder)?));
    let gadgets = Arc::new(Gadgets { folder: folder.clone(), devices });
    let plugin = DevicePlugin::new(directory, vec![gadgets])
        .with_graceful_shutdown(async { drop(tokio::signal::ctrl_c().await) });
    let readiness = plugin.readiness();
    tokio::select! {
        ended = plugin.run() => ended?,
        ended = probe(listener, readiness) => ended?,
        () = follow(folder, sender) => {}
    }
    Ok(())
}
