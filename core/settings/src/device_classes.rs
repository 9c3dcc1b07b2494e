//! The device classes of a configuration file: one for every driver model that reads the
//! file, or one for each driver model.

use std::collections::BTreeMap;

use devices::{DeviceClass, DriverModel};
use documents::{Place, ReadError, TextOrEntries};

use crate::values::{DEVICE_CLASS_HINT, DeviceClassText};

/// `deviceClass`: a GUID, or driver model → GUID.
pub(crate) type DeviceClassesFile = TextOrEntries<DriverModel, DeviceClassText>;

/// The class of each driver model that the key at `place` sets.
pub(crate) fn device_classes(
    file: DeviceClassesFile,
    place: &Place,
) -> Result<BTreeMap<DriverModel, DeviceClass>, ReadError> {
    let text = match file {
        TextOrEntries::Entries(classes) => {
            return Ok(classes.0.into_iter().map(|(model, class)| (model, class.0)).collect());
        }
        TextOrEntries::One(text) => text,
    };
    let class: DeviceClass = text.parse().map_err(|error: devices::DeviceClassError| {
        place.error(error.to_string()).with_hint(DEVICE_CLASS_HINT)
    })?;
    let all = [DriverModel::Wddm, DriverModel::Mcdm, DriverModel::Legacy];
    Ok(all.into_iter().map(|model| (model, class)).collect())
}
