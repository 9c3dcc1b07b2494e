//! What the devices of a node depend on: the host, the node's annotation and the configuration.

use host::Cordons;
use tokio::sync::{mpsc, watch};

use process::ProcessError;

use crate::DaemonError;
use crate::configuration::ConfigReload;
use crate::launcher::NodeLauncher;
use crate::readers::HostAccess;
use crate::readers::adapter_reader::{self, Activity, Reads};
use crate::readers::kernel_comparison::KernelComparison;
use crate::readers::nvidia::NvidiaReader;
use plugin_status::cordon_file;

/// What [`NodeDevices`](crate::node_devices::NodeDevices) follows, and what it provides on the
/// node.
pub struct NodeSources {
    pub(crate) reads: Reads,
    /// What the reader of the adapters is doing.
    pub(crate) activity: Activity,
    pub(crate) nvidia_reader: NvidiaReader,
    pub(crate) kernel_comparison: KernelComparison,
    /// The devices that the node's annotation takes out of service, if they are followed.
    pub(crate) cordons: Option<watch::Receiver<Cordons>>,
    /// The files of `directx-visible`.
    pub(crate) launcher: NodeLauncher,
    pub(crate) configuration: ConfigReload,
}

impl NodeSources {
    /// Starts to read `host`, for a program that provides nothing.
    ///
    /// # Errors
    /// The operating system refuses a thread.
    pub fn start(
        host: HostAccess,
        configuration: ConfigReload,
    ) -> Result<NodeSources, DaemonError> {
        let (reads, activity) = adapter_reader::start(host.open, host.kind);
        let cordons = host.cordons.map(cordon_file::follow).transpose().map_err(|source| {
            ProcessError::System {
                what: "start the thread that follows the cordoned devices",
                source,
            }
        })?;
        Ok(NodeSources {
            reads,
            activity,
            nvidia_reader: NvidiaReader::new(host.read_nvidia),
            kernel_comparison: KernelComparison::new(host.compare_with_kernel),
            cordons,
            configuration,
            ..NodeSources::none()
        })
    }

    /// Nothing ever changes.
    pub(crate) fn none() -> NodeSources {
        let (_, reads) = mpsc::unbounded_channel();
        NodeSources {
            reads,
            activity: Activity::default(),
            nvidia_reader: NvidiaReader::new(None),
            kernel_comparison: KernelComparison::new(None),
            cordons: None,
            launcher: NodeLauncher::simulated(),
            configuration: ConfigReload::none(),
        }
    }
}
