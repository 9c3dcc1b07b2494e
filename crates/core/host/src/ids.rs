//! How Windows identifies adapters and devices.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::text::case_folding::fold_case;
use crate::text::text_newtype::string_id;

/// The locally unique identifier of an adapter. It changes on reboot, driver
/// upgrade and disable/enable, so it never names a device across refreshes.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize,
)]
pub struct Luid(pub i64);

impl fmt::Display for Luid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

string_id! {
    /// A `PnP` device instance ID such as `PCI\VEN_10DE&DEV_1EB8…\3&13C0B0C5&1&D8`.
    PnpId
}

impl PnpId {
    /// Whether Hyper-V made the device for a GPU or compute accelerator of its host (GPU-PV). The
    /// IDs are in the source of Microsoft's driver for Linux, `dxgkrnl`.
    #[must_use]
    pub fn is_paravirtualized(&self) -> bool {
        self.begins_with_one_of(&[r"PCI\VEN_1414&DEV_008E", r"PCI\VEN_1414&DEV_008A"])
    }
}

/// The beginnings of the IDs of devices that no bus has: `PnP`'s own root, and the software device
/// enumerator, in which remote sessions and programs such as Parsec make displays.
const SOFTWARE_ENUMERATED: [&str; 2] = [r"ROOT\", r"SWD\"];

/// The beginnings of the IDs of Hyper-V's display (`HV_SYNTHVID_GUID` of Linux' hyperv.h; 1414:5353
/// in virtual machines of generation 1).
const HYPER_V_VIDEO: [&str; 2] =
    [r"VMBUS\{DA0A7802-E377-4AAC-8E77-0558EB1073F8}", r"PCI\VEN_1414&DEV_5353"];

impl PnpId {
    /// Whether software enumerated the device. GPUs and accelerators are on PCI, ACPI or `VMBus`.
    #[must_use]
    pub fn is_software_enumerated(&self) -> bool {
        self.begins_with_one_of(&SOFTWARE_ENUMERATED)
    }

    /// Whether this is Hyper-V's display of a virtual machine: software, without a GPU.
    #[must_use]
    pub fn is_hyper_v_video(&self) -> bool {
        self.begins_with_one_of(&HYPER_V_VIDEO)
    }

    fn begins_with_one_of(&self, beginnings: &[&str]) -> bool {
        let id = fold_case(self.as_str());
        beginnings.iter().any(|beginning| id.starts_with(beginning))
    }
}

string_id! {
    /// A device location path such as `PCIROOT(0)#PCI(1B00)`
    /// (`DEVPKEY_Device_LocationPaths`, first entry).
    LocationPath
}
string_id! {
    /// A driver key, `{class guid}\NNNN`, below
    /// `HKLM\SYSTEM\CurrentControlSet\Control\Class` (`DEVPKEY_Device_Driver`).
    DriverKey
}

impl DriverKey {
    /// The key's full registry path, in the format of the original discovery library.
    #[must_use]
    pub fn registry_path(&self) -> String {
        format!("HKEY_LOCAL_MACHINE\\SYSTEM\\CurrentControlSet\\Control\\Class\\{self}")
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeSet, HashSet};

    use super::*;

    #[test]
    fn devices_of_hyper_v_for_a_gpu_of_its_host_are_paravirtualized() {
        for (id, expected) in [
            (r"PCI\VEN_1414&DEV_008E&SUBSYS_00000000&REV_00\5&3A1CC9D5&0&0", true),
            (r"pci\ven_1414&dev_008a\1", true),
            (r"PCI\VEN_1414&DEV_5353\1", false),
            (r"PCI\VEN_10DE&DEV_008E\1", false),
        ] {
            assert_eq!(PnpId::new(id).is_paravirtualized(), expected, "{id}");
        }
    }

    #[test]
    fn only_ids_below_root_and_swd_are_software_enumerated() {
        for (id, expected) in [
            (r"ROOT\DISPLAY\0000", true),
            (r"root\Display\0001", true),
            (r"SWD\REMOTEDISPLAYENUM\RDPIDD_INDIRECTDISPLAY&SESSIONID_0002", true),
            (r"ROOTED\DISPLAY\0000", false),
            (r"SWDEVICE\1", false),
            (r"PCI\VEN_10DE&DEV_1EB8&SUBSYS_12A210DE&REV_A1\ROOT\SWD\0", false),
            (r"PCI\VEN_1414&DEV_008E&SUBSYS_00000000&REV_00\5&3A1CC9D5&0&0", false),
            (r"ACPI\QCOM0D51\2&DABA3FF&0", false),
            (r"VMBUS\{44C4F61D-4444-4400-9D52-802E27EDE19F}\1", false),
        ] {
            assert_eq!(PnpId::new(id).is_software_enumerated(), expected, "{id}");
        }
    }

    #[test]
    fn the_display_of_hyper_v_is_known_in_virtual_machines_of_both_generations() {
        for (id, expected) in [
            (r"VMBUS\{da0a7802-e377-4aac-8e77-0558eb1073f8}\{5620e0c7}", true),
            (r"PCI\VEN_1414&DEV_5353&SUBSYS_00000000&REV_00\3&267A616A&0&40", true),
            (r"PCI\VEN_1414&DEV_008E&SUBSYS_00000000&REV_00\5&3A1CC9D5&0&0", false),
            (r"VMBUS\{44C4F61D-4444-4400-9D52-802E27EDE19F}\1", false),
        ] {
            assert_eq!(PnpId::new(id).is_hyper_v_video(), expected, "{id}");
        }
    }

    /// Sorting, sets and maps agree about which IDs are equal.
    #[test]
    fn an_id_is_compared_without_case_and_keeps_its_spelling() {
        let [upper, lower, other] = [r"PCI\VEN_10DE\É", r"pci\ven_10de\é", r"pci\ven_1002\É"];
        let [upper, lower, other] = [upper, lower, other].map(PnpId::new);
        assert_eq!(upper, lower);
        assert_ne!(upper, other);
        assert!(other < upper && other < lower);
        assert_eq!(lower.to_string(), r"pci\ven_10de\é");
        let all = || [upper.clone(), lower.clone(), other.clone()];
        assert_eq!(BTreeSet::from(all()).len(), 2);
        assert_eq!(HashSet::from(all()).len(), 2);
    }
}
