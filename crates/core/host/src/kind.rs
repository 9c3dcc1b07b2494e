//! The kind of a device. It follows from the facts about its adapter, and no file contains it.

use strum::{Display, EnumString, VariantNames};

use crate::text::file_values::named_value;
use crate::{Adapter, Attribute, Vendor};

/// What a device is, whatever its driver model: a GPU in MCDM mode, without a display, is a GPU.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Display, EnumString, VariantNames)]
#[strum(serialize_all = "lowercase", ascii_case_insensitive)]
pub enum DeviceKind {
    Gpu,
    /// A neural processor.
    Npu,
    /// Another device that only computes.
    Accelerator,
}

named_value!(DeviceKind);

impl DeviceKind {
    /// The kind of the device of an adapter: the hardware type, if Windows reports one. Older
    /// versions of Windows do not. Otherwise a device with a display is a GPU, and for other devices
    /// the vendor decides.
    ///
    /// NVIDIA makes only GPUs. Which hardware type Windows reports for its GPUs in MCDM mode is not
    /// known, so the hardware types of accelerators do not count for them.
    #[must_use]
    pub fn of(adapter: &Adapter) -> DeviceKind {
        let has = |attribute| adapter.attributes.has(attribute);
        let vendor = adapter.vendor();
        let is_accelerator = has(Attribute::ComputeAccelerator) || has(Attribute::MediaAccelerator);
        let makes_npus = matches!(vendor, Vendor::Amd | Vendor::Intel | Vendor::Qualcomm);
        if has(Attribute::Gpu) {
            DeviceKind::Gpu
        } else if has(Attribute::Npu) {
            DeviceKind::Npu
        } else if adapter.attributes.display() || vendor == Vendor::Nvidia {
            DeviceKind::Gpu
        } else if makes_npus && !is_accelerator {
            DeviceKind::Npu
        } else {
            DeviceKind::Accelerator
        }
    }
}
