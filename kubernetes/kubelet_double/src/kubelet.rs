//! The kubelet as a test or a simulation holds it.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use kubelet::KUBELET_SOCKET;
use kubelet::http2::Closer;
use tokio::sync::{Mutex as AsyncMutex, watch};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::allocation::{allocate_pod, start_container};
use crate::faults::Faults;
use crate::host::Host;
use crate::manager::{Checkpoint, Cleanup, Iteration, Manager, Platform, Release, ResourceView};
use crate::pods::{Admission, ContainerKind, ContainerView, PodRequest, Refused, Verdict};
use crate::process::{Process, Shared, lock};

/// How often a wait looks again although nothing changed: time alone removes resources.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// Which kubelet it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Options {
    /// Which releases' behaviour is meant.
    pub release: Release,
    /// What it removes when it starts.
    pub cleanup: Cleanup,
    /// The node's operating system.
    pub platform: Platform,
    /// The order in which it meets the members of sets.
    pub iteration: Iteration,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            release: Release::V1_37,
            cleanup: Cleanup::default(),
            platform: Platform::default(),
            iteration: Iteration::default(),
        }
    }
}

/// A kubelet. Dropping it kills it.
pub struct KubeletDouble<T: Host> {
    host: T,
    directory: PathBuf,
    options: Options,
    shared: Shared,
    life: Option<Life<T>>,
    /// What is left when the kubelet does not run.
    left: Left,
    /// Pods are admitted one after the other.
    admitting: AsyncMutex<()>,
}

struct Life<T: Host> {
    process: Arc<Process<T>>,
    closer: Closer,
    task: JoinHandle<()>,
}

impl<T: Host> Drop for Life<T> {
    fn drop(&mut self) {
        self.task.abort();
    }
}

#[derive(Default)]
struct Left {
    checkpoint: Checkpoint,
    pods: BTreeMap<String, PodRequest>,
}

