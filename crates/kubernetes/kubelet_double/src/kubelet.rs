//! The kubelet double: the interface for tests and simulations.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use device_plugin::KUBELET_SOCKET;
use tokio::sync::Mutex as AsyncMutex;
use tokio::time::timeout;

use crate::allocation::{allocate, create_container};
use crate::manager::{ResourceView, SavedState};
use crate::memory::KubeletHost;
use crate::options::{Faults, KubeletOptions, KubeletPlatform};
use crate::pods::{ContainerView, PodRequest};
use crate::process::{KubeletProcess, SharedState, lock};
use crate::registration::serve;

/// How often a wait checks its condition without a change notification. Resources expire without
/// one.
const RECHECK_INTERVAL: Duration = Duration::from_secs(1);

/// A kubelet. Dropping it kills it.
pub struct KubeletDouble<T: KubeletHost> {
    host: T,
    directory: PathBuf,
    options: KubeletOptions,
    shared: SharedState,
    running: Option<Arc<KubeletProcess<T>>>,
    /// What the kubelet saved before it stopped.
    saved: SavedState,
    /// Held during an admission: pods are admitted one at a time.
    admission: AsyncMutex<()>,
}

impl<T: KubeletHost> Drop for KubeletDouble<T> {
    fn drop(&mut self) {
        self.kill();
    }
}

impl<T: KubeletHost> KubeletDouble<T> {
    /// Starts a kubelet that listens on `kubelet.sock` in `directory`. It creates the directory if
    /// it does not exist.
    ///
    /// # Errors
    /// The directory cannot be created or cleaned, or the socket cannot be bound.
    ///
    /// # Panics
    /// If called outside a tokio runtime.
    pub fn start(
        host: T,
        directory: impl Into<PathBuf>,
        options: KubeletOptions,
    ) -> io::Result<Self> {
        let mut kubelet = KubeletDouble {
            host,
            directory: directory.into(),
            options,
            shared: SharedState::default(),
            running: None,
            saved: SavedState::default(),
            admission: AsyncMutex::default(),
        };
        kubelet.start_again()?;
        Ok(kubelet)
    }

    /// Starts the kubelet after [`Self::stop`] or [`Self::kill`], with the state that it saved.
    /// Does nothing if it is running.
    ///
    /// # Errors
    /// As [`Self::start`].
    pub fn start_again(&mut self) -> io::Result<()> {
        if self.running.is_none() {
            let host = self.host.clone();
            let directory = self.directory.clone();
            let saved = self.saved.clone();
            let shared = self.shared.clone();
            host.create_directory(&directory)?;
            let (process, listener) =
                KubeletProcess::start(host, directory, self.options, saved, shared)?;
            process.spawn(serve(listener, Arc::clone(&process)));
            self.running = Some(process);
        }
        Ok(())
    }

    /// Stops the kubelet gracefully: it disconnects from its plugins and removes its socket.
    pub async fn stop(&mut self) {
        let Some(process) = self.save_state() else { return };
        process.check_tasks();
        process.disconnect_all();
        process.kill();
        // The plugins see the closed connections first, as they do when a process ends.
        tokio::task::yield_now().await;
        // The removal fails if the directory was emptied in the meantime.
        let _ = self.host.remove(&self.directory.join(KUBELET_SOCKET));
    }

