//! What a test bed consists of.

use host::HostSnapshot;

/// The names of everything that a bed created in the prefix.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub(crate) struct Contents {
    /// Device instance ids.
    pub(crate) devices: Vec<String>,
    /// Driver keys, `{class}\NNNN`.
    pub(crate) driver_keys: Vec<String>,
    /// Driver store folders.
    pub(crate) folders: Vec<String>,
}

impl Contents {
    /// What a bed needs for the host of `snapshot`.
    pub(crate) fn of(snapshot: &HostSnapshot) -> Contents {
        let pnp = || snapshot.adapters.iter().filter_map(|adapter| adapter.pnp.as_ref());
        let stores = snapshot.adapters.iter().filter_map(|adapter| adapter.driver_store.as_ref());
        let devices = pnp().chain(&snapshot.devices_without_adapter);
        Contents {
            devices: devices.map(|device| device.id.to_string()).collect(),
            driver_keys: pnp().filter_map(|d| Some(d.driver_key.as_ref()?.to_string())).collect(),
            folders: stores.map(|store| store.path.clone()).collect(),
        }
    }
}
