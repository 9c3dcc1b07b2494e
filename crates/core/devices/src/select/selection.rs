//! Selection: turns adapters into devices, with a reason for each adapter that is skipped.
//!
//! One broken adapter never hides the others: an adapter that cannot become a device is
//! skipped and reported.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use strum::{Display, EnumString, FromRepr};

use crate::ParseError;
use crate::{
    Adapter, Device, DriverModel, HostFacts, HostSnapshot, LocationPath, Luid, Platform, PnpId,
    RejectedValue, ResourceName, Vendor, WarningEffect,
};

/// Selects devices by what they support. The discovery library's C interface has the same
/// numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Display, EnumString, FromRepr)]
#[strum(serialize_all = "kebab-case", ascii_case_insensitive, parse_err_ty = ParseError, parse_err_fn = not_a_filter)]
#[repr(i32)]
pub enum Filter {
    /// Every device.
    #[default]
    All = 0,
    /// Devices that support display.
    Display = 1,
    /// Devices that support compute.
    Compute = 2,
    /// Devices that support display but not compute.
    DisplayOnly = 3,
    /// Devices that support compute but not display.
    ComputeOnly = 4,
    /// Devices that support both.
    DisplayAndCompute = 5,
}

impl Filter {
    /// The filter for the devices of a driver model.
    #[must_use]
    pub const fn of(model: DriverModel) -> Filter {
        match model {
            DriverModel::Wddm => Filter::DisplayAndCompute,
            DriverModel::Mcdm => Filter::ComputeOnly,
            DriverModel::Legacy => Filter::Display,
        }
    }

    /// Whether `device` passes the filter.
    #[must_use]
    pub const fn matches(self, device: &Device) -> bool {
        let display = device.display;
        let compute = device.compute;
        match self {
            Filter::All => true,
            Filter::Display => display,
            Filter::Compute => compute,
            Filter::DisplayOnly => display && !compute,
            Filter::ComputeOnly => compute && !display,
            Filter::DisplayAndCompute => display && compute,
        }
    }
}

fn not_a_filter(text: &str) -> ParseError {
    let expected =
        "a filter (all, display, compute, display-only, compute-only or display-and-compute)";
    ParseError::new(text, expected)
}

/// The criteria of a discovery.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Criteria {
    /// What a device must support.
    pub filter: Filter,
    /// Whether integrated devices are included.
    pub include_integrated: bool,
    /// Whether detachable devices are included.
    pub include_detachable: bool,
    /// Whether Microsoft's basic adapters are included, which no GPU is behind.
    pub include_basic: bool,
}

impl Criteria {
    /// Every GPU and accelerator.
    pub const ALL: Criteria = Criteria {
        filter: Filter::All,
        include_integrated: true,
        include_detachable: true,
        include_basic: false,
    };
}

/// The devices of a snapshot, and the adapters that were skipped.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Selection {
    /// The devices, in the order in which the host lists their adapters.
    pub devices: Vec<Device>,
    /// The skipped adapters in the same order, except that those which could not be read come last.
    pub skipped: Vec<Skipped>,
}

impl Selection {
    /// What was left out of `snapshot`, with the reasons, one line each.
    #[must_use]
    pub fn left_out(&self, snapshot: &HostSnapshot) -> Vec<String> {
        let partial = snapshot.warnings.iter().filter(|w| w.effect == WarningEffect::Incomplete);
        let mut lines: Vec<String> =
            partial.map(|w| format!("adapter {}: {}", w.luid, w.text)).collect();
        for device in &self.devices {
            if let Some(error) = device.rejected_store() {
                lines.push(format!("device {}: {error}; its files are not used", device.id));
            }
            for RejectedValue { key, value, why } in &device.runtime_files.rejected {
                lines.push(format!(
                    "device {}: skipping value `{value}` of {key}: {why}",
                    device.id
                ));
            }
        }
        lines.extend(self.skipped.iter().map(|Skipped { luid, description, reason, .. }| {
            let name = if description.is_empty() { "" } else { &format!(" ({description})") };
            format!("skipping adapter {luid}{name}: {reason}")
        }));
        lines
    }
}

