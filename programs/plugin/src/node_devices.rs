//! The devices of the node: the current device set, updated when the host changes.
//!
//! In come snapshots of an adapter source and the UUIDs of NVIDIA devices, each from a
//! separate thread; out go one published [`DeviceSet`] and the encoded list of each
//! resource. This is the only writer of the set.

use std::sync::Arc;

use cli::Failure;
use devices::{AdapterSource, Catalog, DeviceSet, HostSnapshot, Moment, ResourceDevices};
use kubelet::{AdvertisedDevice, DeviceList, ListTooLarge};
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use crate::adapter_reader::{self, ReadResult};
use crate::change_log;
use crate::gpu_uuids::{GpuUuidReader, GpuUuids, ReadGpuUuids};

/// The writer of the device set.
pub(crate) struct NodeDevices {
    catalog: Catalog,
    read_results: mpsc::UnboundedReceiver<ReadResult>,
    snapshot: HostSnapshot,
    uuids: GpuUuidReader,
    origin: Instant,
    published: PublishedDevices,
}

/// The published set and lists.
#[derive(Clone)]
pub(crate) struct PublishedDevices {
    sets: watch::Sender<Arc<DeviceSet>>,
    lists: Arc<[watch::Sender<Arc<DeviceList>>]>,
}

impl PublishedDevices {
    /// The current set.
    pub(crate) fn set(&self) -> Arc<DeviceSet> {
        self.sets.borrow().clone()
    }

    /// The list of the resource with the index `n`, and its changes.
    pub(crate) fn list(&self, n: usize) -> watch::Receiver<Arc<DeviceList>> {
        self.lists[n].subscribe()
    }
}

