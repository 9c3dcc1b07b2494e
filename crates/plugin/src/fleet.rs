//! The fleet: the device set of the moment, kept true as the host changes.
//!
//! In come snapshots of an adapter source, which a thread of its own reads because
//! reading blocks; out goes one [`DeviceSet`], published to whoever watches, and the
//! encoded list of each resource. This is the set's only writer.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use devices::{
    AdapterSource, Catalog, DeviceSet, HostSnapshot, Moment, ResourceDevices, SourceError,
};
use kubelet::{AdvertisedDevice, DeviceList, ListTooLarge};
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

/// How long a burst of changes is let go on before the host is read: one refresh for
/// all of it. A change must reach the kubelet within 100 ms.
const BURST: Duration = Duration::from_millis(20);
/// After a failed read the host is read again, first after this time, then after
/// twice as long each time.
const RETRY_FIRST: Duration = Duration::from_secs(1);
/// The longest time between two reads of a host that cannot be read.
const RETRY_LONGEST: Duration = Duration::from_secs(60);

/// The writer of the device set.
pub(crate) struct Fleet {
    catalog: Catalog,
    snapshots: mpsc::UnboundedReceiver<Result<HostSnapshot, SourceError>>,
    snapshot: HostSnapshot,
    origin: Instant,
    published: Published,
}

/// Where the set and the lists can be watched.
#[derive(Clone)]
pub(crate) struct Published {
    sets: watch::Sender<Arc<DeviceSet>>,
    lists: Arc<[watch::Sender<Arc<DeviceList>>]>,
}

impl Published {
    /// The set of the moment.
    pub(crate) fn set(&self) -> Arc<DeviceSet> {
        self.sets.borrow().clone()
    }

    /// The list of resource number `n` as it changes.
    pub(crate) fn list(&self, n: usize) -> watch::Receiver<Arc<DeviceList>> {
        self.lists[n].subscribe()
    }
}

