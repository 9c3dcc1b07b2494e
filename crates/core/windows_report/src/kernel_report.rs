//! Interprets what the graphics kernel (D3DKMT) reports about an adapter, on Windows versions
//! without `DXCore`.
//!
//! The kernel has no attributes. They follow from the flags of the adapter and from its driver
//! model: a driver of WDDM 2.0 or newer is assumed to support Direct3D 12, which came with
//! that version. The feature level stays unknown.

use host::{Adapter, Attribute, Attributes, DriverVersion, HardwareId, Luid, NvidiaFacts, PnpId};

/// The flags of `D3DKMT_ADAPTERTYPE` (d3dkmthk.h).
const RENDER_SUPPORTED: u32 = 1;
const SOFTWARE_DEVICE: u32 = 1 << 2;
const HYBRID_INTEGRATED: u32 = 1 << 5;
const INDIRECT_DISPLAY_DEVICE: u32 = 1 << 6;
const DETACHABLE: u32 = 1 << 10;
const COMPUTE_ONLY: u32 = 1 << 11;

/// `KMT_DRIVERVERSION_WDDM_2_0` (d3dkmthk.h).
const WDDM_2_0: i32 = 2000;

/// What the graphics kernel reports about an adapter. `None` is a query that this Windows or
/// the driver does not support, or one that failed.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct KernelReport {
    /// `D3DKMT_ADAPTERTYPE`.
    pub flags: u32,
    /// `D3DKMT_DRIVERVERSION`: 1300 is WDDM 1.3, 2500 WDDM 2.5.
    pub driver_model: Option<i32>,
    /// `D3DKMT_DEVICE_IDS`.
    pub hardware_id: Option<HardwareId>,
    /// The name in the registry.
    pub description: Option<String>,
    /// `D3DKMT_UMD_DRIVER_VERSION`.
    pub driver_version: Option<u64>,
    /// The dedicated memory in bytes.
    pub dedicated_memory: Option<u64>,
    /// The registry key of each physical device, in the order of the physical indexes.
    pub pnp_keys: Vec<String>,
    /// What could not be read and is not required.
    pub notes: Vec<String>,
}

impl KernelReport {
    /// The attributes under which `DXCore` would list the adapter. An adapter that only
    /// displays has none.
    #[must_use]
    pub fn attributes(&self) -> Attributes {
        let has_direct3d_12 = self.driver_model.is_some_and(|model| model >= WDDM_2_0);
        let list: &[Attribute] =
            match (self.has(RENDER_SUPPORTED), self.has(COMPUTE_ONLY), has_direct3d_12) {
                (false, ..) => &[],
                (true, true, _) => &[Attribute::D3d12CoreCompute],
                (true, false, false) => &[Attribute::D3d11Graphics],
                (true, false, true) => &[
                    Attribute::D3d11Graphics,
                    Attribute::D3d12Graphics,
                    Attribute::D3d12CoreCompute,
                ],
            };
        list.iter().copied().collect()
    }

    /// The adapter, without its device and its driver. It counts as integrated only on a
    /// host that also has a discrete one (hybrid graphics), because the kernel does not
    /// report it otherwise.
    #[must_use]
    pub fn adapter(&self, luid: Luid) -> Adapter {
        Adapter {
            luid,
            attributes: self.attributes(),
            hardware: !self.has(SOFTWARE_DEVICE),
            integrated: self.has(HYBRID_INTEGRATED),
            detachable: self.has(DETACHABLE),
            indirect_display: is_indirect_display(self.flags),
            hardware_id: self.hardware_id.unwrap_or_default(),
            driver_description: self.description.clone().unwrap_or_default(),
            driver_version: self.driver_version.map(DriverVersion),
            dedicated_memory_mib: self.dedicated_memory.map(|bytes| bytes >> 20),
            load: None,
            nvidia: NvidiaFacts::default(),
            pnp: None,
            driver_store: None,
        }
    }

    /// Whether the adapter renders or computes: one that only displays does neither.
    #[must_use]
    pub fn can_compute(&self) -> bool {
        self.has(RENDER_SUPPORTED) || self.has(COMPUTE_ONLY)
    }

    fn has(&self, flag: u32) -> bool {
        self.flags & flag != 0
    }
}

/// Whether an adapter with these flags (`D3DKMT_ADAPTERTYPE`) is an indirect display.
#[must_use]
pub const fn is_indirect_display(flags: u32) -> bool {
    flags & INDIRECT_DISPLAY_DEVICE != 0
}

/// The attributes of an adapter, if it is listed: one that only displays is not, as with
/// `DXCore`. One that cannot be read is listed without attributes, so that its reason is
/// reported.
#[must_use]
pub fn listed_attributes<E>(report: &Result<KernelReport, E>) -> Option<Attributes> {
    let Ok(report) = report else { return Some(Attributes::default()) };
    Some(report.attributes()).filter(|attributes| attributes.iter().next().is_some())
}

/// The adapter of a device, for devices without `DEVPKEY_Gpu_Luid`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DeviceKey {
    pub instance_id: PnpId,
    pub luid: Luid,
    /// The index of the device in a linked adapter.
    pub physical_index: u32,
}

/// The device instance IDs of the adapter `luid`, whose physical devices have these registry keys.
pub fn device_keys(luid: Luid, pnp_keys: &[String]) -> impl Iterator<Item = DeviceKey> {
    pnp_keys.iter().zip(0..).filter_map(move |(key, physical_index)| {
        let instance_id = instance_id(key)?;
        Some(DeviceKey { instance_id, luid, physical_index })
    })
}

