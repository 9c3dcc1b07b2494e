//! The fleet: the device set of the moment, kept true as the host changes.
//!
//! In come snapshots of an adapter source and the UUIDs of NVIDIA devices, each from a
//! thread of its own; out goes one [`DeviceSet`], published to whoever watches, and the
//! encoded list of each resource. This is the set's only writer.

use std::sync::Arc;

use devices::{AdapterSource, Catalog, DeviceSet, HostSnapshot, Moment, ResourceDevices};
use kubelet::{AdvertisedDevice, DeviceList, ListTooLarge};
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use crate::gpu_uuids::{GpuUuids, ReadUuids, Uuids};
use crate::reader::{self, Reading};
use crate::telling;

/// The writer of the device set.
pub(crate) struct Fleet {
    catalog: Catalog,
    readings: mpsc::UnboundedReceiver<Reading>,
    snapshot: HostSnapshot,
    uuids: Uuids,
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
    /// The host cannot be read.
    #[error(transparent)]
    Reader(#[from] reader::StartError),
    /// The thread that reads UUIDs could not be started.
    #[error("the thread that reads GPU UUIDs cannot be started")]
    Uuids(#[source] std::io::Error),
    /// A resource has more slots than a kubelet takes.
    #[error("resource {resource} is too large: {list}")]
    List {
        /// The resource.
        resource: String,
        /// The list.
        list: ListTooLarge,
    },
}

/// The thread that reads adapters has ended, which it never should.
#[derive(Debug, thiserror::Error)]
#[error("the thread that reads adapters has ended")]
pub(crate) struct ReaderEnded;

/// What the fleet wakes up for.
enum Event {
    Read(Reading),
    Uuids(GpuUuids),
    GraceOver,
    ReaderEnded,
}

impl Fleet {
    /// Reads the source once and publishes the first set; then a thread reads it again
    /// whenever it changes.
    pub(crate) fn start(
        catalog: Catalog,
        source: Box<dyn AdapterSource>,
        read_uuids: Option<ReadUuids>,
    ) -> Result<Fleet, StartError> {
        let (snapshot, readings) = reader::start(source)?;
        let uuids = Uuids::start(read_uuids).map_err(StartError::Uuids)?;
        Fleet::publish(catalog, snapshot, readings, uuids)
    }

    /// A fleet that never changes.
    pub(crate) fn fixed(catalog: Catalog, snapshot: HostSnapshot) -> Result<Fleet, StartError> {
        let (_, readings) = mpsc::unbounded_channel();
        Fleet::publish(catalog, snapshot, readings, Uuids::none())
    }

    fn publish(
        catalog: Catalog,
        snapshot: HostSnapshot,
        readings: mpsc::UnboundedReceiver<Reading>,
        uuids: Uuids,
    ) -> Result<Fleet, StartError> {
        let set = DeviceSet::next(None, catalog.offer(&snapshot), Moment::default());
        let list = |resource: &Arc<ResourceDevices>| match list(resource) {
            Ok(list) => Ok(watch::Sender::new(Arc::new(list))),
            Err(list) => Err(StartError::List { resource: resource.spec.name.to_string(), list }),
        };
        let lists: Result<Vec<_>, _> = set.resources.iter().map(list).collect();
        telling::changes(None, &set);
        telling::warnings(&snapshot);
        uuids.ask(&snapshot.adapters);
        let published = Published { lists: lists?.into(), sets: watch::Sender::new(Arc::new(set)) };
        let origin = Instant::now();
        Ok(Fleet { catalog, readings, snapshot, uuids, origin, published })
    }

    /// Where the set and the lists can be watched.
    pub(crate) fn published(&self) -> Published {
        self.published.clone()
    }

    /// Follows the source, and drops devices whose grace time is over, until the
    /// thread that reads it ends.
    pub(crate) async fn run(mut self) -> ReaderEnded {
        loop {
            match self.event().await {
                Event::Read(Ok(snapshot)) => {
                    self.uuids.ask(&snapshot.adapters);
                    telling::warnings(&snapshot);
                    let gpu_uuids = std::mem::take(&mut self.snapshot.gpu_uuids);
                    self.snapshot = HostSnapshot { gpu_uuids, ..snapshot };
                }
                Event::Read(Err(error)) => {
                    telling::unreadable(error.as_ref());
                    continue;
                }
                Event::Uuids(uuids) => self.snapshot.gpu_uuids = uuids,
                Event::GraceOver => {}
                Event::ReaderEnded => return ReaderEnded,
            }
            self.advance();
        }
    }

    async fn event(&mut self) -> Event {
        let deadline = self.published.set().deadline();
        let origin = self.origin;
        let grace_over = async {
            match deadline {
                Some(Moment(at)) => tokio::time::sleep_until(origin + at).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            reading = self.readings.recv() => reading.map_or(Event::ReaderEnded, Event::Read),
            uuids = self.uuids.next() => Event::Uuids(uuids),
            () = grace_over => Event::GraceOver,
        }
    }

    /// Publishes the set that follows from the newest snapshot and the time.
    fn advance(&self) {
        let now = Moment(self.origin.elapsed());
        let before = self.published.set();
        let set = DeviceSet::next(Some(&before), self.catalog.offer(&self.snapshot), now);
        telling::changes(Some(&before), &set);
        let lists: Vec<_> = set.resources.iter().map(list).collect();
        // The set goes first: whoever sees a new list can already allocate from it.
        let resources = set.resources.clone();
        self.published.sets.send_replace(Arc::new(set));
        for ((sender, list), resource) in self.published.lists.iter().zip(lists).zip(resources) {
            match list {
                Ok(list) => {
                    sender.send_if_modified(|old| replace(old, list));
                }
                Err(error) => telling::too_large(&resource.spec.name, error),
            }
        }
    }
}

/// Puts `new` in the place of `old` where they differ.
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

    /// A source that a test changes: what the next read yields, and how often it was read.
    #[derive(Clone, Default)]
    struct Script(Arc<Mutex<ScriptState>>);

    #[derive(Default)]
    struct ScriptState {
        next: Option<Result<HostSnapshot, String>>,
        on_change: Option<ChangeCallback>,
        reads: usize,
    }

    impl Script {
        fn yields(&self, next: Result<HostSnapshot, &str>) {
            self.0.lock().unwrap().next = Some(next.map_err(str::to_owned));
        }

        fn changes(&self) {
            self.0.lock().unwrap().on_change.as_ref().unwrap()();
        }

        fn reads(&self) -> usize {
            self.0.lock().unwrap().reads
        }
    }

    impl AdapterSource for Script {
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
        struct Nothing;
        impl settings::Environment for Nothing {
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
        Catalog::new(settings::load(&flags, &Nothing).unwrap().policy)
    }

    async fn healths(list: &mut watch::Receiver<Arc<DeviceList>>) -> Vec<String> {
        use prost::Message;
        list.changed().await.unwrap();
        let list = list.borrow_and_update().clone();
        let message = kubelet::v1beta1::ListAndWatchResponse::decode(list.message()).unwrap();
        message.devices.into_iter().map(|device| device.health).collect()
    }

    #[tokio::test]
    async fn a_burst_of_changes_is_one_refresh_and_a_failed_read_changes_nothing() {
        let script = Script::default();
        script.yields(Ok(two_gpus()));
        let fleet = Fleet::start(catalog(), Box::new(script.clone()), None).unwrap();
        let published = fleet.published();
        let mut list = published.list(0);
        list.borrow_and_update();
        let running = tokio::spawn(fleet.run());
        assert_eq!(script.reads(), 1);

        script.yields(Ok(one_gpu()));
        (0..100).for_each(|_| script.changes());
        assert_eq!(healths(&mut list).await, ["Healthy", "Unhealthy"]);
        assert_eq!(script.reads(), 2);

        script.yields(Err("the driver is being replaced"));
        script.changes();
        while script.reads() < 3 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        assert!(!list.has_changed().unwrap());
        assert_eq!(published.set().resources[0].entries().len(), 2);

        // Nobody tells of the repair; the reader looks again by itself.
        script.yields(Ok(two_gpus()));
        assert_eq!(healths(&mut list).await, ["Healthy", "Healthy"]);
        running.abort();
    }

    /// A fleet whose readings a test sends itself, on the test's clock.
    fn scripted(snapshot: HostSnapshot) -> (Fleet, mpsc::UnboundedSender<Reading>) {
        let (send, readings) = mpsc::unbounded_channel();
        let fleet = Fleet::publish(catalog(), snapshot, readings, Uuids::none()).unwrap();
        (fleet, send)
    }

    #[tokio::test(start_paused = true)]
    async fn a_device_that_went_away_is_dropped_when_its_grace_is_over() {
        let (fleet, send) = scripted(two_gpus());
        let mut list = fleet.published().list(0);
        list.borrow_and_update();
        let running = tokio::spawn(fleet.run());
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
    async fn a_device_that_comes_back_in_time_is_never_dropped() {
        let (fleet, send) = scripted(two_gpus());
        let mut list = fleet.published().list(0);
        list.borrow_and_update();
        let _running = tokio::spawn(fleet.run());
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

    /// The UUIDs that a test's NVML gives, sent to it through a channel of its own.
    fn slow_nvml(adapters: &[devices::Adapter]) -> GpuUuids {
        std::thread::sleep(Duration::from_millis(50));
        let ids = adapters.iter().filter_map(|a| a.pnp.as_ref()).map(|pnp| pnp.id.clone());
        ids.map(|id| (id, "GPU-1".to_owned())).collect()
    }

    #[tokio::test]
    async fn uuids_come_later_and_change_no_list() {
        let script = Script::default();
        script.yields(Ok(one_gpu()));
        let fleet = Fleet::start(catalog(), Box::new(script), Some(slow_nvml)).unwrap();
        let published = fleet.published();
        let mut sets = published.sets.subscribe();
        let list = published.list(0);
        let uuid = |published: &Published| {
            published.set().resources[0].entries()[0].device.cuda_uuid.clone()
        };
        assert_eq!(uuid(&published), None);
        sets.borrow_and_update();
        let _running = tokio::spawn(fleet.run());
        sets.changed().await.unwrap();
        assert_eq!(uuid(&published).as_deref(), Some("GPU-1"));
        assert!(!list.has_changed().unwrap());
    }

    /// The daemon must not go on with devices that nobody looks after any more.
    #[tokio::test]
    async fn a_panic_of_the_reader_ends_the_fleet() {
        let script = Script::default();
        script.yields(Ok(two_gpus()));
        let fleet = Fleet::start(catalog(), Box::new(script.clone()), None).unwrap();
        script.0.lock().unwrap().next = None;
        script.changes();
        let ended = tokio::time::timeout(Duration::from_secs(10), fleet.run()).await;
        assert!(matches!(ended, Ok(ReaderEnded)));
    }

    #[test]
    fn a_reader_that_nobody_wakes_ends_with_its_source() {
        let (wake, woken): (_, Receiver<()>) = std::sync::mpsc::channel();
        drop(wake);
        let (send, mut readings) = mpsc::unbounded_channel();
        reader::read_forever(&mut Script::default(), &woken, &send);
        assert!(readings.try_recv().is_err());
    }
}
