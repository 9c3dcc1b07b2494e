//! A discovered device, as C code reads it. All text is created at once, so that every
//! pointer stays valid until the next discovery of the instance.

use devices::{Device, RuntimeFile};
use host::DriverKey;

use crate::wide::WideText;

#[derive(Debug)]
pub(crate) struct DeviceRecord {
    pub(crate) device: Device,
    pub(crate) id: WideText,
    pub(crate) description: WideText,
    pub(crate) driver_registry_key: WideText,
    pub(crate) driver_store_path: WideText,
    pub(crate) location_path: WideText,
    pub(crate) vendor: WideText,
    pub(crate) system32: Vec<FileRecord>,
    pub(crate) wow64: Vec<FileRecord>,
}

/// A runtime file.
#[derive(Debug)]
pub(crate) struct FileRecord {
    pub(crate) source: WideText,
    pub(crate) destination: WideText,
}

impl DeviceRecord {
    /// Converts a device. Unknown properties become empty text.
    pub(crate) fn new(device: Device) -> DeviceRecord {
        let key = device.driver_key.as_ref().map(DriverKey::registry_path).unwrap_or_default();
        let store = device.driver_store.as_ref().map_or("", |store| &store.path);
        let location = device.location_path.as_ref().map_or("", |path| path.as_str());
        DeviceRecord {
            id: WideText::new(device.id.as_str()),
            description: WideText::new(&device.description),
            driver_registry_key: WideText::new(&key),
            driver_store_path: WideText::new(store),
            location_path: WideText::new(location),
            vendor: WideText::new(&device.manufacturer),
            system32: device.runtime_files.system32.iter().map(FileRecord::new).collect(),
            wow64: device.runtime_files.wow64.iter().map(FileRecord::new).collect(),
            device,
        }
    }
}

impl FileRecord {
    fn new(file: &RuntimeFile) -> FileRecord {
        FileRecord {
            source: WideText::new(file.source.as_str()),
            destination: WideText::new(file.destination.as_str()),
        }
    }
}
