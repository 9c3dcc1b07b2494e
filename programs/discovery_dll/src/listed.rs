//! A discovered device as C reads it. All its text is made at once, so that every
//! pointer stays good until the instance's next discovery.

use devices::{Attachment, Device, DriverKey, Placement, RuntimeFile, Support};

use crate::wide::WideText;

/// One device.
#[derive(Debug)]
pub(crate) struct Listed {
    pub(crate) luid: i64,
    pub(crate) id: WideText,
    pub(crate) description: WideText,
    pub(crate) driver_registry_key: WideText,
    pub(crate) driver_store_path: WideText,
    pub(crate) location_path: WideText,
    pub(crate) vendor: WideText,
    pub(crate) placement: Placement,
    pub(crate) attachment: Attachment,
    pub(crate) display: Support,
    pub(crate) compute: Support,
    pub(crate) system32: Vec<ListedFile>,
    pub(crate) wow64: Vec<ListedFile>,
}

/// One runtime file.
#[derive(Debug)]
pub(crate) struct ListedFile {
    pub(crate) source: WideText,
    pub(crate) destination: WideText,
}

impl Listed {
    /// `device`; what is not known of it is empty text.
    pub(crate) fn new(device: &Device) -> Listed {
        let key = device.driver_key.as_ref().map(DriverKey::registry_path).unwrap_or_default();
        let store = device.driver_store.as_ref().map_or("", |store| &store.path);
        let location = device.location_path.as_ref().map_or("", |path| path.as_str());
        Listed {
            luid: device.luid.0,
            id: WideText::new(device.id.as_str()),
            description: WideText::new(&device.description),
            driver_registry_key: WideText::new(&key),
            driver_store_path: WideText::new(store),
            location_path: WideText::new(location),
            vendor: WideText::new(&device.manufacturer),
            placement: device.placement,
            attachment: device.attachment,
            display: device.display,
            compute: device.compute,
            system32: device.runtime_files.system32.iter().map(ListedFile::new).collect(),
            wow64: device.runtime_files.wow64.iter().map(ListedFile::new).collect(),
        }
    }
}

impl ListedFile {
    fn new(file: &RuntimeFile) -> ListedFile {
        ListedFile {
            source: WideText::new(file.source.as_str()),
            destination: WideText::new(file.destination.as_str()),
        }
    }
}
