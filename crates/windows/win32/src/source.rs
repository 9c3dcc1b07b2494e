//! An adapter source that reads the running Windows host.

use std::io;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use host::{
    AdapterSource, ChangeCallback, HostFacts, HostSnapshot, LauncherFiles, Platform, ReadStep,
    SourceError, StepCallback, Wow64,
};
use windows_report::assembly;

use crate::adapter_sets::AdapterSet;
use crate::error::failed;
use crate::live::LiveHost;
use crate::sys::dxcore::{Dxcore, Subscription};
use crate::sys::kmt_adapters::KernelAdapterList;
use crate::sys::library::Library;
use crate::sys::notify::DeviceNotifications;
use crate::sys::setup::SetupApi;
use crate::sys::{hypervisor, registry, version};
use crate::{NEEDED_WINDOWS, hcs};

/// The error of a library that does not exist (winerror.h).
const ERROR_MOD_NOT_FOUND: i32 = 126;

/// The reason why the adapters of the host cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// This Windows has no interface that lists adapters. The text says which versions do.
    #[error("this host has neither dxcore.dll nor D3DKMTEnumAdapters2: {NEEDED_WINDOWS}")]
    NoAdapterList(#[source] io::Error),
    /// `DXCore` exists but does not work.
    #[error("cannot load dxcore.dll or create its adapter factory")]
    DxcoreFailed(#[source] io::Error),
    /// This Windows lacks the API of the `PnP` manager, for example Nano Server.
    #[error("cannot load setupapi.dll, which lists the devices of a host")]
    NoSetupApi(#[source] io::Error),
}

/// The Windows host that this program runs on.
pub struct HostSource {
    // The first field, because fields are dropped in order: events must be unregistered before
    // their objects are released.
    watch: Option<Watch>,
    interface: Interface,
    setup: SetupApi,
    system_root: String,
    on_step: StepCallback,
}

/// The interface of Windows that lists the adapters.
enum Interface {
    Dxcore(Dxcore),
    /// The graphics kernel, on Windows Server 2019, which has no `DXCore`. It does not report
    /// changes.
    Kernel(KernelAdapterList),
}

struct Watch {
    on_change: Arc<ChangeCallback>,
    subscription: Option<Subscription>,
    notifications: io::Result<DeviceNotifications>,
}

impl HostSource {
    /// Loads the libraries that discovery needs. Does not read the host yet.
    ///
    /// # Errors
    /// This Windows has no list of adapters, or lacks `SetupAPI`.
    pub fn new() -> Result<Self, OpenError> {
        Ok(Self {
            watch: None,
            interface: Interface::open()?,
            setup: SetupApi::load().map_err(OpenError::NoSetupApi)?,
            system_root: version::system_root(),
            on_step: Box::new(|_| {}),
        })
    }

    fn read(&self, adapters: AdapterSet<'_>) -> Result<HostSnapshot, SourceError> {
        let setup = &self.setup;
        let system_root = &*self.system_root;
        let on_step = &*self.on_step;
        let host = LiveHost { adapters, setup, system_root, on_step };
        assembly::read(&host, constant_host_facts())
    }
}

impl Interface {
    fn open() -> Result<Self, OpenError> {
        match Library::system("dxcore.dll") {
            Ok(library) => Dxcore::open(library).map(Self::Dxcore).map_err(OpenError::DxcoreFailed),
            Err(error) if error.raw_os_error() != Some(ERROR_MOD_NOT_FOUND) => {
                Err(OpenError::DxcoreFailed(error))
            }
            Err(_) => {
                tracing::debug!("no DXCore; the graphics kernel lists the adapters");
                KernelAdapterList::load().map(Self::Kernel).map_err(OpenError::NoAdapterList)
            }
        }
    }
}

impl AdapterSource for HostSource {
    /// The snapshot contains no schema versions of the Host Compute Service: a service that
    /// hangs must not delay the adapters. [`host_facts`] has them.
    fn snapshot(&mut self) -> Result<HostSnapshot, SourceError> {
        (self.on_step)(ReadStep::Adapters);
        // A stale list stays stale, so each snapshot needs new lists to get new events.
        if let Some(watch) = &mut self.watch {
            watch.subscribe(&self.interface)?;
        }
        let subscription = self.watch.as_ref().and_then(|watch| watch.subscription.as_ref());
        match (&self.interface, subscription) {
            (Interface::Dxcore(_), Some(subscription)) => {
                self.read(AdapterSet::Dxcore(subscription.lists()))
            }
            (Interface::Dxcore(dxcore), None) => self.read(AdapterSet::Dxcore(&dxcore.lists()?)),
            (Interface::Kernel(kernel), _) => {
                let adapters =
                    kernel.read().map_err(|error| failed("cannot list the adapters", &error))?;
                self.read(AdapterSet::Kernel(adapters))
            }
        }
    }

    fn report_steps(&mut self, on_step: StepCallback) {
        self.on_step = on_step;
    }

    /// Windows calls `on_change` on its own threads. The callback must not wait for a thread
    /// that uses this source: unregistering an event waits for running callbacks.
    fn watch(&mut self, on_change: ChangeCallback) -> Result<(), SourceError> {
        (self.on_step)(ReadStep::Watch);
        let on_change = Arc::new(on_change);
        let notifications = DeviceNotifications::new(&on_change);
        if let (Err(reason), Interface::Dxcore(_)) = (&notifications, &self.interface) {
            tracing::warn!(
                %reason,
                "PnP notifications unavailable; using DXCore notifications only"
            );
        }
        let mut watch = Watch { on_change, subscription: None, notifications };
        watch.subscribe(&self.interface)?;
        self.watch = Some(watch);
        Ok(())
    }
}

impl Watch {
    /// Subscribes to changes of the current lists. The earlier lists are released after the
    /// new subscription exists, so that no change is missed.
    fn subscribe(&mut self, interface: &Interface) -> Result<(), SourceError> {
        let subscription = match interface {
            Interface::Dxcore(dxcore) => {
                Subscription::new(dxcore, dxcore.lists()?, &self.on_change)
            }
            Interface::Kernel(_) => Err(io::Error::other("this host has no DXCore")),
        };
        match (&subscription, &self.notifications, interface) {
            (Err(dxcore), Err(pnp), _) => {
                let text = "change notifications are unavailable on this host";
                return Err(format!("{text}: {dxcore}; {pnp}").into());
            }
            (Err(reason), Ok(_), Interface::Dxcore(_)) => {
                tracing::warn!(
                    %reason,
                    "DXCore notifications unavailable; using PnP notifications only"
                );
            }
            // A host without DXCore never has notifications, so their absence is not a fault.
            _ => {}
        }
        self.subscription = subscription.ok();
        Ok(())
    }
}

/// The facts of this host. Waits for the schema versions of the Host Compute Service for at
/// most ten seconds; without an answer there are none.
#[must_use]
pub fn host_facts() -> HostFacts {
    let hcs_schemas = hcs::schemas().unwrap_or_else(|error| {
        tracing::debug!(reason = ?error, "schema versions unavailable");
        Vec::new()
    });
    HostFacts { hcs_schemas, ..constant_host_facts() }
}

/// The facts of this host that cannot change while it runs, without the schema versions of
/// the Host Compute Service. They are read once.
#[must_use]
pub fn constant_host_facts() -> HostFacts {
    static FACTS: OnceLock<HostFacts> = OnceLock::new();
    let facts = FACTS.get_or_init(|| {
        let (build, sources) = version::version();
        let has_wow64 = Path::new(&version::system_root()).join("SysWOW64").is_dir();
        HostFacts {
            platform: Platform::Windows,
            product: sources.product(build.build),
            display_version: sources.version(),
            build: Some(build),
            hypervisor: Some(hypervisor::hypervisor()),
            hcs_schemas: Vec::new(),
            wow64: if has_wow64 { Wow64::Present } else { Wow64::Absent },
            inside_container: is_inside_container(),
            system_root: version::system_root().parse().unwrap_or_default(),
            is_this_machine: true,
            is_demonstration: false,
            launcher: LauncherFiles::NotProvided,
        }
    });
    facts.clone()
}

/// Whether this program runs inside a container: its registry has a value that no host has; .NET
/// and `PerfView` use it for the same purpose. A `HostProcess` container sees the registry of its
/// host, and so counts as the host. The driver's folder does not decide: Windows names it
/// `HostDriverStore` in containers, but also in virtual machines with a paravirtualized GPU
/// (GPU-PV).
fn is_inside_container() -> bool {
    let key = registry::local_machine(r"SYSTEM\CurrentControlSet\Control");
    match key.and_then(|key| registry::value(&key, "ContainerType")) {
        Ok(Some(_)) => true,
        Ok(None) => false,
        Err(error) => {
            tracing::debug!(%error, "cannot read whether this is a container");
            false
        }
    }
}

#[cfg(test)]
mod tests;
