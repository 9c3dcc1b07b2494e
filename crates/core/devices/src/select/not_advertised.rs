//! What keeps an adapter from being advertised: each reason with its text, its remedy and its check.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use host::{Adapter, HostFacts, Luid, PnpDevice, PnpId};
use strum::{EnumIter, IntoEnumIterator};

use crate::{Device, DriverModel, Filter, ResourceName};

/// An adapter that is not advertised, or that a discovery skips.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NotAdvertised {
    pub luid: Luid,
    /// Its name; empty if it could not be read.
    pub description: String,
    pub reason: NotAdvertisedReason,
    /// The resource that would advertise it without the reason, if there is one.
    pub resource: Option<ResourceName>,
}

/// Why a device was not accepted.
pub(crate) struct Rejection {
    pub(crate) reason: NotAdvertisedReason,
    /// See [`NotAdvertised::resource`].
    pub(crate) resource: Option<ResourceName>,
}

impl From<NotAdvertisedReason> for Rejection {
    fn from(reason: NotAdvertisedReason) -> Self {
        Rejection { reason, resource: None }
    }
}

/// Why an adapter is not advertised.
#[derive(Clone, PartialEq, Eq, Debug, EnumIter, thiserror::Error)]
pub enum NotAdvertisedReason {
    /// `IsHardware` is false.
    #[error("software adapters are not supported")]
    Software,
    /// A display of a remote session or of a program such as Parsec.
    #[error("adapter is an indirect display, not a GPU")]
    IndirectDisplay,
    /// The Basic Render Driver or Hyper-V's display.
    #[error(
        "adapter is one of Microsoft's basic adapters, not a GPU; only a rule of `resources` with \
         its pciId advertises it"
    )]
    BasicAdapter,
    /// No `PnP` device has the LUID.
    #[error("no PnP device has the LUID of the adapter")]
    NoPnpDevice,
    /// Another adapter of the snapshot has the same `PnP` device.
    #[error("PnP device already belongs to the adapter with LUID {0}")]
    SamePnpDevice(Luid),
    /// Integrated adapters are excluded.
    #[error("adapter is integrated and includeIntegrated is false")]
    Integrated,
    /// Detachable adapters are excluded.
    #[error("adapter is detachable and includeDetachable is false")]
    Detachable,
    /// The adapter does not pass the filter of a discovery.
    #[error("not matched by the filter {1}: adapter supports {0}")]
    Filtered(&'static str, Filter),
    /// No enabled driver model advertises the adapter.
    #[error("not matched by any enabled driver model ({enabled}): adapter supports {supported}")]
    NoModel {
        supported: &'static str,
        /// The enabled driver models.
        enabled: String,
        /// The driver model that would advertise it, if there is one.
        needed: Option<DriverModel>,
    },
    /// Its description does not contain the text that `legacy` requires.
    #[error("adapter description does not contain `{0}`")]
    Name(String),
    /// A device is assigned to a container by its location path.
    #[error(
        "Windows reports no location path, so the device cannot be assigned to a container \
         individually"
    )]
    NoLocationPath,
    /// Another device has its location path, so an allocation by this path can give either of them.
    #[error(
        "location path {path} is also that of the device `{other}`, so neither can be assigned to a \
         container individually"
    )]
    SameLocationPath {
        path: String,
        /// The ID of the other device.
        other: String,
    },
    /// The source could not read it.
    #[error("{0}")]
    Unreadable(String),
}

