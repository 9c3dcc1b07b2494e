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
    let (_devices, sets) = watch::channel(Some(devices));
    Reporter::new(client, false, None, None).run(sets, status).await;
}
