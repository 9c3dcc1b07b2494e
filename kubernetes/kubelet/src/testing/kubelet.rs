//! The kubelet double: the interface for tests and simulations.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::KUBELET_SOCKET;
use tokio::sync::{Mutex as AsyncMutex, watch};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::allocation::{allocate_pod, start_container};
use super::faults::Faults;
use super::host::Host;
use super::manager::{Checkpoint, Manager, ResourceView};
use super::options::Options;
use super::pods::{Admission, ContainerKind, ContainerView, PodRequest, Refused, Verdict};
use super::process::{Process, Shared, lock};
use super::run;

/// How often a wait checks its condition without a change notification. Resources expire without
/// one.
const RECHECK_INTERVAL: Duration = Duration::from_secs(1);

/// A kubelet. Dropping it kills it.
pub struct KubeletDouble<T: Host> {
    host: T,
    directory: PathBuf,
    options: Options,
    shared: Shared,
    running: Option<Running<T>>,
    /// What the kubelet saved before it stopped.
    saved: Saved,
    /// Held during an admission: pods are admitted one at a time.
    admission: AsyncMutex<()>,
}

struct Running<T: Host> {
    process: Arc<Process<T>>,
    closer: CancellationToken,
    task: JoinHandle<()>,
}

impl<T: Host> Drop for Running<T> {
    fn drop(&mut self) {
        self.task.abort();
    }
}

#[derive(Default)]
struct Saved {
    checkpoint: Checkpoint,
    pods: BTreeMap<String, PodRequest>,
}

impl<T: Host> KubeletDouble<T> {
    /// Starts a kubelet that listens on `kubelet.sock` in `directory`. It creates the directory if
    /// it does not exist.
    ///
    /// # Errors
    /// The directory cannot be created or cleaned, or the socket cannot be bound.
    ///
    /// # Panics
    /// If called outside a tokio runtime.
    pub fn start(host: T, directory: impl Into<PathBuf>, options: Options) -> io::Result<Self> {
        let mut kubelet = KubeletDouble {
            host,
            directory: directory.into(),
            options,
            shared: Shared {
                faults: Arc::default(),
                registrations: Arc::default(),
                changes: Arc::new(watch::Sender::new(0)),
            },
            running: None,
            saved: Saved::default(),
            admission: AsyncMutex::default(),
        };
        kubelet.start_again()?;
        Ok(kubelet)
    }

    /// The device plugin directory.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Starts the kubelet after [`Self::stop`] or [`Self::kill`], with the state that it saved.
    /// Does nothing if it is running.
    ///
    /// # Errors
    /// As [`Self::start`].
    pub fn start_again(&mut self) -> io::Result<()> {
        if self.running.is_some() {
            return Ok(());
        }
        let saved = std::mem::take(&mut self.saved);
        let Options { release, iteration, .. } = self.options;
        let manager =
            Manager::new(release, iteration, saved.checkpoint.clone(), saved.pods.clone());
        let (host, directory) = (self.host.clone(), self.directory.clone());
        match run::start(host, directory, self.options, manager, self.shared.clone()) {
            Ok((process, closer, serving)) => {
                self.running = Some(Running { process, closer, task: tokio::spawn(serving) });
                Ok(())
            }
            Err(error) => {
                self.saved = saved;
                Err(error)
            }
        }
    }

    /// Stops the kubelet gracefully: it disconnects from its plugins and removes its socket.
    pub async fn stop(&mut self) {
        let Some(mut running) = self.save_state() else { return };
        running.process.disconnect_all();
        running.closer.cancel();
        // A panic in the double's own code is a bug of the double and must not go unnoticed.
        if let Err(error) = (&mut running.task).await
            && error.is_panic()
        {
            std::panic::resume_unwind(error.into_panic());
        }
        // Fails if the directory was emptied in the meantime.
        let _ = self.host.remove(&self.directory.join(KUBELET_SOCKET));
    }

    /// Kills the kubelet. Its socket file stays, and no process listens on it.
    pub fn kill(&mut self) {
        drop(self.save_state());
    }