/// What to do about an adapter that is not advertised.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Remedy {
    None,
    /// Install the driver of the GPU's vendor, or give the machine a GPU.
    VendorDriver,
    /// Change the configuration like this, if pods should get the device.
    Configure(&'static str),
    /// Correct the host or the inventory like this.
    Repair(&'static str),
}

impl NotAdvertisedReason {
    /// Every reason, with empty names.
    pub fn every() -> impl Iterator<Item = NotAdvertisedReason> {
        NotAdvertisedReason::iter()
    }

    /// Whether the adapter is neither a GPU nor an accelerator.
    #[must_use]
    pub const fn is_no_gpu(&self) -> bool {
        matches!(
            self,
            NotAdvertisedReason::Software
                | NotAdvertisedReason::IndirectDisplay
                | NotAdvertisedReason::BasicAdapter
        )
    }

    /// What to do about the adapter on this host.
    #[must_use]
    pub const fn remedy(&self, host: &HostFacts) -> Remedy {
        match self {
            // Every host has software adapters, and remote sessions are normal. Adapters with the
            // same device are linked on one board.
            NotAdvertisedReason::Software
            | NotAdvertisedReason::IndirectDisplay
            | NotAdvertisedReason::SamePnpDevice(_)
            | NotAdvertisedReason::Filtered(..) => Remedy::None,
            NotAdvertisedReason::BasicAdapter
            | NotAdvertisedReason::NoModel { needed: None, .. } => Remedy::VendorDriver,
            NotAdvertisedReason::Integrated => Remedy::Configure("set `includeIntegrated: true`"),
            NotAdvertisedReason::Detachable => Remedy::Configure("set `includeDetachable: true`"),
            NotAdvertisedReason::NoModel { needed: Some(DriverModel::Mcdm), .. } => {
                Remedy::Configure("enable the driver model mcdm (`--driver-model mcdm`)")
            }
            NotAdvertisedReason::NoModel { needed: Some(_), .. } => {
                Remedy::Configure("enable the driver model wddm (`--driver-model wddm`)")
            }
            NotAdvertisedReason::Name(_) => Remedy::Configure(
                "set DIRECTX_GPU_MATCH_NAME to a part of the adapter's name, or use the driver \
                 models wddm and mcdm instead of legacy",
            ),
            NotAdvertisedReason::NoPnpDevice if !host.is_this_machine => Remedy::Repair(
                "record the node again; in an inventory written by hand, give the adapter the key \
                 `pnp` with `id` and `locationPaths` (docs/reference/inventory.md)",
            ),
            NotAdvertisedReason::NoPnpDevice | NotAdvertisedReason::Unreadable(_) => {
                Remedy::Repair(
                    "run doctor again in a minute: its driver may be being replaced, or it belongs to \
                 a remote session; if the problem persists, reinstall the driver and restart the \
                 host",
                )
            }
            NotAdvertisedReason::NoLocationPath => Remedy::Repair(
                "Device Manager shows no location path for it either: update the firmware, or pass \
                 the device to this virtual machine as a PCI device; in an inventory, add \
                 locationPaths",
            ),
            NotAdvertisedReason::SameLocationPath { .. } => Remedy::Repair(
                "an allocation by this path could give a container either device: restart the \
                 host; if the problem persists, update the firmware; in an inventory, correct \
                 locationPaths",
            ),
        }
    }

    /// How to change the configuration so that it advertises the device of this host, if it excludes
    /// it.
    #[must_use]
    pub fn configuration_fix(&self, host: &HostFacts) -> Option<&'static str> {
        match self.remedy(host) {
            Remedy::Configure(fix) => Some(fix),
            Remedy::None | Remedy::VendorDriver | Remedy::Repair(_) => None,
        }
    }
}

/// What a device supports, for messages.
pub(crate) fn supported(device: &Device) -> &'static str {
    match (device.display, device.compute) {
        (true, true) => "display and compute",
        (true, false) => "display but not compute",
        (false, true) => "compute but not display",
        (false, false) => "neither display nor compute",
    }
}

/// Checks that the adapter is hardware with a `PnP` device that no earlier adapter has. `seen`
/// contains the devices of the earlier adapters.
pub(crate) fn check_adapter<'a>(
    adapter: &'a Adapter,
    seen: &mut HashMap<PnpId, Luid>,
) -> Result<&'a PnpDevice, NotAdvertisedReason> {
    if !adapter.hardware {
        return Err(NotAdvertisedReason::Software);
    }
    if adapter.is_indirect_display() {
        return Err(NotAdvertisedReason::IndirectDisplay);
    }
    let pnp = adapter.pnp.as_ref().ok_or(if adapter.hardware_id.is_basic_adapter() {
        NotAdvertisedReason::BasicAdapter
    } else {
        NotAdvertisedReason::NoPnpDevice
    })?;
    match seen.entry(pnp.id.clone()) {
        Entry::Occupied(first) => return Err(NotAdvertisedReason::SamePnpDevice(*first.get())),
        Entry::Vacant(new) => new.insert(adapter.luid),
    };
    Ok(pnp)
}

/// Checks that the device is not one of Microsoft's basic adapters, unless they are `included`.
pub(crate) fn check_basic_adapter(
    device: &Device,
    included: bool,
) -> Result<(), NotAdvertisedReason> {
    if device.hardware_id.is_basic_adapter() && !included {
        return Err(NotAdvertisedReason::BasicAdapter);
    }
    Ok(())
}

/// Checks whether integrated and detachable devices are included.
pub(crate) fn check_scope(
    device: &Device,
    include_integrated: bool,
    include_detachable: bool,
) -> Result<(), NotAdvertisedReason> {
    if device.integrated && !include_integrated {
        return Err(NotAdvertisedReason::Integrated);
    }
    if device.detachable && !include_detachable {
        return Err(NotAdvertisedReason::Detachable);
    }
    Ok(())
}

/// Checks whether the device passes the filter of a discovery.
pub(crate) fn check_filter(device: &Device, filter: Filter) -> Result<(), NotAdvertisedReason> {
    if filter.matches(device) {
        return Ok(());
    }
    Err(NotAdvertisedReason::Filtered(supported(device), filter))
}