/// An adapter that was skipped.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Skipped {
    /// The adapter.
    pub luid: Luid,
    /// Its name; empty if it could not be read.
    pub description: String,
    /// Why it was skipped.
    pub reason: SkipReason,
    /// The resource that would advertise it without the reason, if an offer skipped it and there is
    /// one.
    pub resource: Option<ResourceName>,
}

/// Why a device was not accepted.
pub(crate) struct Rejection {
    pub(crate) reason: SkipReason,
    /// See [`Skipped::resource`].
    pub(crate) resource: Option<ResourceName>,
}

impl From<SkipReason> for Rejection {
    fn from(reason: SkipReason) -> Self {
        Rejection { reason, resource: None }
    }
}

/// Why an adapter was skipped.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum SkipReason {
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
    /// The adapter does not pass the filter.
    #[error("not matched by the filter {1}: adapter supports {0}")]
    Filtered(&'static str, Filter),
    /// No enabled driver model advertises the adapter.
    #[error("not matched by any enabled driver model ({enabled}): adapter supports {supported}")]
    NoModel {
        /// What the adapter supports.
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
        "location path {0} is also that of the device `{1}`, so neither can be assigned to a container \
         individually"
    )]
    SameLocationPath(LocationPath, PnpId),
    /// NPUs are listed by `/dev/dxg`, and nothing can use them there (microsoft/WSL#40445).
    #[error(
        "compute-only devices such as NPUs cannot be used through /dev/dxg; a rule of `resources` \
         advertises them anyway"
    )]
    ComputeOnlyOnLinux,
    /// The source could not read it.
    #[error("{0}")]
    Unreadable(String),
}

impl SkipReason {
    /// Whether the adapter is neither a GPU nor an accelerator.
    #[must_use]
    pub const fn is_no_gpu(&self) -> bool {
        matches!(
            self,
            SkipReason::Software | SkipReason::IndirectDisplay | SkipReason::BasicAdapter
        )
    }