    /// Stops the kubelet and starts it again.
    ///
    /// # Errors
    /// As [`Self::start`].
    pub async fn restart(&mut self) -> io::Result<()> {
        self.stop().await;
        self.start_again()
    }

    /// Takes the running kubelet, if there is one, and keeps what it would have saved.
    fn save_state(&mut self) -> Option<Running<T>> {
        let running = self.running.take()?;
        self.saved = running.process.with_manager_silently(|m| Saved {
            checkpoint: m.checkpoint(),
            pods: m.active.clone(),
        });
        Some(running)
    }

    /// Sets the faults of the kubelet from now on.
    pub fn set_faults(&self, faults: Faults) {
        *lock(&self.shared.faults) = faults;
    }

    /// How many well-formed registrations of a resource arrived, across all restarts.
    #[must_use]
    pub fn registrations(&self, resource: &str) -> u64 {
        lock(&self.shared.registrations).get(resource).copied().unwrap_or_default()
    }

    /// The node's resources, sorted by name. Empty if the kubelet is not running.
    #[must_use]
    pub fn resources(&self) -> Vec<ResourceView> {
        self.running
            .as_ref()
            .map(|r| r.process.with_manager_silently(Manager::resources))
            .unwrap_or_default()
    }

    /// Waits until the resources fulfil `condition`, and returns them. There is no time limit: wrap
    /// the call in a timeout.
    pub async fn wait_for(&self, condition: impl Fn(&[ResourceView]) -> bool) -> Vec<ResourceView> {
        let mut changes = self.shared.changes.subscribe();
        loop {
            let resources = self.resources();
            if condition(&resources) {
                return resources;
            }
            // A timeout only means that it is time to check the condition again.
            let _ = timeout(RECHECK_INTERVAL, changes.changed()).await;
        }
    }

    /// Waits until the kubelet has received the device list of each of `names`. The list may be
    /// empty.
    pub async fn wait_for_lists(&self, names: &[&str]) -> Vec<ResourceView> {
        let listed = |views: &[ResourceView], name: &str| {
            views.iter().any(|view| view.name == name) && self.has_list(name)
        };
        self.wait_for(|views| names.iter().all(|name| listed(views, name))).await
    }

    fn has_list(&self, resource: &str) -> bool {
        self.running
            .as_ref()
            .is_some_and(|r| r.process.with_manager_silently(|m| m.has_list(resource)))
    }

    /// Checks whether the scheduler would place a pod on this node, without admitting the pod.
    ///
    /// # Errors
    /// The node does not have enough of a resource. The text is the scheduler's message.
    pub fn schedule(&self, pod: &PodRequest) -> Result<(), String> {
        let resources = self.resources();
        let active = self
            .running
            .as_ref()
            .map(|running| running.process.with_manager_silently(|manager| manager.active.clone()))
            .unwrap_or_default();
        for (name, count) in requests(pod) {
            let allocatable =
                resources.iter().find(|r| r.name == name).map_or(0, |r| r.allocatable);
            let used = used_by_others(&active, pod, &name);
            if count > allocatable.saturating_sub(used) {
                return Err(format!("0/1 nodes are available: 1 Insufficient {name}."));
            }
        }
        Ok(())
    }

    /// Admits a pod as a kubelet does when the scheduler places one on its node: allocates the
    /// devices and returns whether the pod may run, and what its containers get.
    pub async fn admit(&self, pod: PodRequest) -> Admission {
        let _one_at_a_time = self.admission.lock().await;
        let Some(process) = self.process() else {
            return refused("NodeNotReady", "kubelet is not running".to_owned());
        };
        process.with_manager(|m| m.active.insert(pod.name.clone(), pod.clone()));
        let admission = admit(&process, &pod).await;
        if !admission.is_admitted() {
            process.with_manager(|manager| manager.active.remove(&pod.name));
        }
        admission
    }

    /// Admits a pod that is already on the node again, as after a restart of the node. Returns
    /// `None` if there is no such pod.
    pub async fn readmit(&self, pod: &str) -> Option<Admission> {
        let pod =
            self.process()?.with_manager_silently(|manager| manager.active.get(pod).cloned())?;
        Some(self.admit(pod).await)
    }