    /// Kills the kubelet. Its socket file stays, and no process listens on it.
    pub fn kill(&mut self) {
        if let Some(process) = self.save_state() {
            process.kill();
        }
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
    fn save_state(&mut self) -> Option<Arc<KubeletProcess<T>>> {
        let process = self.running.take()?;
        self.saved = process.manager().saved();
        Some(process)
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
        self.running.iter().flat_map(|process| process.manager().resources()).collect()
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
        self.wait_for(|_| {
            let running = self.running.as_ref();
            names.iter().all(|name| running.is_some_and(|process| process.manager().has_list(name)))
        })
        .await
    }

    /// Checks whether the scheduler would place a pod on this node, without admitting the pod.
    ///
    /// # Errors
    /// The node does not have enough of a resource. The text is the scheduler's message.
    pub fn schedule(&self, pod: &PodRequest) -> Result<(), String> {
        let pods: BTreeMap<_, _> =
            self.running.iter().flat_map(|process| process.manager().pods.clone()).collect();
        let resources = self.resources();
        for name in pod.containers.iter().flat_map(|container| container.resources.keys()) {
            let used: u32 = pods.values().map(|pod| pod.count(name)).sum();
            let view = resources.iter().find(|resource| resource.name == *name);
            let free = view.map_or(0, |view| view.allocatable.saturating_sub(used as usize));
            if pod.count(name) as usize > free {
                return Err(format!("0/1 nodes are available: 1 Insufficient {name}."));
            }
        }
        Ok(())
    }

    /// Admits a pod as a kubelet does when the scheduler places one on its node: allocates the
    /// devices and creates all containers. Returns what the last container gets, which is the only
    /// one of most pods. [`Self::restart_container`] returns what another one gets.
    ///
    /// # Errors
    /// Why the pod may not run: the reason and the message of the real kubelet. It tries again only
    /// after a `CreateContainerConfigError`.
    pub async fn admit(&self, pod: PodRequest) -> Result<ContainerView, String> {
        let _one_at_a_time = self.admission.lock().await;
        let process = self.running()?;
        process.with_manager(|manager| manager.pods.insert(pod.name.clone(), pod.clone()));
        let admission = admit(&process, &pod).await;
        if admission.is_err() {
            process.with_manager(|manager| manager.pods.remove(&pod.name));
        }
        admission
    }

    /// Creates a container of an admitted pod again, as a kubelet does after its program ended. The
    /// plugin prepares the devices again if it requires that, and the kubelet repeats the answer of
    /// the allocation.
    ///
    /// # Errors
    /// As [`Self::admit`].
    ///
    /// # Panics
    /// If no such container was admitted.
    pub async fn restart_container(
        &self,
        pod: &str,
        container: &str,
    ) -> Result<ContainerView, String> {
        let _one_at_a_time = self.admission.lock().await;
        let process = self.running()?;
        let admitted = process.manager().pods.get(pod).cloned();
        let containers = admitted.map(|pod| pod.containers).unwrap_or_default();
        let found = containers.iter().find(|found| found.name == container);
        let container = found.expect("the container of an admitted pod");
        create_container(&process, pod, container).await.map_err(|error| create_failed(&error))
    }

    fn running(&self) -> Result<Arc<KubeletProcess<T>>, &'static str> {
        self.running.clone().ok_or("NodeNotReady: kubelet is not running")
    }

    /// Terminates a pod. Its devices become free when the next pod requests devices.
    pub fn terminate_pod(&mut self, name: &str) {
        match &self.running {
            Some(process) => process.with_manager(|manager| manager.pods.remove(name)),
            None => self.saved.pods.remove(name),
        };
    }
}

async fn admit<T: KubeletHost>(
    process: &KubeletProcess<T>,
    pod: &PodRequest,
) -> Result<ContainerView, String> {
    // On Windows, `container_manager_windows.go` allocates nothing when a pod is admitted.
    if process.options.platform == KubeletPlatform::Linux {
        for container in &pod.containers {
            allocate(process, &pod.name, container).await.map_err(|error| {
                format!(
                    "UnexpectedAdmissionError: Allocate failed due to {error}, which is unexpected"
                )
            })?;
        }
    }
    let mut last = ContainerView::default();
    for container in &pod.containers {
        last = create_container(process, &pod.name, container)
            .await
            .map_err(|error| create_failed(&error))?;
    }
    Ok(last)
}

fn create_failed(error: &str) -> String {
    format!("CreateContainerConfigError: {error}")
}
