//! Vendors of hardware.

use std::str::FromStr;

use strum::Display;

use crate::ids::PnpId;
use crate::text::parse::ParseError;

/// A hardware vendor, identified by its PCI or ACPI vendor ID. The `PnP` manufacturer is
/// free text ("Advanced Micro Devices, Inc.") and is used only for display.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Display)]
#[strum(serialize_all = "lowercase")]
pub enum Vendor {
    /// 1002 and 1022.
    Amd,
    /// 8086.
    Intel,
    /// 1414.
    Microsoft,
    /// 10DE.
    Nvidia,
    /// 5143.
    Qualcomm,
    /// Any other vendor ID.
    #[strum(to_string = "0x{0:04x}")]
    Other(u32),
}

impl Vendor {
    /// The vendors with a name.
    pub const NAMED: [Vendor; 5] =
        [Vendor::Amd, Vendor::Intel, Vendor::Microsoft, Vendor::Nvidia, Vendor::Qualcomm];

    /// The PCI vendor ID.
    #[must_use]
    pub const fn pci_id(self) -> u32 {
        match self {
            Vendor::Amd => 0x1002,
            Vendor::Intel => 0x8086,
            Vendor::Microsoft => 0x1414,
            Vendor::Nvidia => 0x10DE,
            Vendor::Qualcomm => 0x5143,
            Vendor::Other(id) => id,
        }
    }

    /// The vendor with this PCI ID. For a device on the ACPI bus, `DXCore` reports the four letters
    /// of the vendor as a number, the first one in the lowest byte.
    #[must_use]
    pub const fn from_id(id: u32) -> Vendor {
        match id {
            0x1002 | 0x1022 => return Vendor::Amd,
            0x8086 => return Vendor::Intel,
            0x1414 => return Vendor::Microsoft,
            0x10DE => return Vendor::Nvidia,
            0x5143 => return Vendor::Qualcomm,
            _ => {}
        }
        match Vendor::from_acpi_id(id.to_le_bytes()) {
            Some(vendor) => vendor,
            None => Vendor::Other(id),
        }
    }

    /// The vendors in UEFI's registry of ACPI IDs.
    const fn from_acpi_id(id: [u8; 4]) -> Option<Vendor> {
        Some(match &id {
            b"AMDI" => Vendor::Amd,
            b"INTC" => Vendor::Intel,
            b"MSFT" => Vendor::Microsoft,
            b"NVDA" => Vendor::Nvidia,
            b"QCOM" => Vendor::Qualcomm,
            _ => return None,
        })
    }

    /// The vendor in a device instance ID such as `PCI\VEN_10DE&DEV_1EB8…` or `ACPI\NVDA200A\0`.
    #[must_use]
    pub fn of_instance(id: &PnpId) -> Option<Vendor> {
        let id = id.as_str().to_ascii_uppercase();
        let vendor = if let Some(pci) = id.strip_prefix(r"PCI\VEN_") {
            Vendor::from_id(u32::from_str_radix(pci.get(..4)?, 16).ok()?)
        } else {
            let acpi = id.strip_prefix(r"ACPI\")?;
            let letters = acpi.strip_prefix("VEN_").unwrap_or(acpi).as_bytes();
            Vendor::from_acpi_id(*letters.first_chunk()?)?
        };
        (!matches!(vendor, Vendor::Other(_))).then_some(vendor)
    }

    /// The vendor of a device with this hardware ID, or else in its instance ID.
    #[must_use]
    pub fn of(id: u32, instance: Option<&PnpId>) -> Vendor {
        match Vendor::from_id(id) {
            unknown @ Vendor::Other(_) => instance.and_then(Vendor::of_instance).unwrap_or(unknown),
            known => known,
        }
    }

    /// Whether a device of this vendor is only a display controller, not a GPU: the graphics of a
    /// server's management controller, or of a virtual machine.
    #[must_use]
    pub const fn makes_display_controller(self, displays: bool, computes: bool) -> bool {
        displays && !computes && !self.makes_gpus()
    }

    /// Whether it makes GPUs that compute.
    #[must_use]
    pub const fn makes_gpus(self) -> bool {
        matches!(self, Vendor::Amd | Vendor::Intel | Vendor::Nvidia | Vendor::Qualcomm)
    }
}

impl FromStr for Vendor {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let expected =
            "a vendor (amd, intel, microsoft, nvidia, qualcomm, or a vendor ID such as 0x1a03)";
        let lower = text.to_ascii_lowercase();
        if let Some(named) = Vendor::NAMED.into_iter().find(|v| v.to_string() == lower) {
            return Ok(named);
        }
        lower
            .strip_prefix("0x")
            .filter(|hex| !hex.is_empty() && hex.bytes().all(|b| b.is_ascii_hexdigit()))
            .and_then(|hex| u32::from_str_radix(hex, 16).ok())
            .map(Vendor::from_id)
            .ok_or_else(|| ParseError::new(text, expected))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn every_id_of_a_vendor_is_recognized() {
        for vendor in Vendor::NAMED {
            assert_eq!(Vendor::from_id(vendor.pci_id()), vendor);
        }
        assert_eq!(Vendor::from_id(0x1022), Vendor::Amd);
        for (id, vendor) in [
            (0x4D4F_4351, Vendor::Qualcomm),
            (0x4144_564E, Vendor::Nvidia),
            (0x4943_4D41, Vendor::Other(0x4943_4D41)),
            (u32::from_le_bytes(*b"INTC"), Vendor::Intel),
        ] {
            assert_eq!(Vendor::from_id(id), vendor);
        }
        assert_eq!("0x10DE".parse(), Ok(Vendor::Nvidia));
        assert_eq!("NVidia".parse(), Ok(Vendor::Nvidia));
    }

    #[test]
    fn free_text_is_not_a_vendor() {
        for bad in ["", "Advanced Micro Devices, Inc.", "0x", "0x+1", "0x123456789", "1a03"] {
            assert!(bad.parse::<Vendor>().is_err(), "{bad}");
        }
    }

    #[test]
    fn the_vendor_is_also_in_the_instance_id() {
        for (id, vendor) in [
            (r"ACPI\NVDA200A\0", Some(Vendor::Nvidia)),
            (r"acpi\qcom0d0a\2&1a", Some(Vendor::Qualcomm)),
            (r"ACPI\VEN_INTC&DEV_1048\0", Some(Vendor::Intel)),
            (r"ACPI\AMDI0052\0", Some(Vendor::Amd)),
            (r"PCI\VEN_1002&DEV_73A1\1", Some(Vendor::Amd)),
            (r"PCI\VEN_1A03&DEV_2000\1", None),
            (r"ACPI\PNP0A08\0", None),
            (r"ACPI\NV", None),
            (r"PCI\VEN_1", None),
            (r"ROOT\NVDA200A\0", None),
        ] {
            assert_eq!(Vendor::of_instance(&PnpId::new(id)), vendor, "{id}");
        }
        let acpi = PnpId::new(r"ACPI\NVDA200A\0");
        assert_eq!(Vendor::of(7, Some(&acpi)), Vendor::Nvidia);
        assert_eq!(Vendor::of(0x1002, Some(&acpi)), Vendor::Amd);
        assert_eq!(Vendor::of(7, None), Vendor::Other(7));
    }

    proptest! {
        #[test]
        fn vendor_round_trips(id: u32) {
            let vendor = Vendor::from_id(id);
            prop_assert_eq!(vendor.to_string().parse(), Ok(vendor));
        }
    }
}