impl<T: Host> KubeletDouble<T> {
    /// Starts a kubelet that listens on `kubelet.sock` in `directory`, which it makes
    /// where it is missing.
    ///
    /// # Errors
    /// The directory could not be made or cleaned, or the socket not bound.
    ///
    /// # Panics
    /// Outside a tokio runtime.
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
            life: None,
            left: Left::default(),
            admitting: AsyncMutex::default(),
        };
        kubelet.start_again()?;
        Ok(kubelet)
    }

    /// The directory with the sockets.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Starts the kubelet after [`Self::stop`] or [`Self::kill`], with what it wrote down
    /// before. Does nothing where it runs.
    ///
    /// # Errors
    /// As [`Self::start`].
    pub fn start_again(&mut self) -> io::Result<()> {
        if self.life.is_some() {
            return Ok(());
        }
        let left = std::mem::take(&mut self.left);
        let Options { release, iteration, .. } = self.options;
        let manager = Manager::new(release, iteration, left.checkpoint.clone(), left.pods.clone());
        let (host, directory) = (self.host.clone(), self.directory.clone());
        match Process::start(host, directory, self.options, manager, self.shared.clone()) {
            Ok((process, closer, life)) => {
                self.life = Some(Life { process, closer, task: tokio::spawn(life) });
                Ok(())
            }
            Err(error) => {
                self.left = left;
                Err(error)
            }
        }
    }

    /// Ends the kubelet in order: it disconnects from its plugins and removes its socket.
    pub async fn stop(&mut self) {
        let Some(mut life) = self.end() else { return };
        life.process.disconnect_all();
        life.closer.close();
        // A panic of the kubelet's own is a defect of the double and must not go unseen.
        if let Err(error) = (&mut life.task).await
            && error.is_panic()
        {
            std::panic::resume_unwind(error.into_panic());
        }
        // Gone already where somebody emptied the directory.
        let _ = self.host.remove(&self.directory.join(KUBELET_SOCKET));
    }

    /// Ends the kubelet at once. Its socket stays, with nobody listening.
    pub fn kill(&mut self) {
        drop(self.end());
    }

    /// Stops the kubelet and starts it again.
    ///
    /// # Errors
    /// As [`Self::start`].
    pub async fn restart(&mut self) -> io::Result<()> {
        self.stop().await;
        self.start_again()
    }

    fn end(&mut self) -> Option<Life<T>> {
        let life = self.life.take()?;
        self.left =
            life.process.look(|m| Left { checkpoint: m.checkpoint(), pods: m.active.clone() });
        Some(life)
    }

    /// What it does wrong from now on.
    pub fn set_faults(&self, faults: Faults) {
        *lock(&self.shared.faults) = faults;
    }

    /// How many registrations of a resource were well-formed, over all restarts.
    #[must_use]
    pub fn registrations(&self, resource: &str) -> u64 {
        lock(&self.shared.registrations).get(resource).copied().unwrap_or_default()
    }

    /// The node's resources, by name. None where the kubelet does not run.
    #[must_use]
    pub fn resources(&self) -> Vec<ResourceView> {
        self.life.as_ref().map(|l| l.process.look(Manager::resources)).unwrap_or_default()
    }

    /// Waits until the resources are as `condition` wants them, and returns them. There is
    /// no limit: wrap it in a timeout.
    pub async fn wait_for(&self, condition: impl Fn(&[ResourceView]) -> bool) -> Vec<ResourceView> {
        let mut changes = self.shared.changes.subscribe();
        loop {
            let resources = self.resources();
            if condition(&resources) {
                return resources;
            }
            // That nothing changed in time is no reason to stop waiting.
            let _ = timeout(LOOK_AGAIN, changes.changed()).await;
        }
    }

    /// Waits until each of `names` is there with the plugin's list: it has devices, or the
    /// plugin has said that there are none.
    pub async fn wait_for_lists(&self, names: &[&str]) -> Vec<ResourceView> {
        let listed = |views: &[ResourceView], name: &str| {
            views.iter().any(|view| view.name == name) && self.has_list(name)
        };
        self.wait_for(|views| names.iter().all(|name| listed(views, name))).await
    }

    fn has_list(&self, resource: &str) -> bool {
        self.life.as_ref().is_some_and(|life| life.process.look(|m| m.has_list(resource)))
    }

    /// What the scheduler would say to a pod, without sending it here.
    ///
    /// # Errors
    /// The node lacks something, in the scheduler's words.
    pub fn schedule(&self, pod: &PodRequest) -> Result<(), String> {
        let resources = self.resources();
        let running = self
            .life
            .as_ref()
            .map(|life| life.process.look(|manager| manager.active.clone()))
            .unwrap_or_default();
        for (name, count) in requests(pod) {
            let allocatable =
                resources.iter().find(|r| r.name == name).map_or(0, |r| r.allocatable);
            let used = used_by_others(&running, pod, &name);
            if count > allocatable.saturating_sub(used) {
                return Err(format!("0/1 nodes are available: 1 Insufficient {name}."));
            }
        }
        Ok(())
    }

    /// Does with a pod what a kubelet does when the scheduler has sent it one: allocates
    /// its devices and says whether it may run, and with what.
    pub async fn admit(&self, pod: PodRequest) -> Admission {
        let _one_at_a_time = self.admitting.lock().await;
        let Some(process) = self.life.as_ref().map(|life| Arc::clone(&life.process)) else {
            return refused("NodeNotReady", "the kubelet does not run".to_owned());
        };
        process.with_manager(|m| m.active.insert(pod.name.clone(), pod.clone()));
        let admission = admit(&process, &pod).await;
        if !admission.is_admitted() {
            process.with_manager(|manager| manager.active.remove(&pod.name));
        }
        admission
    }

    /// Admits a pod again that the node already had, as after a restart of the node.
    /// None where there is no such pod.
    pub async fn readmit(&self, pod: &str) -> Option<Admission> {
        let pod = self
            .life
            .as_ref()
            .and_then(|life| life.process.look(|manager| manager.active.get(pod).cloned()))?;
        Some(self.admit(pod).await)
    }

    /// Starts a container of a running pod again. The plugin is not asked what it needs:
    /// it gets what it got the first time.
    ///
    /// # Errors
    /// What the pod's events would say.
    pub async fn restart_container(
        &self,
        pod: &str,
        container: &str,
    ) -> Result<ContainerView, String> {
        let process = self.life.as_ref().map(|life| Arc::clone(&life.process));
        let process = process.ok_or("the kubelet does not run")?;
        start_container(&process, pod, container).await
    }

    /// Ends a pod. Its devices are free once the next pod wants some.
    pub fn terminate_pod(&mut self, name: &str) {
        match &self.life {
            Some(life) => {
                life.process.with_manager(|manager| manager.active.remove(name));
            }
            None => {
                self.left.pods.remove(name);
            }
        }
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
    if let Some(refused) = lacks_resources(process, pod) {
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

/// The predicates of `pkg/kubelet/lifecycle/predicate.go`, as far as they are about
/// devices. A resource that the node does not have is not looked at.
fn lacks_resources<T: Host>(process: &Arc<Process<T>>, pod: &PodRequest) -> Option<Admission> {
    let (resources, allocated, running, has_devices) = process.look(|manager| {
        let has_devices = manager.pods.contains_key(&pod.name);
        (manager.resources(), manager.allocated.clone(), manager.active.clone(), has_devices)
    });
    for (name, count) in requests(pod) {
        let Some(view) = resources.iter().find(|view| view.name == name) else { continue };
        // `sanitizeNodeAllocatable`: what pods have counts as allocatable.
        let taken = allocated.get(&name).map_or(0, std::collections::BTreeSet::len);
        let capacity = if has_devices { view.allocatable.max(taken) } else { view.allocatable };
        let used = used_by_others(&running, pod, &name);
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

/// What a pod asks of a node: its containers together, or its greediest init container
/// where that is more.
fn requests(pod: &PodRequest) -> BTreeMap<String, usize> {
    let mut together = BTreeMap::<String, usize>::new();
    let mut greediest = BTreeMap::<String, usize>::new();
    for container in &pod.containers {
        for (name, count) in &container.resources {
            let count = *count as usize;
            if container.kind == ContainerKind::Init {
                let most = greediest.entry(name.clone()).or_default();
                *most = count.max(*most);
            } else {
                *together.entry(name.clone()).or_default() += count;
            }
        }
    }
    for (name, most) in greediest {
        let count = together.entry(name).or_default();
        *count = most.max(*count);
    }
    together
}

fn used_by_others(running: &BTreeMap<String, PodRequest>, pod: &PodRequest, name: &str) -> usize {
    let others = running.values().filter(|other| other.name != pod.name);
    others.filter_map(|other| requests(other).get(name).copied()).sum()
}