    /// How to change the configuration so that it advertises the device, if it excludes it.
    #[must_use]
    pub const fn configuration_fix(&self) -> Option<&'static str> {
        match self {
            SkipReason::Integrated => Some("set `includeIntegrated: true`"),
            SkipReason::Detachable => Some("set `includeDetachable: true`"),
            SkipReason::NoModel { needed: Some(DriverModel::Mcdm), .. } => {
                Some("enable the driver model mcdm (`--driver-model mcdm`)")
            }
            SkipReason::NoModel { needed: Some(_), .. } => {
                Some("enable the driver model wddm (`--driver-model wddm`)")
            }
            SkipReason::Name(_) => Some(
                "set DIRECTX_GPU_MATCH_NAME to a part of the adapter's name, or use the driver \
                 models wddm and mcdm instead of legacy",
            ),
            _ => None,
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

/// Selects the devices that meet `criteria`.
#[must_use]
pub fn discover(snapshot: &HostSnapshot, criteria: Criteria) -> Selection {
    let (devices, skipped) = select(snapshot, |device| -> Result<Device, SkipReason> {
        if device.hardware_id.is_basic_adapter() && !criteria.include_basic {
            return Err(SkipReason::BasicAdapter);
        }
        check_scope(&device, criteria.include_integrated, criteria.include_detachable)?;
        if criteria.filter.matches(&device) {
            return Ok(device);
        }
        Err(SkipReason::Filtered(supported(&device), criteria.filter))
    });
    Selection { devices, skipped }
}

/// Turns each adapter that is hardware with a `PnP` device into a device, and passes it
/// to `accept`.
pub(crate) fn select<T, R: Into<Rejection>>(
    snapshot: &HostSnapshot,
    mut accept: impl FnMut(Device) -> Result<T, R>,
) -> (Vec<T>, Vec<Skipped>) {
    let mut accepted = Vec::new();
    let mut skipped = Vec::new();
    let mut seen = HashMap::new();
    for adapter in &snapshot.adapters {
        let device = identify(adapter, &mut seen, &snapshot.host)
            .map(|device| Device { vendor_index: vendor_index(adapter, snapshot), ..device });
        let result = match device {
            Ok(device) => accept(device).map_err(Into::into),
            Err(reason) => Err(Rejection::from(reason)),
        };
        match result {
            Ok(device) => accepted.push(device),
            Err(Rejection { reason, resource }) => skipped.push(Skipped {
                luid: adapter.luid,
                description: adapter.name().to_owned(),
                reason,
                resource,
            }),
        }
    }
    let unreadable = snapshot.warnings.iter().filter(|w| w.effect == WarningEffect::Skipped);
    skipped.extend(unreadable.map(|warning| Skipped {
        luid: warning.luid,
        description: String::new(),
        reason: SkipReason::Unreadable(warning.text.clone()),
        resource: None,
    }));
    (accepted, skipped)
}

/// The position of a GPU of a Linux host among the GPUs of its vendor, and how many the vendor has.
/// Unknown while an adapter is unreadable, because the vendor's libraries may count it.
fn vendor_index(adapter: &Adapter, snapshot: &HostSnapshot) -> Option<(usize, usize)> {
    let is_partial = snapshot.warnings.iter().any(|w| w.effect == WarningEffect::Skipped);
    if snapshot.host.platform != Platform::LinuxDxg || is_partial {
        return None;
    }
    let own = &adapter.pnp.as_ref()?.id;
    let vendor = Vendor::from_id(adapter.hardware_id.vendor);
    let gpus = snapshot.adapters.iter().filter(|other| other.attributes.display());
    let mut ids: Vec<&PnpId> = gpus
        .filter(|other| Vendor::from_id(other.hardware_id.vendor) == vendor)
        .filter_map(|other| Some(&other.pnp.as_ref()?.id))
        .collect();
    // ROCm counts GPUs in the order of the list. Libraries of other vendors sort them by the PCI
    // address, which is at the end of the ID.
    if vendor != Vendor::Amd {
        ids.sort_by_key(|id| id.as_str().rsplit('\\').next().map(|end| (end.len(), end)));
    }
    // Several partitions of one GPU are one device.
    ids.dedup();
    Some((ids.iter().position(|id| *id == own)?, ids.len()))
}

/// The device of an adapter.
///
/// # Errors
/// The adapter is not hardware or an indirect display, it has no `PnP` device, or an earlier adapter
/// has the same one.
/// `seen` contains the `PnP` devices of the earlier adapters.
fn identify(
    adapter: &Adapter,
    seen: &mut HashMap<PnpId, Luid>,
    host: &HostFacts,
) -> Result<Device, SkipReason> {
    if !adapter.hardware {
        return Err(SkipReason::Software);
    }
    if adapter.is_indirect_display() {
        return Err(SkipReason::IndirectDisplay);
    }
    let pnp = adapter.pnp.as_ref().ok_or(if adapter.hardware_id.is_basic_adapter() {
        SkipReason::BasicAdapter
    } else {
        SkipReason::NoPnpDevice
    })?;
    match seen.entry(pnp.id.clone()) {
        Entry::Occupied(first) => return Err(SkipReason::SamePnpDevice(*first.get())),
        Entry::Vacant(new) => new.insert(adapter.luid),
    };
    Ok(Device::new(adapter, pnp, host))
}

/// Checks whether integrated and detachable devices are included.
pub(crate) fn check_scope(
    device: &Device,
    include_integrated: bool,
    include_detachable: bool,
) -> Result<(), SkipReason> {
    if device.integrated && !include_integrated {
        return Err(SkipReason::Integrated);
    }
    if device.detachable && !include_detachable {
        return Err(SkipReason::Detachable);
    }
    Ok(())
}
