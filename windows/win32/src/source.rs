//! An adapter source that reads the running Windows host.

use std::io;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use devices::{
    AdapterSource, ChangeCallback, HostFacts, HostSnapshot, ReadStep, SourceError, StepCallback,
    Wow64,
};

use crate::error::error_chain;
use crate::live::LiveHost;
use crate::steps::ReportedHost;
use crate::sys::dxcore::{AdapterList, Dxcore, Subscription};
use crate::sys::library::Library;
use crate::sys::notify::DeviceNotifications;
use crate::sys::setup::SetupApi;
use crate::sys::version;
use crate::{NEEDED_WINDOWS, assembly, hcs};

/// The reason why the adapters of the host cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// This Windows has no `DXCore`. The text says which Windows versions have it.
    #[error("this host has no dxcore.dll: {NEEDED_WINDOWS}")]
    NoDxcore(#[source] io::Error),
    /// `DXCore` exists but does not work.
    #[error("cannot create the adapter factory of dxcore.dll")]
    DxcoreFailed(#[source] io::Error),
    /// This Windows lacks the API of the `PnP` manager, for example Nano Server.
    #[error("cannot load setupapi.dll, which lists the devices of a host")]
    NoSetupApi(#[source] io::Error),
}

/// Neither `DXCore` nor the `PnP` manager supports change notifications.
#[derive(Debug, thiserror::Error)]
#[error("change notifications are unavailable on this host: {dxcore}; {pnp}")]
struct WatchError {
    dxcore: String,
    pnp: String,
}

/// The Windows host that this program runs on.
pub struct HostSource {
    // Dropped first: events must be unregistered before their objects are released.
    watch: Option<Watch>,
    dxcore: Dxcore,
    setup: SetupApi,
    system_root: String,
    on_step: StepCallback,
}

struct Watch {
    on_change: Arc<ChangeCallback>,
    subscription: Option<Subscription>,
    notifications: Result<DeviceNotifications, String>,
}

impl HostSource {
    /// Loads the libraries that discovery needs. Does not read the host yet.
    ///
    /// # Errors
    /// This Windows lacks `DXCore` or `SetupAPI`.
    pub fn new() -> Result<Self, OpenError> {
        Ok(Self {
            watch: None,
            dxcore: Dxcore::open(Library::system("dxcore.dll").map_err(OpenError::NoDxcore)?)
                .map_err(OpenError::DxcoreFailed)?,
            setup: SetupApi::load().map_err(OpenError::NoSetupApi)?,
            system_root: version::system_root(),
            on_step: Box::new(|_| {}),
        })
    }

    fn read(&self, lists: &[AdapterList]) -> Result<HostSnapshot, SourceError> {
        let host = LiveHost { lists, setup: &self.setup, system_root: &self.system_root };
        let host = ReportedHost { host: &host, on_step: &self.on_step };
        assembly::read(&host, constant_host_facts())
    }
}

impl AdapterSource for HostSource {
    /// The snapshot contains no schema versions of the Host Compute Service: a service that
    /// hangs must not delay the adapters. [`host_facts`] has them.
    fn snapshot(&mut self) -> Result<HostSnapshot, SourceError> {
        (self.on_step)(ReadStep::Adapters);
        // A stale list stays stale, so each snapshot needs new lists to get new events.
        if let Some(watch) = &mut self.watch {
            watch.subscribe(&self.dxcore)?;
        }
        match self.watch.as_ref().and_then(|watch| watch.subscription.as_ref()) {
            Some(subscription) => self.read(subscription.lists()),
            None => self.read(&self.dxcore.lists()?),
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
        let notifications = DeviceNotifications::new(&on_change).map_err(|e| error_chain(&e));
        if let Err(reason) = &notifications {
            tracing::warn!(
                reason,
                "PnP notifications unavailable; using DXCore notifications only"
            );
        }
        let mut watch = Watch { on_change, subscription: None, notifications };
        watch.subscribe(&self.dxcore)?;
        self.watch = Some(watch);
        Ok(())
    }
}

impl Watch {
    /// Subscribes to changes of the current lists. The earlier lists are released after the
    /// new subscription exists, so that no change is missed.
    fn subscribe(&mut self, dxcore: &Dxcore) -> Result<(), SourceError> {
        match Subscription::new(dxcore, dxcore.lists()?, &self.on_change) {
            Ok(subscription) => self.subscription = Some(subscription),
            Err(error) => {
                let dxcore = error_chain(&error);
                self.subscription = None;
                if let Err(pnp) = &self.notifications {
                    return Err(WatchError { dxcore, pnp: pnp.clone() }.into());
                }
                tracing::warn!(
                    reason = dxcore,
                    "DXCore notifications unavailable; using PnP notifications only"
                );
            }
        }
        Ok(())
    }
}

/// The facts of this host. Waits for the schema versions of the Host Compute Service for at
/// most ten seconds; without an answer there are none.
#[must_use]
pub fn host_facts() -> HostFacts {
    let hcs_schemas = hcs::schemas().unwrap_or_else(|error| {
        tracing::debug!(reason = error_chain(&error), "schema versions unavailable");
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
            product: sources.product(build.build),
            display_version: sources.version(),
            build: Some(build),
            hcs_schemas: Vec::new(),
            wow64: if has_wow64 { Wow64::Present } else { Wow64::Absent },
        }
    });
    facts.clone()
}

#[cfg(test)]
mod tests;