/// The key of the device `instance_id`, if it belongs to an adapter.
#[must_use]
pub fn key_of<'a>(keys: &'a [DeviceKey], instance_id: &PnpId) -> Option<&'a DeviceKey> {
    keys.iter().find(|key| key.instance_id == *instance_id)
}

/// The device instance ID in the registry key of a device
/// (`\Registry\Machine\System\CurrentControlSet\Enum\PCI\VEN_…\…`, with or without a subkey).
fn instance_id(key: &str) -> Option<PnpId> {
    const ENUM: &str = r"\enum\";
    let start = key.to_ascii_lowercase().find(ENUM)? + ENUM.len();
    let mut parts = key[start..].split('\\').filter(|part| !part.is_empty());
    let enumerator = parts.next()?;
    let device = parts.next()?;
    let instance = parts.next()?;
    Some(PnpId::new(format!(r"{enumerator}\{device}\{instance}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    const DISPLAY_SUPPORTED: u32 = 1 << 1;

    fn report(flags: u32, driver_model: Option<i32>) -> KernelReport {
        KernelReport { flags, driver_model, ..KernelReport::default() }
    }

    fn names(report: &KernelReport) -> Vec<String> {
        report.attributes().iter().map(|attribute| attribute.to_string()).collect()
    }

    #[test]
    fn attributes_follow_from_flags_and_driver_model() {
        let all = ["d3d11-graphics", "d3d12-graphics", "d3d12-core-compute"];
        for (flags, model, attributes) in [
            // A data center GPU has no display outputs; Server 2019 has WDDM 2.5.
            (RENDER_SUPPORTED, Some(2500), &all[..]),
            (RENDER_SUPPORTED | DISPLAY_SUPPORTED, Some(WDDM_2_0), &all),
            (RENDER_SUPPORTED | DISPLAY_SUPPORTED, Some(1300), &all[..1]),
            (RENDER_SUPPORTED, None, &all[..1]),
            (RENDER_SUPPORTED | COMPUTE_ONLY, Some(2600), &all[2..]),
            // These are Microsoft's adapters for virtual machines and without a driver.
            (DISPLAY_SUPPORTED, Some(1300), &[]),
            (0, Some(2500), &[]),
        ] {
            assert_eq!(names(&report(flags, model)), attributes, "{flags:#b} {model:?}");
        }
    }

    #[test]
    fn adapters_that_only_display_are_not_listed_and_unreadable_ones_are() {
        let listed = |report| listed_attributes::<()>(&report);
        let gpu = report(RENDER_SUPPORTED, None);
        assert_eq!(listed(Ok(gpu.clone())), Some(gpu.attributes()));
        assert_eq!(listed(Ok(report(DISPLAY_SUPPORTED, Some(1300)))), None);
        assert_eq!(listed(Err(())), Some(Attributes::default()));
    }

    #[test]
    fn flags_decide_what_the_adapter_is() {
        let facts = |flags| report(flags, Some(2500)).adapter(Luid(7));
        let gpu = facts(RENDER_SUPPORTED);
        let kinds = (gpu.hardware, gpu.integrated, gpu.detachable);
        assert_eq!(kinds, (true, false, false));
        assert!(!facts(SOFTWARE_DEVICE | RENDER_SUPPORTED).hardware);
        assert!(facts(HYBRID_INTEGRATED).integrated);
        assert!(facts(DETACHABLE).detachable);
        assert!(facts(INDIRECT_DISPLAY_DEVICE | RENDER_SUPPORTED).indirect_display);
    }

    /// The flags that real adapters had on a machine with a virtual display, and those of a
    /// paravirtualized GPU and of an NPU with every flag that such devices can have.
    #[test]
    fn the_flag_of_indirect_displays_is_not_a_flag_of_gpus() {
        assert!(is_indirect_display(0x0342), "a virtual display (IddCx)");
        for gpu in [0x232B, 0x0083, RENDER_SUPPORTED | COMPUTE_ONLY | DETACHABLE | 1 << 7 | 1 << 4]
        {
            assert!(!is_indirect_display(gpu), "{gpu:#x}");
        }
    }

    #[test]
    fn each_registry_key_leads_to_a_device() {
        const ID: &str = r"PCI\VEN_10DE&DEV_13F2\6&2B78CA89&0&0";
        let pnp_keys = vec![
            format!(r"\REGISTRY\MACHINE\SYSTEM\ControlSet001\Enum\{ID}"),
            r"\Registry\Machine\System\CurrentControlSet\Enum\PCI".to_owned(),
            format!(r"\Registry\Machine\System\CurrentControlSet\enum\{ID}\Device Parameters"),
            String::new(),
        ];
        let key = |physical_index| DeviceKey {
            instance_id: PnpId::new(ID),
            luid: Luid(7),
            physical_index,
        };
        let keys: Vec<_> = device_keys(Luid(7), &pnp_keys).collect();
        assert_eq!(keys, [key(0), key(2)]);
        assert_eq!(key_of(&keys, &PnpId::new(ID.to_lowercase())), Some(&key(0)));
        assert_eq!(key_of(&keys, &PnpId::new(r"PCI\VEN_10DE&DEV_13F2\7")), None);
    }
}
