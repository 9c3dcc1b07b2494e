//! The live host as an adapter source.

use std::io;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use devices::{
    AdapterSource, ChangeCallback, HcsSchema, HostFacts, HostSnapshot, SourceError, Wow64,
};

use crate::failure::in_words;
use crate::live::LiveHost;
use crate::sys::dxcore::{AdapterList, Dxcore, Subscription};
use crate::sys::library::Library;
use crate::sys::notify::DeviceNotifications;
use crate::sys::setup::SetupApi;
use crate::sys::version;
use crate::{NEEDED_WINDOWS, assembly, hcs};

/// Why the host's adapters cannot be read at all.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// This Windows has no `DXCore`. The text says which Windows has.
    #[error("this host has no dxcore.dll: {NEEDED_WINDOWS}")]
    NoDxcore(#[source] io::Error),
    /// `DXCore` is there and does not work.
    #[error("dxcore.dll does not give access to the adapters")]
    DxcoreRefuses(#[source] io::Error),
    /// This Windows has no `PnP` manager that programs can ask, as Nano Server.
    #[error("cannot use setupapi.dll, which lists the devices of a host")]
    NoSetupApi(#[source] io::Error),
}

/// Neither `DXCore` nor the `PnP` manager tells when adapters change.
#[derive(Debug, thiserror::Error)]
#[error("this host does not tell when its adapters change: {dxcore}; {pnp}")]
struct WatchError {
    dxcore: String,
    pnp: String,
}

/// The Windows host this runs on.
pub struct HostSource {
    // Events are cancelled before what they are about is released: the order matters.
    watch: Option<Watch>,
    dxcore: Dxcore,
    setup: SetupApi,
    system_root: String,
}

struct Watch {
    on_change: Arc<ChangeCallback>,
    subscription: Option<Subscription>,
    notifications: Result<DeviceNotifications, String>,
}

impl HostSource {
    /// Loads what discovery needs. Reads nothing yet.
    ///
    /// # Errors
    /// This Windows lacks `DXCore` or `SetupAPI`.
    pub fn new() -> Result<Self, OpenError> {
        Ok(Self {
            watch: None,
            dxcore: Dxcore::open(Library::system("dxcore.dll").map_err(OpenError::NoDxcore)?)
                .map_err(OpenError::DxcoreRefuses)?,
            setup: SetupApi::load().map_err(OpenError::NoSetupApi)?,
            system_root: version::system_root(),
        })
    }

    fn read(&self, lists: &[AdapterList]) -> Result<HostSnapshot, SourceError> {
        let host = LiveHost { lists, setup: &self.setup, system_root: &self.system_root };
        assembly::read(&host, host_facts())
    }
}

impl AdapterSource for HostSource {
    fn snapshot(&mut self) -> Result<HostSnapshot, SourceError> {
        // A list stays outdated once it is, so events need new lists each time.
        if let Some(watch) = &mut self.watch {
            watch.follow(&self.dxcore)?;
        }
        match self.watch.as_ref().and_then(|watch| watch.subscription.as_ref()) {
            Some(subscription) => self.read(subscription.lists()),
            None => self.read(&self.dxcore.lists()?),
        }
    }

    /// `on_change` is called on threads of Windows. It must not wait for a thread that
    /// uses this source: cancelling an event waits for calls that are under way.
    fn watch(&mut self, on_change: ChangeCallback) -> Result<(), SourceError> {
        let on_change = Arc::new(on_change);
        let notifications = DeviceNotifications::new(&on_change).map_err(|e| in_words(&e));
        if let Err(reason) = &notifications {
            tracing::warn!(reason, "no word of devices from the PnP manager, DXCore alone tells");
        }
        let mut watch = Watch { on_change, subscription: None, notifications };
        watch.follow(&self.dxcore)?;
        self.watch = Some(watch);
        Ok(())
    }
}

impl Watch {
    /// Follows the host as it is now. The earlier lists are let go only when the new
    /// ones are followed, so that no change falls between them.
    fn follow(&mut self, dxcore: &Dxcore) -> Result<(), SourceError> {
        match Subscription::new(dxcore, dxcore.lists()?, &self.on_change) {
            Ok(subscription) => self.subscription = Some(subscription),
            Err(error) => {
                let dxcore = in_words(&error);
                self.subscription = None;
                if let Err(pnp) = &self.notifications {
                    return Err(WatchError { dxcore, pnp: pnp.clone() }.into());
                }
                tracing::warn!(reason = dxcore, "no word from DXCore, the PnP manager alone tells");
            }
        }
        Ok(())
    }
}

/// Facts of this host. What cannot change while it runs is read once; the schema
/// versions are asked for until the Host Compute Service has answered.
#[must_use]
pub fn host_facts() -> HostFacts {
    static VERSION: OnceLock<HostFacts> = OnceLock::new();
    static SCHEMAS: OnceLock<Vec<HcsSchema>> = OnceLock::new();
    let version = VERSION.get_or_init(|| {
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
    let hcs_schemas = SCHEMAS.get().cloned().unwrap_or_else(|| match hcs::schemas() {
        Ok(schemas) => SCHEMAS.get_or_init(|| schemas).clone(),
        Err(error) => {
            tracing::debug!(reason = in_words(&error), "schema versions not known");
            Vec::new()
        }
    });
    HostFacts { hcs_schemas, ..version.clone() }
}

#[cfg(test)]
mod tests;
