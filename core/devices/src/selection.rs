//! Selection: adapters to devices, and the reason for each adapter left out.
//!
//! One broken adapter never hides the rest: whatever cannot be a device is told
//! and passed over.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use crate::text::fold;
use crate::{
    Adapter, Attachment, Device, DeviceScope, DriverModel, HostSnapshot, Kept, Luid, Placement,
    Realness,
};

/// Which devices are wanted by what they support. The numbers are those of the
/// discovery library's C interface.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(i32)]
pub enum Filter {
    /// Every device.
    #[default]
    All = 0,
    /// Display, whatever else.
    Display = 1,
    /// Compute, whatever else.
    Compute = 2,
    /// Display and no compute.
    DisplayOnly = 3,
    /// Compute and no display.
    ComputeOnly = 4,
    /// Both.
    DisplayAndCompute = 5,
}

impl Filter {
    /// All filters, in the order of their numbers.
    pub const ALL: [Filter; 6] = [
        Filter::All,
        Filter::Display,
        Filter::Compute,
        Filter::DisplayOnly,
        Filter::ComputeOnly,
        Filter::DisplayAndCompute,
    ];

    /// The name on command lines.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Filter::All => "all",
            Filter::Display => "display",
            Filter::Compute => "compute",
            Filter::DisplayOnly => "display-only",
            Filter::ComputeOnly => "compute-only",
            Filter::DisplayAndCompute => "display-and-compute",
        }
    }

    /// The filter with this number in the C interface.
    #[must_use]
    pub fn from_number(number: i32) -> Option<Filter> {
        Filter::ALL.into_iter().find(|f| *f as i32 == number)
    }

    /// The filter that a driver model stands for.
    #[must_use]
    pub const fn of(model: DriverModel) -> Filter {
        match model {
            DriverModel::Wddm => Filter::DisplayAndCompute,
            DriverModel::Mcdm => Filter::ComputeOnly,
            DriverModel::Legacy => Filter::Display,
        }
    }

    /// Whether `device` is wanted.
    #[must_use]
    pub const fn admits(self, device: &Device) -> bool {
        let (display, compute) = (device.display.is_yes(), device.compute.is_yes());
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

impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The text names no filter.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "`{0}` is not a filter (all, display, compute, display-only, compute-only or \
     display-and-compute)"
)]
pub struct FilterError(String);

impl FromStr for Filter {
    type Err = FilterError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let found = Filter::ALL.into_iter().find(|f| f.name().eq_ignore_ascii_case(text));
        found.ok_or_else(|| FilterError(text.to_owned()))
    }
}

/// What a discovery asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Criteria {
    /// By support.
    pub filter: Filter,
    /// Whether integrated devices are wanted.
    pub integrated: DeviceScope,
    /// Whether detachable devices are wanted.
    pub detachable: DeviceScope,
}

/// The devices of a snapshot, and what was left out.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Selection {
    /// In the order the host lists their adapters.
    pub devices: Vec<Device>,
    /// In the same order; adapters that could not be read come last.
    pub skipped: Vec<Skipped>,
}

/// An adapter that was left out.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Skipped {
    /// The adapter.
    pub luid: Luid,
    /// Its `DXCore` description; empty where it could not be read.
    pub description: String,
    /// Why.
    pub reason: SkipReason,
}

/// Why an adapter is not among the devices.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum SkipReason {
    /// `IsHardware` is false.
    #[error("it is a software adapter")]
    Software,
    /// No `PnP` device carries the LUID.
    #[error("no PnP device carries its LUID")]
    NoPnpDevice,
    /// Another adapter of the snapshot has the same `PnP` device.
    #[error("its PnP device is that of the adapter with LUID {0} already")]
    SamePnpDevice(Luid),
    /// Integrated, and not asked for.
    #[error("it is integrated, and includeIntegrated is off")]
    Integrated,
    /// Detachable, and not asked for.
    #[error("it is detachable, and includeDetachable is off")]
    Detachable,
    /// The filter does not admit it.
    #[error("it supports {0}; wanted is {1}")]
    Filtered(Abilities, Filter),
    /// No enabled driver model offers it.
    #[error("it supports {0}, which none of the enabled driver models ({1}) offers")]
    NoModel(Abilities, ModelList),
    /// Its description lacks the text that `legacy` asks for.
    #[error("its description does not contain `{0}`")]
    Name(String),
    /// A container is given a device by its location path.
    #[error("Windows knows no location path for it, so no container can be given it alone")]
    NoLocationPath,
    /// The source could not read it.
    #[error("{0}")]
    Unreadable(String),
}

