//! Reads one adapter. The driver passes these queries to Windows, so the results are structures of
//! D3DKMT (d3dkmthk.h), read from their bytes.

use std::collections::{BTreeMap, BTreeSet};

use devices::{
    Adapter, Attribute, DXG_FOLDERS, DriverStore, HardwareId, PnpDevice, PnpId, StoreFiles,
    SystemRoot, dxg_driver_folder,
};
use windows_report::kernel_report::KernelReport;
use windows_report::{store_path, text};

use crate::device::OpenAdapter;

/// A query: its number (`KMTQUERYADAPTERINFOTYPE`), what it reads, and the length of its structure.
struct Query<const BYTES: usize>(u32, &'static str);

const SEGMENT_SIZES: Query<24> = Query(3, "the memory sizes");
const ADDRESS: Query<12> = Query(6, "the PCI address");
const REGISTRY_INFO: Query<2080> = Query(8, "the name");
const DRIVER_MODEL: Query<4> = Query(13, "the driver model");
const ADAPTER_TYPE: Query<4> = Query(15, "the kind of adapter");
const DRIVER_VERSION: Query<8> = Query(18, "the driver version");
const DEVICE_IDS: Query<28> = Query(31, "the hardware ID");
const REGISTRY: Query<{ REGISTRY_OUTPUT + PATH_BYTES }> = Query(48, "the driver store folder");

/// `D3DDDI_QUERYREGISTRY_DRIVERSTOREPATH`, the first number of `D3DDDI_QUERYREGISTRY_INFO`.
const DRIVER_STORE_PATH: u32 = 2;
/// The number in this structure that is its status, and the byte where its output begins.
const REGISTRY_STATUS: usize = 135;
const REGISTRY_OUTPUT: usize = 544;
/// The space for a path, which is more than a path in the driver store needs.
const PATH_BYTES: usize = 4096;

/// `KMT_DRIVERVERSION_WDDM_2_9` (d3dkmthk.h). See microsoft/WSL#10085.
const WDDM_2_9: i32 = 2900;

/// The errors of a file that has lost the host or the adapter.
const STALE: [i32; 4] = [libc::EBADF, libc::ENODEV, libc::ENOTTY, libc::EOVERFLOW];

/// The length of a text in `D3DKMT_ADAPTERREGISTRYINFO`, in bytes.
const TEXT_BYTES: usize = 520;

/// The queries of one adapter.
pub(crate) struct Queries<'a> {
    open: &'a OpenAdapter<'a>,
    /// What could not be read.
    pub(crate) notes: Vec<String>,
    /// Whether the open file has lost the host or the adapter, so that it must be opened again.
    pub(crate) is_stale: bool,
}

