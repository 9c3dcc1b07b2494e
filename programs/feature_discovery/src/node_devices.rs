//! The devices of the node, followed as the device plugin follows them.
//!
//! A new snapshot of the host, the schemas of the Host Compute Service and a changed configuration
//! each lead to the next device set.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use cli::Failure;
use config::Config;
use daemon::adapter_reader::{AdapterReader, Read, ReaderEnded};
use daemon::change_log::{self, RepeatedText};
use daemon::config_reload::{ConfigChange, ConfigReload, ReloadStatus};
use daemon::hcs_schemas::HcsSchemaReader;
use daemon::host_access::HostAccess;
use devices::{Catalog, DeviceSet, HcsSchema, HostSnapshot, Moment};
use kubelet::default_device_plugin_dir;
use tokio::sync::watch;
use tokio::time::Instant;

/// Follows the devices of the node.
pub(crate) struct NodeDevices {
    catalog: Catalog,
    device_plugin_dir: Option<PathBuf>,
    reader: AdapterReader,
    schema_reader: HcsSchemaReader,
    configuration: ConfigReload,
    /// The newest snapshot, once there is one, with the schemas.
    snapshot: Option<HostSnapshot>,
    schemas: Option<Vec<HcsSchema>>,
    failures: RepeatedText,
    origin: Instant,
    set: Option<Arc<DeviceSet>>,
}

/// Why the devices are no longer followed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NodeDevicesError {
    /// There are no more reads.
    #[error(transparent)]
    Reader(#[from] ReaderEnded),
    /// The configuration is no longer followed.
    #[error("the thread that follows the configuration panicked")]
    ConfigWatch,
}

impl From<NodeDevicesError> for Failure {
    fn from(error: NodeDevicesError) -> Failure {
        match error {
            NodeDevicesError::Reader(ReaderEnded::NotOpened(failure)) => failure,
            other => Failure::runtime(other),
        }
    }
}

impl NodeDevices {
    /// Starts to read `host`.
    ///
    /// # Errors
    /// The operating system cannot start a thread.
    pub(crate) fn start(
        config: Config,
        host: HostAccess,
        configuration: ConfigReload,
    ) -> io::Result<NodeDevices> {
        let reader = AdapterReader::start(host.open, host.kind)?;
        Ok(NodeDevices {
            catalog: Catalog::new(config.policy),
            device_plugin_dir: config.device_plugin_dir,
            reader,
            schema_reader: HcsSchemaReader::new(host.read_schemas),
            configuration,
            snapshot: None,
            schemas: None,
            failures: RepeatedText::default(),
            origin: Instant::now(),
            set: None,
        })
    }

    /// The device plugin's directory for sockets.
    pub(crate) fn device_plugin_dir(&self) -> PathBuf {
        self.device_plugin_dir.clone().unwrap_or_else(default_device_plugin_dir)
    }

    /// What becomes of the configurations.
    pub(crate) fn config_status(&self) -> watch::Receiver<ReloadStatus> {
        self.configuration.status()
    }

    /// The next device set. Nothing is lost if this is dropped before it completes.
    pub(crate) async fn next(&mut self) -> Result<Arc<DeviceSet>, NodeDevicesError> {
        loop {
            let deadline = self.set.as_ref().and_then(|set| set.deadline());
            let origin = self.origin;
            let grace_expired = async {
                match deadline {
                    Some(Moment(at)) => tokio::time::sleep_until(origin + at).await,
                    None => std::future::pending().await,
                }
            };
            let set = tokio::select! {
                read = self.reader.next() => self.apply_read(read?),
                schemas = self.schema_reader.next() => self.apply_schemas(schemas),
                change = self.configuration.next() => self.apply_configuration(change)?,
                () = grace_expired => self.review(),
            };
            if let Some(set) = set {
                return Ok(set);
            }
        }
    }

    /// After a failed read the current devices stay.
    fn apply_read(&mut self, read: Box<Read>) -> Option<Arc<DeviceSet>> {
        let mut snapshot = match read.result {
            Ok(snapshot) => snapshot,
            Err(error) => {
                let error = cli::error_chain(error.as_ref());
                if self.failures.is_due(&error) {
                    change_log::log_read_failure(self.reader.known_devices(), &error);
                }
                return None;
            }
        };
        self.failures = RepeatedText::default();
        let known = self.snapshot.as_ref().map_or(&[][..], |snapshot| &snapshot.warnings);
        change_log::log_adapter_warnings(known, &snapshot.warnings);
        if let Some(schemas) = &self.schemas {
            snapshot.host.hcs_schemas.clone_from(schemas);
        }
        self.snapshot = Some(snapshot);
        self.advance()
    }

    fn apply_schemas(&mut self, schemas: Vec<HcsSchema>) -> Option<Arc<DeviceSet>> {
        if let Some(snapshot) = &mut self.snapshot {
            snapshot.host.hcs_schemas.clone_from(&schemas);
        }
        self.schemas = Some(schemas);
        self.advance()
    }

    fn apply_configuration(
        &mut self,
        change: ConfigChange,
    ) -> Result<Option<Arc<DeviceSet>>, NodeDevicesError> {
        let config = match change {
            ConfigChange::Valid(config) => config,
            ConfigChange::Status => return Ok(None),
            ConfigChange::Ended => return Err(NodeDevicesError::ConfigWatch),
        };
        self.catalog = Catalog::new(config.policy.clone());
        self.configuration.applied(*config);
        let Some(snapshot) = &self.snapshot else { return Ok(None) };
        let offer = self.catalog.offer(snapshot);
        let set = match &self.set {
            Some(before) => before.reconfigured(offer),
            None => DeviceSet::next(None, offer, self.now()),
        };
        Ok(Some(self.publish(set)))
    }

    /// The set that follows from the newest snapshot and the time, if there is a snapshot.
    fn advance(&mut self) -> Option<Arc<DeviceSet>> {
        let offer = self.catalog.offer(self.snapshot.as_ref()?);
        let set = DeviceSet::next(self.set.as_deref(), offer, self.now());
        Some(self.publish(set))
    }

    /// The set without the removed devices whose grace time has expired. Whether a pod holds one
    /// does not matter here.
    fn review(&mut self) -> Option<Arc<DeviceSet>> {
        let set = self.set.as_ref()?.reviewed(None, self.now());
        Some(self.publish(set))
    }

    fn publish(&mut self, set: DeviceSet) -> Arc<DeviceSet> {
        change_log::log_changes(self.set.as_deref(), &set);
        let set = Arc::new(set);
        self.set = Some(Arc::clone(&set));
        set
    }

    fn now(&self) -> Moment {
        Moment(self.origin.elapsed())
    }
}