/// Why the first set cannot be published.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StartError {
    /// The host cannot be read.
    #[error(transparent)]
    Reader(#[from] adapter_reader::StartError),
    /// The thread that reads UUIDs could not be started.
    #[error("cannot start the thread that reads GPU UUIDs")]
    Uuids(#[source] std::io::Error),
    /// A resource has more slots than a kubelet accepts.
    #[error("the device list of resource {resource} is too large: {list}")]
    List {
        /// The resource.
        resource: String,
        /// Why its list is refused.
        list: ListTooLarge,
    },
}

impl From<StartError> for Failure {
    fn from(error: StartError) -> Failure {
        match error {
            StartError::List { .. } => Failure::usage(error).hint(
                "a kubelet accepts 4 MiB for one resource: lower `multitenancy`, or spread the \
                 devices over several resources with `resources:`",
            ),
            other => Failure::runtime(other),
        }
    }
}

/// The thread that reads adapters ended, which only a panic can cause.
#[derive(Debug, thiserror::Error)]
#[error("the thread that reads adapters ended unexpectedly")]
pub(crate) struct ReaderEnded;

/// What changes the set.
enum Event {
    Read(Box<ReadResult>),
    Uuids(GpuUuids),
    GraceExpired,
    ReaderEnded,
}

impl NodeDevices {
    /// Reads the source once and publishes the first set; then a thread reads it again
    /// whenever it changes.
    pub(crate) fn start(
        catalog: Catalog,
        source: Box<dyn AdapterSource>,
        read_uuids: Option<ReadGpuUuids>,
    ) -> Result<NodeDevices, StartError> {
        let (snapshot, read_results) = adapter_reader::start(source)?;
        let uuids = GpuUuidReader::start(read_uuids).map_err(StartError::Uuids)?;
        NodeDevices::publish(catalog, snapshot, read_results, uuids)
    }

    /// Publishes the set of a snapshot that never changes.
    pub(crate) fn fixed(
        catalog: Catalog,
        snapshot: HostSnapshot,
    ) -> Result<NodeDevices, StartError> {
        let (_, read_results) = mpsc::unbounded_channel();
        NodeDevices::publish(catalog, snapshot, read_results, GpuUuidReader::disabled())
    }

    fn publish(
        catalog: Catalog,
        snapshot: HostSnapshot,
        read_results: mpsc::UnboundedReceiver<ReadResult>,
        uuids: GpuUuidReader,
    ) -> Result<NodeDevices, StartError> {
        let set = DeviceSet::next(None, catalog.offer(&snapshot), Moment::default());
        let list = |resource: &Arc<ResourceDevices>| match list(resource) {
            Ok(list) => Ok(watch::Sender::new(Arc::new(list))),
            Err(list) => Err(StartError::List { resource: resource.spec.name.to_string(), list }),
        };
        let lists: Result<Vec<_>, _> = set.resources.iter().map(list).collect();
        change_log::log_changes(None, &set);
        change_log::log_adapter_warnings(&snapshot);
        uuids.request(&snapshot.adapters);
        let published =
            PublishedDevices { lists: lists?.into(), sets: watch::Sender::new(Arc::new(set)) };
        let origin = Instant::now();
        Ok(NodeDevices { catalog, read_results, snapshot, uuids, origin, published })
    }

    /// The published set and lists.
    pub(crate) fn published(&self) -> PublishedDevices {
        self.published.clone()
    }

    /// Follows the source, and drops devices whose grace time has expired, until the
    /// thread that reads the source ends.
    pub(crate) async fn run(mut self) -> ReaderEnded {
        loop {
            match self.event().await {
                Event::Read(result) => match *result {
                    Ok(snapshot) => {
                        self.uuids.request(&snapshot.adapters);
                        change_log::log_adapter_warnings(&snapshot);
                        let gpu_uuids = std::mem::take(&mut self.snapshot.gpu_uuids);
                        self.snapshot = HostSnapshot { gpu_uuids, ..snapshot };
                    }
                    Err(error) => {
                        change_log::log_read_failure(error.as_ref());
                        continue;
                    }
                },
                Event::Uuids(uuids) => self.snapshot.gpu_uuids = uuids,
                Event::GraceExpired => {}
                Event::ReaderEnded => return ReaderEnded,
            }
            self.advance();
        }
    }

    async fn event(&mut self) -> Event {
        let deadline = self.published.set().deadline();
        let origin = self.origin;
        let grace_expired = async {
            match deadline {
                Some(Moment(at)) => tokio::time::sleep_until(origin + at).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            result = self.read_results.recv() => {
                result.map_or(Event::ReaderEnded, |result| Event::Read(Box::new(result)))
            }
            uuids = self.uuids.next() => Event::Uuids(uuids),
            () = grace_expired => Event::GraceExpired,
        }
    }

    /// Publishes the set that follows from the newest snapshot and the time.
    fn advance(&self) {
        let now = Moment(self.origin.elapsed());
        let before = self.published.set();
        let set = DeviceSet::next(Some(&before), self.catalog.offer(&self.snapshot), now);
        change_log::log_changes(Some(&before), &set);
        let lists: Vec<_> = set.resources.iter().map(list).collect();
        // The set goes first, so that a new list can be allocated from as soon as it is seen.
        let resources = set.resources.clone();
        self.published.sets.send_replace(Arc::new(set));
        for ((sender, list), resource) in self.published.lists.iter().zip(lists).zip(resources) {
            match list {
                Ok(list) => {
                    sender.send_if_modified(|old| replace(old, list));
                }
                Err(error) => change_log::log_list_too_large(&resource.spec.name, error),
            }
        }
    }
}

/// Replaces `old` by `new` where they differ.
fn replace(old: &mut Arc<DeviceList>, new: DeviceList) -> bool {
    let changed = **old != new;
    if changed {
        *old = Arc::new(new);
    }
    changed
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;
    use std::sync::mpsc::Receiver;
    use std::time::Duration;

    use devices::{ChangeCallback, SourceError};

    /// A source whose next read a test sets, and which counts its reads.
    #[derive(Clone, Default)]
    struct FakeSource(Arc<Mutex<FakeSourceState>>);

    #[derive(Default)]
    struct FakeSourceState {
        next: Option<Result<HostSnapshot, String>>,
        on_change: Option<ChangeCallback>,
        reads: usize,
    }

    impl FakeSource {
        fn set_next_read(&self, next: Result<HostSnapshot, &str>) {
            self.0.lock().unwrap().next = Some(next.map_err(str::to_owned));
        }

        fn notify_change(&self) {
            self.0.lock().unwrap().on_change.as_ref().unwrap()();
        }

        fn reads(&self) -> usize {
            self.0.lock().unwrap().reads
        }
    }

    impl AdapterSource for FakeSource {
        fn snapshot(&mut self) -> Result<HostSnapshot, SourceError> {
            let mut state = self.0.lock().unwrap();
            state.reads += 1;
            state.next.clone().unwrap().map_err(SourceError::from)
        }

        fn watch(&mut self, on_change: ChangeCallback) -> Result<(), SourceError> {
            self.0.lock().unwrap().on_change = Some(on_change);
            Ok(())
        }
    }

    fn two_gpus() -> HostSnapshot {
        let text = include_str!("../../../fixtures/inventories/aws-t4-two.yaml");
        inventory::parse("aws-t4-two.yaml", text).unwrap()
    }

    fn one_gpu() -> HostSnapshot {
        let mut snapshot = two_gpus();
        snapshot.adapters.truncate(1);
        snapshot
    }

    fn catalog() -> Catalog {
        struct EmptyEnvironment;
        impl settings::Environment for EmptyEnvironment {
            fn variable(&self, _: &str) -> Option<std::ffi::OsString> {
                None
            }
            fn variable_names(&self) -> Vec<String> {
                Vec::new()
            }

            fn working_directory(&self) -> std::io::Result<std::path::PathBuf> {
                Ok("/".into())
            }
            fn read(&self, _: &std::path::Path) -> std::io::Result<Vec<u8>> {
                Err(std::io::ErrorKind::NotFound.into())
            }
        }
        let flags = settings::Flags::default();
        Catalog::new(settings::load(&flags, &EmptyEnvironment).unwrap().policy)
    }

    async fn healths(list: &mut watch::Receiver<Arc<DeviceList>>) -> Vec<String> {
        use prost::Message;
        list.changed().await.unwrap();
        let list = list.borrow_and_update().clone();
        let message = kubelet::v1beta1::ListAndWatchResponse::decode(list.message()).unwrap();
        message.devices.into_iter().map(|device| device.health).collect()
    }

    #[tokio::test]
    async fn a_burst_of_changes_causes_one_read_and_a_failed_read_changes_nothing() {
        let source = FakeSource::default();
        source.set_next_read(Ok(two_gpus()));
        let devices = NodeDevices::start(catalog(), Box::new(source.clone()), None).unwrap();
        let published = devices.published();
        let mut list = published.list(0);
        list.borrow_and_update();
        let running = tokio::spawn(devices.run());
        assert_eq!(source.reads(), 1);

        source.set_next_read(Ok(one_gpu()));
        (0..100).for_each(|_| source.notify_change());
        assert_eq!(healths(&mut list).await, ["Healthy", "Unhealthy"]);
        assert_eq!(source.reads(), 2);

        source.set_next_read(Err("the driver is being replaced"));
        source.notify_change();
        while source.reads() < 3 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        assert!(!list.has_changed().unwrap());
        assert_eq!(published.set().resources[0].entries().len(), 2);

        // Without a notification, the reader retries by itself.
        source.set_next_read(Ok(two_gpus()));
        assert_eq!(healths(&mut list).await, ["Healthy", "Healthy"]);
        running.abort();
    }

    /// Devices of a node whose reads a test sends itself, on the paused clock.
    fn with_reads_from_test(
        snapshot: HostSnapshot,
    ) -> (NodeDevices, mpsc::UnboundedSender<ReadResult>) {
        let (send, read_results) = mpsc::unbounded_channel();
        let devices =
            NodeDevices::publish(catalog(), snapshot, read_results, GpuUuidReader::disabled())
                .unwrap();
        (devices, send)
    }

    #[tokio::test(start_paused = true)]
    async fn a_missing_device_is_dropped_after_its_grace_time() {
        let (devices, send) = with_reads_from_test(two_gpus());
        let mut list = devices.published().list(0);
        list.borrow_and_update();
        let running = tokio::spawn(devices.run());
        let started = Instant::now();
        send.send(Ok(one_gpu())).unwrap();
        assert_eq!(healths(&mut list).await, ["Healthy", "Unhealthy"]);
        assert_eq!(started.elapsed(), Duration::ZERO);
        assert_eq!(healths(&mut list).await, ["Healthy"]);
        let grace = started.elapsed();
        assert!(grace >= Duration::from_mins(1) && grace < Duration::from_secs(61), "{grace:?}");
        drop(send);
        assert!(matches!(running.await, Ok(ReaderEnded)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_device_that_returns_within_its_grace_time_is_kept() {
        let (devices, send) = with_reads_from_test(two_gpus());
        let mut list = devices.published().list(0);
        list.borrow_and_update();
        let _running = tokio::spawn(devices.run());
        send.send(Ok(one_gpu())).unwrap();
        assert_eq!(healths(&mut list).await, ["Healthy", "Unhealthy"]);
        tokio::time::sleep(Duration::from_secs(59)).await;
        let mut back = two_gpus();
        back.adapters[1].luid = devices::Luid(1);
        send.send(Ok(back)).unwrap();
        assert_eq!(healths(&mut list).await, ["Healthy", "Healthy"]);
        tokio::time::sleep(Duration::from_hours(1)).await;
        assert!(!list.has_changed().unwrap());
    }

    /// An NVML that takes a while.
    fn slow_nvml(adapters: &[devices::Adapter]) -> GpuUuids {
        std::thread::sleep(Duration::from_millis(50));
        let ids = adapters.iter().filter_map(|a| a.pnp.as_ref()).map(|pnp| pnp.id.clone());
        ids.map(|id| (id, "GPU-1".to_owned())).collect()
    }

    #[tokio::test]
    async fn uuids_arrive_later_and_change_no_list() {
        let source = FakeSource::default();
        source.set_next_read(Ok(one_gpu()));
        let devices = NodeDevices::start(catalog(), Box::new(source), Some(slow_nvml)).unwrap();
        let published = devices.published();
        let mut sets = published.sets.subscribe();
        let list = published.list(0);
        let uuid = |published: &PublishedDevices| {
            published.set().resources[0].entries()[0].device.cuda_uuid.clone()
        };
        assert_eq!(uuid(&published), None);
        sets.borrow_and_update();
        let _running = tokio::spawn(devices.run());
        sets.changed().await.unwrap();
        assert_eq!(uuid(&published).as_deref(), Some("GPU-1"));
        assert!(!list.has_changed().unwrap());
    }

    /// The daemon must not serve devices that are no longer updated.
    #[tokio::test]
    async fn a_panic_of_the_reader_ends_the_daemon() {
        let source = FakeSource::default();
        source.set_next_read(Ok(two_gpus()));
        let devices = NodeDevices::start(catalog(), Box::new(source.clone()), None).unwrap();
        source.0.lock().unwrap().next = None;
        source.notify_change();
        let ended = tokio::time::timeout(Duration::from_secs(10), devices.run()).await;
        assert!(matches!(ended, Ok(ReaderEnded)));
    }

    #[test]
    fn a_reader_ends_with_its_source() {
        let (notify, changes): (_, Receiver<()>) = std::sync::mpsc::channel();
        drop(notify);
        let (send, mut results) = mpsc::unbounded_channel();
        adapter_reader::read_on_changes(&mut FakeSource::default(), &changes, &send);
        assert!(results.try_recv().is_err());
    }
}
