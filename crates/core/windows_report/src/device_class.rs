//! Recognizes display and compute devices, also those without a driver.

/// `GUID_DEVCLASS_DISPLAY` (devguid.h).
const DISPLAY: u128 = 0x4d36_e968_e325_11ce_bfc1_0800_2be1_0318;
/// `GUID_DEVCLASS_COMPUTEACCELERATOR` (devguid.h).
const COMPUTE_ACCELERATOR: u128 = 0xf01a_9d53_3ff6_48d2_9f97_c8a7_004b_e10c;
/// The class of a device that never had a driver.
const NO_CLASS: u128 = 0;

/// The compatible IDs of the PCI classes 03 (display controllers) and 12 (processing accelerators).
const PCI_CLASSES: [&str; 2] = [r"PCI\CC_03", r"PCI\CC_12"];

/// Whether a device of this setup class displays or computes. A device gets its class from a
/// driver. Until then its PCI class decides, which is in the `compatible_ids`.
pub fn displays_or_computes(class: u128, compatible_ids: impl FnOnce() -> Vec<String>) -> bool {
    match class {
        DISPLAY | COMPUTE_ACCELERATOR => true,
        NO_CLASS => compatible_ids().iter().any(|id| {
            let id = id.to_ascii_uppercase();
            PCI_CLASSES.iter().any(|class| id.starts_with(class))
        }),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_class_decides_and_without_it_the_pci_class() {
        let ids = |ids: &[&str]| ids.iter().map(ToString::to_string).collect::<Vec<_>>();
        let tesla = [r"PCI\VEN_10DE&DEV_1EB8&CC_0302", r"PCI\VEN_10DE", r"pci\cc_030200"];
        let audio = [r"PCI\VEN_10DE&CC_0403", r"PCI\CC_040300"];
        let npu = [r"PCI\CC_1200"];
        let media = 0x4d36_e96c_e325_11ce_bfc1_0800_2be1_0318;
        for (class, compatible, expected) in [
            (DISPLAY, &[][..], true),
            (COMPUTE_ACCELERATOR, &[], true),
            (media, &tesla, false),
            (NO_CLASS, &tesla, true),
            (NO_CLASS, &npu, true),
            (NO_CLASS, &audio, false),
            (NO_CLASS, &[], false),
        ] {
            let found = displays_or_computes(class, || ids(compatible));
            assert_eq!(found, expected, "{class:x} {compatible:?}");
        }
    }
}
