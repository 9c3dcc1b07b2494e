//! Reports each step of a read before it begins, so that a call that Windows does not answer
//! can be named.

use devices::{Attributes, DriverKey, Luid, ReadStep};

use crate::assembly::{AdapterFacts, Candidate, CopyToVmKeys, Host};
use crate::error::WindowsError;

/// A host whose calls that may not return are reported first.
pub(crate) struct ReportedHost<'a, H> {
    pub(crate) host: &'a H,
    pub(crate) on_step: &'a dyn Fn(ReadStep),
}

impl<H: Host> Host for ReportedHost<'_, H> {
    fn adapters(&self) -> Vec<(Luid, Attributes)> {
        self.host.adapters()
    }

    fn adapter(&self, luid: Luid) -> Result<AdapterFacts, WindowsError> {
        (self.on_step)(ReadStep::Adapter(luid));
        self.host.adapter(luid)
    }

    fn devices(&self) -> Result<Vec<Candidate>, WindowsError> {
        (self.on_step)(ReadStep::Devices);
        self.host.devices()
    }

    fn store_of_adapter(&self, luid: Luid) -> Result<String, WindowsError> {
        (self.on_step)(ReadStep::DriverStore(luid));
        self.host.store_of_adapter(luid)
    }

    fn store_of_inf(&self, inf: &str) -> Result<String, WindowsError> {
        self.host.store_of_inf(inf)
    }

    fn user_mode_drivers(&self, key: &DriverKey) -> Result<Vec<String>, WindowsError> {
        self.host.user_mode_drivers(key)
    }

    fn copy_to_vm(&self, key: &DriverKey) -> Result<CopyToVmKeys, WindowsError> {
        self.host.copy_to_vm(key)
    }

    fn has_folder(&self, path: &str) -> bool {
        self.host.has_folder(path)
    }

    fn system_root(&self) -> &str {
        self.host.system_root()
    }
}