/// What a device supports, in words.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Abilities {
    display: bool,
    compute: bool,
}

impl Abilities {
    pub(crate) fn of(device: &Device) -> Abilities {
        Abilities { display: device.display.is_yes(), compute: device.compute.is_yes() }
    }
}

impl fmt::Display for Abilities {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match (self.display, self.compute) {
            (true, true) => "display and compute",
            (true, false) => "display but not compute",
            (false, true) => "compute but not display",
            (false, false) => "neither display nor compute",
        })
    }
}

/// The enabled driver models, in words.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ModelList(pub(crate) Vec<DriverModel>);

impl fmt::Display for ModelList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, model) in self.0.iter().enumerate() {
            if n > 0 {
                f.write_str(", ")?;
            }
            f.write_str(model.name())?;
        }
        Ok(())
    }
}

/// Selects the devices that `criteria` asks for.
#[must_use]
pub fn discover(snapshot: &HostSnapshot, criteria: Criteria) -> Selection {
    let (devices, skipped) = select(snapshot, |device| {
        in_scope(&device, criteria.integrated, criteria.detachable)?;
        if criteria.filter.admits(&device) {
            return Ok(device);
        }
        Err(SkipReason::Filtered(Abilities::of(&device), criteria.filter))
    });
    Selection { devices, skipped }
}

/// Makes a device of each adapter that has one, and hands it to `judge`.
pub(crate) fn select<T>(
    snapshot: &HostSnapshot,
    mut judge: impl FnMut(Device) -> Result<T, SkipReason>,
) -> (Vec<T>, Vec<Skipped>) {
    let mut taken = Vec::new();
    let mut skipped = Vec::new();
    let mut seen = BTreeMap::new();
    for adapter in &snapshot.adapters {
        let device = identify(adapter, &mut seen).map(|device| Device {
            cuda_uuid: snapshot.gpu_uuids.get(&device.id).cloned(),
            ..device
        });
        match device.and_then(&mut judge) {
            Ok(device) => taken.push(device),
            Err(reason) => skipped.push(Skipped {
                luid: adapter.luid,
                description: adapter.driver_description.clone(),
                reason,
            }),
        }
    }
    let unreadable = snapshot.warnings.iter().filter(|w| w.kept == Kept::Not);
    skipped.extend(unreadable.map(|warning| Skipped {
        luid: warning.luid,
        description: String::new(),
        reason: SkipReason::Unreadable(warning.text.clone()),
    }));
    (taken, skipped)
}

/// The device of an adapter, if it is hardware with a `PnP` device of its own.
fn identify(adapter: &Adapter, seen: &mut BTreeMap<String, Luid>) -> Result<Device, SkipReason> {
    if adapter.realness == Realness::Software {
        return Err(SkipReason::Software);
    }
    let pnp = adapter.pnp.as_ref().ok_or(SkipReason::NoPnpDevice)?;
    if let Some(first) = seen.insert(fold(pnp.id.as_str()), adapter.luid) {
        seen.insert(fold(pnp.id.as_str()), first);
        return Err(SkipReason::SamePnpDevice(first));
    }
    Ok(Device::new(adapter, pnp))
}

/// Whether integrated and detachable devices are asked for.
pub(crate) fn in_scope(
    device: &Device,
    integrated: DeviceScope,
    detachable: DeviceScope,
) -> Result<(), SkipReason> {
    if device.placement == Placement::Integrated && integrated == DeviceScope::Exclude {
        return Err(SkipReason::Integrated);
    }
    if device.attachment == Attachment::Detachable && detachable == DeviceScope::Exclude {
        return Err(SkipReason::Detachable);
    }
    Ok(())
}
