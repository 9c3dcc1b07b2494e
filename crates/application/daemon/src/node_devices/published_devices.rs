//! The published device set, which every stream and every call reads.

use std::sync::Arc;

use devices::DeviceSet;
use tokio::sync::watch;

use crate::metrics::PluginMetrics;
use crate::readers::adapter_reader::Activity;

/// A device set, and whether the devices of the host are known.
#[derive(Clone, Debug)]
pub enum Discovery {
    /// The host has not been read yet: the set has the resources of the configuration, without
    /// devices.
    Pending(Arc<DeviceSet>),
    /// The set has the devices of the host.
    Done(Arc<DeviceSet>),
}

impl Discovery {
    /// The set, with or without devices.
    #[must_use]
    pub fn set(&self) -> &Arc<DeviceSet> {
        match self {
            Discovery::Pending(set) | Discovery::Done(set) => set,
        }
    }
}

/// The published set.
#[derive(Clone)]
pub(crate) struct PublishedDevices {
    discovery: watch::Sender<Discovery>,
    /// What the reader of the host is doing.
    activity: Activity,
    /// What happens to the devices is counted here.
    pub(crate) metrics: PluginMetrics,
}

impl PublishedDevices {
    /// Publishes a set before the first snapshot, while the reader is doing `activity`.
    pub(crate) fn pending_discovery(set: DeviceSet, activity: Activity) -> PublishedDevices {
        PublishedDevices {
            discovery: watch::Sender::new(Discovery::Pending(Arc::new(set))),
            activity,
            metrics: PluginMetrics::default(),
        }
    }

    /// The current set.
    pub(crate) fn set(&self) -> Arc<DeviceSet> {
        Arc::clone(self.discovery.borrow().set())
    }

    /// Replaces the set.
    pub(crate) fn publish(&self, discovery: Discovery) {
        self.discovery.send_replace(discovery);
    }

    /// The current set and its changes.
    pub(crate) fn subscribe(&self) -> watch::Receiver<Discovery> {
        self.discovery.subscribe()
    }

    /// Why the devices are not known yet; `None` if they are.
    pub(crate) fn pending(&self) -> Option<String> {
        match *self.discovery.borrow() {
            Discovery::Pending(_) => {
                Some(format!("the first discovery has not completed: {}", self.activity.text()))
            }
            Discovery::Done(_) => None,
        }
    }
}