/// Why there is no first set.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StartError {
    /// The source cannot be read.
    #[error("this host's adapters cannot be read")]
    Source(#[source] SourceError),
    /// The source cannot be watched.
    #[error("changes of this host's adapters cannot be followed")]
    Watch(#[source] SourceError),
    /// A resource has more slots than a kubelet takes.
    #[error("resource {resource} is too large: {list}")]
    List {
        /// The resource.
        resource: String,
        /// The list.
        list: ListTooLarge,
    },
    /// The thread could not be started.
    #[error("the thread that reads adapters cannot be started")]
    Thread(#[source] std::io::Error),
}

/// The thread that reads adapters has ended, which it never should.
#[derive(Debug, thiserror::Error)]
#[error("the thread that reads adapters has ended")]
pub(crate) struct ReaderEnded;

impl Fleet {
    /// Reads the source once and publishes the first set; then its thread reads it
    /// again whenever it changes.
    pub(crate) fn start(
        catalog: Catalog,
        mut source: Box<dyn AdapterSource>,
    ) -> Result<Fleet, StartError> {
        let (wake, woken) = channel();
        source.watch(waker(wake)).map_err(StartError::Watch)?;
        let snapshot = source.snapshot().map_err(StartError::Source)?;
        let (send, snapshots) = mpsc::unbounded_channel();
        std::thread::Builder::new()
            .name("adapters".to_owned())
            .spawn(move || read_forever(source.as_mut(), &woken, &send))
            .map_err(StartError::Thread)?;
        Fleet::publish(catalog, snapshot, snapshots)
    }

    /// A fleet that never changes.
    pub(crate) fn fixed(catalog: Catalog, snapshot: HostSnapshot) -> Result<Fleet, StartError> {
        let (_, snapshots) = mpsc::unbounded_channel();
        Fleet::publish(catalog, snapshot, snapshots)
    }

    fn publish(
        catalog: Catalog,
        snapshot: HostSnapshot,
        snapshots: mpsc::UnboundedReceiver<Result<HostSnapshot, SourceError>>,
    ) -> Result<Fleet, StartError> {
        let set = DeviceSet::next(None, catalog.offer(&snapshot), Moment::default());
        let list = |resource: &Arc<ResourceDevices>| match list(resource) {
            Ok(list) => Ok(watch::Sender::new(Arc::new(list))),
            Err(list) => Err(StartError::List { resource: resource.spec.name.to_string(), list }),
        };
        let lists: Result<Vec<_>, _> = set.resources.iter().map(list).collect();
        let published = Published { lists: lists?.into(), sets: watch::Sender::new(Arc::new(set)) };
        let fleet = Fleet { catalog, snapshots, snapshot, origin: Instant::now(), published };
        fleet.tell();
        Ok(fleet)
    }

    /// Where the set and the lists can be watched.
    pub(crate) fn published(&self) -> Published {
        self.published.clone()
    }

    /// Follows the source, and drops devices whose grace time is over, until the
    /// thread that reads it ends.
    pub(crate) async fn run(mut self) -> ReaderEnded {
        loop {
            let deadline = self.published.set().deadline();
            let due = async {
                match deadline {
                    Some(Moment(at)) => tokio::time::sleep_until(self.origin + at).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                snapshot = self.snapshots.recv() => match snapshot {
                    Some(Ok(snapshot)) => self.snapshot = snapshot,
                    Some(Err(error)) => {
                        tracing::error!(
                            error = %chain(error.as_ref()),
                            "adapters cannot be read; the devices stay as they were"
                        );
                        continue;
                    }
                    None => return ReaderEnded,
                },
                () = due => {}
            }
            self.advance();
        }
    }

    /// Publishes the set that follows from the newest snapshot and the time.
    fn advance(&self) {
        let now = Moment(self.origin.elapsed());
        let before = self.published.set();
        let set = DeviceSet::next(Some(&before), self.catalog.offer(&self.snapshot), now);
        for (resource, sender) in set.resources.iter().zip(self.published.lists.iter()) {
            match list(resource) {
                Ok(list) => {
                    let list = Arc::new(list);
                    sender.send_if_modified(|old| {
                        let changed = *old != list;
                        *old = list;
                        changed
                    });
                }
                Err(error) => tracing::error!(
                    resource = %resource.spec.name, %error,
                    "the list is too large; the kubelet keeps the one before"
                ),
            }
        }
        self.published.sets.send_replace(Arc::new(set));
        self.tell();
    }

    /// Logs the set.
    fn tell(&self) {
        let set = self.published.set();
        for resource in &set.resources {
            let healthy = resource.entries().iter().filter(|e| e.health.is_healthy()).count();
            tracing::info!(
                resource = %resource.spec.name,
                devices = resource.entries().len(),
                healthy,
                slots_per_device = resource.spec.sharing.replicas,
                "devices"
            );
            for entry in resource.entries() {
                if let devices::Health::Unhealthy(ailment) = entry.health {
                    tracing::warn!(device = %entry.device.id, reason = %ailment, "device is unhealthy");
                }
                for rejected in &entry.device.runtime_files.rejected {
                    tracing::warn!(
                        device = %entry.device.id, key = %rejected.key, value = rejected.value,
                        reason = %rejected.why, "runtime file left out"
                    );
                }
            }
        }
        for skipped in &set.skipped {
            tracing::info!(
                luid = %skipped.luid, adapter = skipped.description, reason = %skipped.reason,
                "adapter skipped"
            );
        }
        for rule in &set.idle_rules {
            tracing::warn!(resource = %rule.name, "no device matches this rule");
        }
        for warning in &self.snapshot.warnings {
            tracing::warn!(luid = %warning.luid, "{}", warning.text);
        }
    }
}

fn list(resource: &Arc<ResourceDevices>) -> Result<DeviceList, ListTooLarge> {
    DeviceList::new(resource.slots().map(|slot| AdvertisedDevice {
        id: slot.id.to_string(),
        health: match slot.health {
            devices::Health::Healthy => kubelet::Health::Healthy,
            devices::Health::Unhealthy(_) => kubelet::Health::Unhealthy,
        },
        numa_node: slot.numa_node,
    }))
}

/// An error with its causes, in one line.
pub(crate) fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let causes = std::iter::successors(error.source(), |cause| cause.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}

fn waker(wake: Sender<()>) -> devices::ChangeCallback {
    let wake = std::sync::Mutex::new(wake);
    Box::new(move || {
        let wake = wake.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        // The reader is gone only when the process ends.
        let _ = wake.send(());
    })
}

/// Reads the source after each burst of changes, and again after a failed read.
fn read_forever(
    source: &mut dyn AdapterSource,
    woken: &Receiver<()>,
    send: &mpsc::UnboundedSender<Result<HostSnapshot, SourceError>>,
) {
    let mut retry: Option<Duration> = None;
    loop {
        let event = match retry {
            Some(after) => woken.recv_timeout(after),
            None => woken.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        match event {
            Ok(()) => {
                std::thread::sleep(BURST);
                while woken.try_recv().is_ok() {}
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
        let snapshot = source.snapshot();
        retry = match (&snapshot, retry) {
            (Ok(_), _) => None,
            (Err(_), None) => Some(RETRY_FIRST),
            (Err(_), Some(before)) => Some((before * 2).min(RETRY_LONGEST)),
        };
        if send.send(snapshot).is_err() {
            return;
        }
    }
}