impl<'a> Queries<'a> {
    pub(crate) fn of(open: &'a OpenAdapter<'a>) -> Queries<'a> {
        Queries { open, notes: Vec::new(), is_stale: false }
    }

    fn run<const BYTES: usize>(&mut self, query: &Query<BYTES>) -> Result<[u8; BYTES], String> {
        let Query(kind, what) = query;
        let mut data = [0; BYTES];
        if *kind == REGISTRY.0 {
            data[..4].copy_from_slice(&DRIVER_STORE_PATH.to_le_bytes());
        }
        self.open.query(*kind, &mut data).map_err(|error| {
            self.is_stale |= STALE.iter().any(|code| error.raw_os_error() == Some(*code));
            format!("cannot read {what} (query {kind}): {error}")
        })?;
        Ok(data)
    }

    /// The result of a query without which the adapter can be used.
    fn optional<const BYTES: usize>(&mut self, query: &Query<BYTES>) -> Option<[u8; BYTES]> {
        self.run(query).map_err(|note| self.notes.push(note)).ok()
    }

    /// The kind of adapter. A software adapter may answer no other query.
    pub(crate) fn kind(&mut self) -> Result<KernelReport, String> {
        let flags = number(&self.run(&ADAPTER_TYPE)?, 0);
        Ok(KernelReport { flags, ..KernelReport::default() })
    }

    /// Reads the adapter. `has_folder` answers whether a folder of this machine exists.
    pub(crate) fn adapter(&mut self, has_folder: &dyn Fn(&str) -> bool) -> Result<Adapter, String> {
        let kind = self.kind()?;
        let software = kind.adapter(self.open.luid());
        if !software.hardware {
            return Ok(software);
        }
        let report = self.report(kind.flags)?;
        let adapter = report.adapter(self.open.luid());
        if adapter.attributes.has(Attribute::D3d11Graphics)
            && matches!(report.driver_model, Some(..WDDM_2_9))
        {
            self.notes.push("the driver is older than WDDM 2.9, which Direct3D needs".to_owned());
        }
        let address = self.run(&ADDRESS)?;
        let pnp = device(adapter.hardware_id, &adapter.driver_description, &address);
        let [libraries, _] = DXG_FOLDERS;
        if !has_folder(libraries) {
            let note = "does not exist, so programs in containers find no libraries";
            self.notes.push(format!("the folder `{libraries}` {note}"));
        }
        let path = self.driver_store_path().map_err(|note| self.notes.push(note)).ok();
        let driver_store = path.map(|path| self.driver_store(path, has_folder));
        Ok(Adapter { pnp: Some(pnp), driver_store, ..adapter })
    }

    fn report(&mut self, flags: u32) -> Result<KernelReport, String> {
        let ids = self.run(&DEVICE_IDS)?;
        // The answer is a `D3DKMT_QUERY_DEVICE_IDS`: the index of the physical adapter, then
        // `D3DKMT_DEVICE_IDS`.
        let [vendor, device, subsystem_vendor, subsystem, revision] =
            [1, 2, 3, 4, 5].map(|n| number(&ids, n));
        let subsystem = subsystem << 16 | (subsystem_vendor & 0xFFFF);
        Ok(KernelReport {
            flags,
            driver_model: self.optional(&DRIVER_MODEL).map(i32::from_le_bytes),
            hardware_id: Some(HardwareId { vendor, device, subsystem, revision }),
            description: self
                .optional(&REGISTRY_INFO)
                .map(|info| text::single_for_display(&info[..TEXT_BYTES])),
            driver_version: self.optional(&DRIVER_VERSION).map(u64::from_le_bytes),
            dedicated_memory: self
                .optional(&SEGMENT_SIZES)
                .map(|sizes| u64::from(number(&sizes, 1)) << 32 | u64::from(number(&sizes, 0))),
            pnp_keys: Vec::new(),
        })
    }

    /// The driver store folder, as a Windows path.
    pub(crate) fn driver_store_path(&mut self) -> Result<String, String> {
        let info = self.run(&REGISTRY)?;
        let status = number(&info, REGISTRY_STATUS);
        let path = text::single_for_display(&info[REGISTRY_OUTPUT..]);
        if status != 0 || path.is_empty() {
            return Err(format!(
                "Windows does not report the driver store folder (status {status})"
            ));
        }
        Ok(store_path::absolute(&path, SystemRoot::default().as_str()))
    }

    fn driver_store(&mut self, path: String, has_folder: &dyn Fn(&str) -> bool) -> DriverStore {
        let folder = dxg_driver_folder(&path);
        let files = if folder.as_deref().is_some_and(has_folder) {
            StoreFiles::OnDisk
        } else {
            let folder = folder.unwrap_or_default();
            self.notes
                .push(format!("the folder `{folder}` of the driver store `{path}` does not exist"));
            StoreFiles::Listed(BTreeSet::new())
        };
        DriverStore { path, files, copy_to_vm: BTreeMap::new() }
    }
}

/// The device of an adapter. Windows does not report its instance ID, so the ID here begins like
/// one of Windows and ends with the PCI address: bus, device and function as hexadecimal numbers.
fn device(ids: HardwareId, description: &str, address: &[u8; 12]) -> PnpDevice {
    let HardwareId { vendor, device, subsystem, revision } = ids;
    let [bus, slot, function] = [0, 1, 2].map(|n| number(address, n));
    PnpDevice {
        id: PnpId::new(format!(
            "PCI\\VEN_{vendor:04X}&DEV_{device:04X}&SUBSYS_{subsystem:08X}&REV_{revision:02X}\\{bus:02X}.{slot:02X}.{function:X}"
        )),
        description: description.to_owned(),
        manufacturer: String::new(),
        driver_key: None,
        driver_date: None,
        location_paths: Vec::new(),
        numa_node: None,
        problem_code: 0,
    }
}

/// The 32-bit number at the position `index` of a structure.
fn number(data: &[u8], index: usize) -> u32 {
    let bytes = &data[index * 4..][..4];
    u32::from_le_bytes(bytes.try_into().expect("four bytes"))
}
