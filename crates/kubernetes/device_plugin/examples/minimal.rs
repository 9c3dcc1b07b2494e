//! A complete device plugin: three devices that set an environment variable.
//!
//! `cargo run -p device-plugin --example minimal [DIRECTORY]`

use std::error::Error;
use std::path::PathBuf;
use std::sync::Arc;

use device_plugin::{
    AdvertisedDevice, ContainerResponse, DeviceList, DevicePlugin, Resource, Status, async_trait,
    default_device_plugin_dir,
};
use tokio::sync::watch;

struct Widgets {
    devices: watch::Sender<Arc<DeviceList>>,
}

#[async_trait]
impl Resource for Widgets {
    fn name(&self) -> &'static str {
        "example.com/widget"
    }

    fn devices(&self) -> watch::Receiver<Arc<DeviceList>> {
        self.devices.subscribe()
    }

    async fn allocate(&self, ids: &[String]) -> Result<ContainerResponse, Status> {
        let list = self.devices.borrow();
        if let Some(id) = ids.iter().find(|id| list.devices().iter().all(|d| d.id != **id)) {
            return Err(Status::not_found(format!("no device `{id}`")));
        }
        let envs = [("WIDGETS".to_owned(), ids.join(","))].into();
        Ok(ContainerResponse { envs, ..Default::default() })
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    tracing_subscriber::fmt().init();
    let directory =
        std::env::args_os().nth(1).map_or_else(default_device_plugin_dir, PathBuf::from);
    let list = DeviceList::new(["a", "b", "c"].map(AdvertisedDevice::healthy))?;
    // The plugin pushes a new list through `devices` whenever something changes.
    let devices = watch::Sender::new(Arc::new(list));
    let shutdown = async { drop(tokio::signal::ctrl_c().await) };
    DevicePlugin::new(directory, vec![Arc::new(Widgets { devices })])
        .with_graceful_shutdown(shutdown)
        .run()
        .await?;
    Ok(())
}