    /// Restarts a container of a running pod. The kubelet does not call `Allocate` again: the
    /// container gets what it got at its first start.
    ///
    /// # Errors
    /// The message that the pod's events would show.
    pub async fn restart_container(
        &self,
        pod: &str,
        container: &str,
    ) -> Result<ContainerView, String> {
        let process = self.process().ok_or("kubelet is not running")?;
        start_container(&process, pod, container).await
    }

    /// Terminates a pod. Its devices become free when the next pod requests devices.
    pub fn terminate_pod(&mut self, name: &str) {
        match &self.running {
            Some(running) => {
                running.process.with_manager(|manager| manager.active.remove(name));
            }
            None => {
                self.saved.pods.remove(name);
            }
        }
    }

    fn process(&self) -> Option<Arc<Process<T>>> {
        self.running.as_ref().map(|running| Arc::clone(&running.process))
    }
}

async fn admit<T: Host>(process: &Arc<Process<T>>, pod: &PodRequest) -> Admission {
    // `GetPodAdmitResult` of `pkg/kubelet/cm/admission/errors.go`.
    let unexpected = |error: String| {
        refused(
            "UnexpectedAdmissionError",
            format!("Allocate failed due to {error}, which is unexpected"),
        )
    };
    if let Err(error) = allocate_pod(process, pod).await {
        return unexpected(error);
    }
    if let Some(refused) = insufficient_resources(process, pod) {
        return refused;
    }
    let mut containers = Vec::new();
    for container in &pod.containers {
        match start_container(process, &pod.name, &container.name).await {
            Ok(view) => containers.push(view),
            Err(error) => return refused("CreateContainerConfigError", error),
        }
    }
    Admission { verdict: Verdict::Admitted, containers }
}

/// The predicates of `pkg/kubelet/lifecycle/predicate.go` that concern devices. Resources that the
/// node does not have are ignored, as the kubelet does.
fn insufficient_resources<T: Host>(
    process: &Arc<Process<T>>,
    pod: &PodRequest,
) -> Option<Admission> {
    let (resources, allocated, active, has_devices) = process.with_manager_silently(|manager| {
        let has_devices = manager.pods.contains_key(&pod.name);
        (manager.resources(), manager.allocated.clone(), manager.active.clone(), has_devices)
    });
    for (name, count) in requests(pod) {
        let Some(view) = resources.iter().find(|view| view.name == name) else { continue };
        // `sanitizeNodeAllocatable`: allocated devices count as allocatable.
        let taken = allocated.get(&name).map_or(0, std::collections::BTreeSet::len);
        let capacity = if has_devices { view.allocatable.max(taken) } else { view.allocatable };
        let used = used_by_others(&active, pod, &name);
        if count > capacity.saturating_sub(used) {
            return Some(refused(
                &format!("OutOf{name}"),
                format!(
                    "Node didn't have enough resource: {name}, requested: {count}, used: {used}, \
                     capacity: {capacity}"
                ),
            ));
        }
    }
    None
}

fn refused(reason: &str, message: String) -> Admission {
    let refused = Refused { reason: reason.to_owned(), message };
    Admission { verdict: Verdict::Refused(refused), containers: Vec::new() }
}

/// What a pod requests from a node, for each resource: the sum over its containers, or the largest
/// request of an init container if that is more.
fn requests(pod: &PodRequest) -> BTreeMap<String, usize> {
    let mut sum = BTreeMap::<String, usize>::new();
    let mut init_maximum = BTreeMap::<String, usize>::new();
    for container in &pod.containers {
        for (name, count) in &container.resources {
            let count = *count as usize;
            if container.kind == ContainerKind::Init {
                let most = init_maximum.entry(name.clone()).or_default();
                *most = count.max(*most);
            } else {
                *sum.entry(name.clone()).or_default() += count;
            }
        }
    }
    for (name, most) in init_maximum {
        let count = sum.entry(name).or_default();
        *count = most.max(*count);
    }
    sum
}

fn used_by_others(active: &BTreeMap<String, PodRequest>, pod: &PodRequest, name: &str) -> usize {
    let others = active.values().filter(|other| other.name != pod.name);
    others.filter_map(|other| requests(other).get(name).copied()).sum()
}
