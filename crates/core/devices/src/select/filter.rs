//! Which devices are selected by what they support.

use host::ParseError;
use strum::{Display, EnumString, FromRepr};

use crate::{Device, DriverModel};

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
