//! A device plugin with two resources, whose devices belong to NUMA nodes and have CDI names.
//!
//! A container runtime looks the names up in files such as `/etc/cdi/example.yaml`. They say what
//! a container with the device needs. CDI requires Linux and Kubernetes 1.28.
//!
//! `cargo run -p device-plugin --example topology [DIRECTORY]`

use std::collections::BTreeSet;
use std::error::Error;
use std::path::PathBuf;
use std::sync::Arc;

use device_plugin::{
    AdvertisedDevice, CdiDevice, ContainerResponse, DeviceList, DeviceListError, DevicePlugin,
    DevicePluginOptions, PreferredRequest, Resource, Status, async_trait,
    default_device_plugin_dir,
};
use tokio::sync::watch;

/// The devices of one kind: `<node>-<number>`, two on each of two NUMA nodes.
struct Cards {
    resource: &'static str,
    devices: watch::Sender<Arc<DeviceList>>,
}

impl Cards {
    fn new(resource: &'static str) -> Result<Self, DeviceListError> {
        let devices = ["0-0", "0-1", "1-0", "1-1"].map(|id| {
            let mut device = AdvertisedDevice::healthy(id);
            device.numa_nodes = BTreeSet::from([node(id)]);
            device
        });
        let devices = watch::Sender::new(Arc::new(DeviceList::new(devices)?));
        Ok(Cards { resource, devices })
    }
}

fn node(id: &str) -> u32 {
    u32::from(id.starts_with('1'))
}

#[async_trait]
impl Resource for Cards {
    fn name(&self) -> &str {
        self.resource
    }

    fn devices(&self) -> watch::Receiver<Arc<DeviceList>> {
        self.devices.subscribe()
    }

    fn options(&self) -> DevicePluginOptions {
        DevicePluginOptions { get_preferred_allocation_available: true, ..Default::default() }
    }

    /// As many devices as possible of the NUMA node that has most of them. The kubelet's topology
    /// manager does the same for all resources of a container, if a policy is configured.
    async fn preferred_allocation(
        &self,
        request: PreferredRequest<'_>,
    ) -> Result<Vec<String>, Status> {
        let [first, second]: [Vec<&String>; 2] =
            [0, 1].map(|wanted| request.available.iter().filter(|id| node(id) == wanted).collect());
        let (fewer, more) =
            if first.len() < second.len() { (first, second) } else { (second, first) };
        let mut chosen = request.must_include.to_vec();
        for id in more.into_iter().chain(fewer) {
            if chosen.len() < request.size && !chosen.contains(id) {
                chosen.push(id.clone());
            }
        }
        Ok(chosen)
    }

    async fn allocate(&self, ids: &[String]) -> Result<ContainerResponse, Status> {
        let names = ids.iter().map(|id| format!("{}={id}", self.resource));
        let cdi_devices = names.map(|name| CdiDevice { name }).collect();
        Ok(ContainerResponse { cdi_devices, ..Default::default() })
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    tracing_subscriber::fmt().init();
    let directory =
        std::env::args_os().nth(1).map_or_else(default_device_plugin_dir, PathBuf::from);
    let encoders = Arc::new(Cards::new("example.com/encoder")?);
    let decoders = Arc::new(Cards::new("example.com/decoder")?);
    DevicePlugin::new(directory, vec![encoders, decoders])
        .with_graceful_shutdown(async { drop(tokio::signal::ctrl_c().await) })
        .run()
        .await?;
    Ok(())
}
