//! `kubelet`: whether the kubelet registers a resource and fetches its device list.
//!
//! The resource has no devices, so no pod can get one. Its name is always the same, because
//! a node's status keeps the name of each resource that was ever registered, with capacity 0,
//! until the kubelet restarts.

use std::borrow::Cow;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use device_plugin::status::Phase;
use device_plugin::{
    ContainerResponse, DeviceList, DevicePlugin, KUBELET_SOCKET, Readiness, Resource,
    Status as CallError, Transport as _, UnixSockets, async_trait,
};
use tokio::sync::{oneshot, watch};

use crate::finding::{Finding, millis};
use crate::step::Step;
use crate::stop::{Reason, Stop};

const RESOURCE: &str = "directx.microsoft.com/verify";

/// What to do about a kubelet that does not respond.
const HINT: &str = "check that the kubelet runs (on Windows `Get-Service kubelet`) and that \
     --device-plugin-dir, if set, is its directory, and read its log";

/// Registers the resource, waits until the kubelet has received the device list, and ends the
/// registration.
pub(super) async fn run(directory: &Path, stop: &Stop) -> anyhow::Result<Finding> {
    let socket = directory.join(KUBELET_SOCKET);
    if matches!(UnixSockets.identity(&socket), Ok(None)) {
        let missing = format!("no file {}", socket.display());
        let failed = Step::Kubelet.failed("the kubelet's socket does not exist", HINT);
        return Ok(failed.detail([missing]));
    }
    let (end, ended) = oneshot::channel::<()>();
    let shutdown = async {
        // An error means that the observer has ended.
        let _ = ended.await;
    };
    let resource = Arc::new(TemporaryResource::default());
    let plugin = DevicePlugin::new(directory, vec![resource]).with_graceful_shutdown(shutdown);
    let mut readiness = plugin.readiness();
    let serving = plugin.run();
    let observing = async {
        let finding = observe(&mut readiness, stop).await;
        drop(end);
        finding
    };
    // The registration ends, and its socket is removed, also after an interruption.
    let (served, finding) = tokio::join!(serving, observing);
    Ok(finding?.detail(served.err().map(|error| command_line::error_chain(&error))))
}

async fn observe(
    readiness: &mut watch::Receiver<Readiness>,
    stop: &Stop,
) -> Result<Finding, Reason> {
    let began = Instant::now();
    let mut registered = None;
    let mut last_error = None;
    loop {
        match stop.or(readiness.changed()).await {
            Ok(Ok(())) => {}
            Err(Reason::Interrupted) => return Err(Reason::Interrupted),
            Err(_) | Ok(Err(_)) => break,
        }
        let readiness = readiness.borrow_and_update();
        let Some(resource) = readiness.resources.first() else { continue };
        match resource.phase {
            Phase::Starting => {}
            Phase::WaitingForKubelet if resource.last_error.is_empty() => {}
            Phase::WaitingForKubelet => last_error = Some(resource.last_error.clone()),
            Phase::WaitingForOtherDaemon => {
                let daemon = &resource.last_error;
                last_error = Some(format!("waiting for another daemon: {daemon}"));
            }
            Phase::Registered => drop(registered.get_or_insert(began.elapsed())),
            Phase::Ready => {
                let listed = began.elapsed();
                let registered = registered.unwrap_or(listed);
                let what = "the kubelet registered a resource and received its device list";
                return Ok(Step::Kubelet.ok(what).measured([
                    ("registeredMs", millis(registered)),
                    ("listReceivedMs", millis(listed)),
                ]));
            }
        }
    }
    // The error itself may contain paths.
    let what = match registered {
        Some(_) => "the kubelet registered a resource, and did not fetch its device list",
        None => "the kubelet did not register a resource",
    };
    Ok(Step::Kubelet.failed(what, HINT).detail(last_error))
}

#[derive(Default)]
struct TemporaryResource {
    devices: watch::Sender<Arc<DeviceList>>,
}

#[async_trait]
impl Resource for TemporaryResource {
    fn name(&self) -> &'static str {
        RESOURCE
    }

    fn socket_prefix(&self) -> Cow<'_, str> {
        "verify".into()
    }

    fn devices(&self) -> watch::Receiver<Arc<DeviceList>> {
        self.devices.subscribe()
    }

    async fn allocate(&self, _: &[String]) -> Result<ContainerResponse, CallError> {
        Err(CallError::failed_precondition("this resource is a test and has no devices"))
    }
}
