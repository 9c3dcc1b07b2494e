//! The program without a host: what it does for one of many simulated nodes.

use std::sync::Arc;

use cluster::Client;
use devices::DeviceSet;
use node::daemon::config_reload::ReloadStatus;
use tokio::sync::watch;

use crate::reporter::Reporter;

/// Reports devices that never change on the client's node object, until it is dropped.
pub async fn report_unchanging_devices(client: Client, devices: Arc<DeviceSet>) {
    let (_config, status) = watch::channel(ReloadStatus::default());
    let mut first = Some(devices);
    let next_set = async || match first.take() {
        Some(devices) => devices,
        None => std::future::pending().await,
    };
    Reporter::new(client, false, None).run(next_set, status).await;
}
