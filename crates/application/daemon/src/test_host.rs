//! A host and its configuration, as a test wants them to be.

use std::time::Duration;

use config::Config;
use host::{Cordons, HostSnapshot};
use tokio::sync::{mpsc, watch};

use crate::DaemonError;
use crate::configuration::ConfigReload;
use crate::node_devices::NodeSources;
use crate::readers::Cause;
use crate::readers::adapter_reader::Read;

/// What the devices of a node depend on. Nothing reads a file or uses a thread, so a test may pause
/// the clock.
pub struct TestHost {
    reads: mpsc::UnboundedSender<Result<Read, command_line::HostError>>,
    cordons: watch::Sender<Cordons>,
    configurations: mpsc::UnboundedSender<Result<Config, DaemonError>>,
}

impl TestHost {
    /// A host that was not read yet, with this configuration and these cordoned devices.
    #[must_use]
    pub fn new(active: Config, cordons: Cordons) -> (TestHost, NodeSources) {
        let (reads, read) = mpsc::unbounded_channel();
        let (configurations, updates) = mpsc::unbounded_channel();
        let (cordons, followed) = watch::channel(cordons);
        let sources = NodeSources {
            reads: read,
            cordons: Some(followed),
            configuration: ConfigReload::following(active, updates),
            ..NodeSources::none()
        };
        (TestHost { reads, cordons, configurations }, sources)
    }

    /// The host is read now, and this is what it has.
    pub fn read(&self, snapshot: HostSnapshot) {
        let read = Read { cause: Cause::Change, result: Ok(snapshot), duration: Duration::ZERO };
        // The daemon may have ended.
        let _ = self.reads.send(Ok(read));
    }

    /// This is known of the cordoned devices.
    pub fn cordon(&self, now: Cordons) {
        self.cordons.send_if_modified(|before| {
            let is_changed = *before != now;
            *before = now;
            is_changed
        });
    }

    /// The configuration was read again.
    pub fn configure(&self, configuration: Result<Config, DaemonError>) {
        // The daemon may have ended.
        let _ = self.configurations.send(configuration);
    }
}
