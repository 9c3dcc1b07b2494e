//! The interface to the plugin: the trait that it implements for each extended resource.

use std::borrow::Cow;
use std::sync::Arc;

use tokio::sync::watch;
use tonic::{Status, async_trait};

use crate::device_list::DeviceList;
use crate::names::default_socket_prefix;
use crate::v1beta1::{ContainerAllocateResponse as ContainerResponse, DevicePluginOptions};

/// One extended resource: what a device plugin implements, with [`async_trait`], as
/// for the services of tonic. A plugin has several resources of different types, which a native
/// `async fn` in a trait does not allow. The price is one allocation for each call.
///
/// Calls arrive at any time, in any order and several at once, also before any list was sent.
///
/// They run on the runtime that serves everything else: await what takes long, and move what blocks
/// to [`spawn_blocking`](tokio::task::spawn_blocking). A call that takes longer than 30 seconds
/// fails.
///
/// The kubelet shows the message of an error in the pod's events.
#[async_trait]
pub trait Resource: Send + Sync + 'static {
    /// The name of the extended resource, `domain/name`. [`is_extended_resource_name`] has the
    /// rules.
    ///
    /// [`is_extended_resource_name`]: crate::is_extended_resource_name
    fn name(&self) -> &str;

    /// The prefix of the names of this resource's sockets: `<prefix>-<unix milliseconds>.sock`. It
    /// may contain letters, digits, `-`, `_` and `.`. It is [`default_socket_prefix`], unless the
    /// plugin chooses another one.
    fn socket_prefix(&self) -> Cow<'_, str> {
        default_socket_prefix(self.name()).into()
    }

    /// The locks that this resource needs in addition to the lock of its name, such as
    /// `acme-gpus`. A plugin names a lock for devices that several of its daemons can advertise
    /// under different resource names: the name of a resource excludes only daemons that use it.
    /// The resource waits until its daemon has all of them.
    ///
    /// A daemon takes a lock once for all its resources, and keeps it until it ends, also when it
    /// no longer has a resource that needs it. A name may contain lower-case letters, digits, `-`
    /// and `.`. Must not change.
    fn locks(&self) -> Vec<String> {
        Vec::new()
    }

    /// The current device list and its changes. It has one writer and any number of readers.
    fn devices(&self) -> watch::Receiver<Arc<DeviceList>>;

    /// Why the devices are not known yet. Until they are, the list is empty and the resource
    /// is registered, but not ready. `None` once they are known.
    fn pending(&self) -> Option<String> {
        None
    }

    /// Returns what a container needs to use the devices `ids`.
    ///
    /// # Errors
    /// The devices cannot be allocated.
    async fn allocate(&self, ids: &[String]) -> Result<ContainerResponse, Status>;

    /// Which optional calls the kubelet makes: none, unless the plugin says so. A plugin that
    /// implements [`preferred_allocation`](Self::preferred_allocation) or
    /// [`pre_start`](Self::pre_start) returns it here. Must not change.
    fn options(&self) -> DevicePluginOptions {
        DevicePluginOptions::default()
    }

    /// Returns the devices to allocate, in order of preference.
    ///
    /// # Errors
    /// The request cannot be fulfilled.
    async fn preferred_allocation(
        &self,
        request: PreferredRequest<'_>,
    ) -> Result<Vec<String>, Status> {
        let others = request.available.iter().filter(|id| !request.must_include.contains(id));
        Ok(request.must_include.iter().chain(others).take(request.size).cloned().collect())
    }

    /// Prepares the devices `ids` before a container starts with them, each time that it starts.
    /// Kubelets wait 30 seconds for it.
    ///
    /// Not for Windows: a kubelet there makes this call before it allocates devices, and fails for
    /// every container with `no devices found allocated in local cache`, unless its feature gate
    /// `WindowsCPUAndMemoryAffinity` is on. Prepare the devices in [`allocate`](Self::allocate)
    /// instead, which is not called again when a container restarts.
    ///
    /// # Errors
    /// The container cannot start.
    async fn pre_start(&self, ids: &[String]) -> Result<(), Status> {
        let _ = ids;
        Ok(())
    }
}

/// A `GetPreferredAllocation` request for one container.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct PreferredRequest<'a> {
    /// The devices to choose from.
    pub available: &'a [String],
    /// The devices that the result must include.
    pub must_include: &'a [String],
    /// How many devices to choose, including those of `must_include`.
    pub size: usize,
}

impl<'a> PreferredRequest<'a> {
    /// A request, as the kubelet sends it or for a test.
    #[must_use]
    pub fn new(available: &'a [String], must_include: &'a [String], size: usize) -> Self {
        PreferredRequest { available, must_include, size }
    }
}
