//! The additional mounts of a configuration file.

use devices::{AdditionalMount, AdditionalMounts, DestinationError, Vendor};
use documents::{AnyCase, Entries, Place, ReadError};
use serde::Deserialize;

use crate::values::{DESTINATION_HINT, DestinationText, StorePathText};

/// `additionalMounts`: vendor → list of mounts.
pub(crate) type AdditionalMountsFile = Entries<Vendor, Option<Vec<AnyCase<MountFile>>>>;

/// One additional mount; without a destination the file keeps its name.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct MountFile {
    source: StorePathText,
    #[serde(default, deserialize_with = "documents::present")]
    destination: Option<DestinationText>,
}

/// The mounts of the key at `place`. A vendor's name and its vendor ID are the same vendor.
pub(crate) fn additional(
    file: AdditionalMountsFile,
    place: &Place,
) -> Result<AdditionalMounts, ReadError> {
    let mut mounts = AdditionalMounts::new();
    for (vendor, files) in file.0 {
        let files = files.unwrap_or_default().into_iter().map(|AnyCase(file)| mount(file, place));
        if mounts.insert(vendor, files.collect::<Result<_, _>>()?).is_some() {
            let hint = "a vendor's name and its vendor ID are the same vendor";
            return Err(place.error(format!("duplicate vendor {vendor}")).with_hint(hint));
        }
    }
    Ok(mounts)
}

fn mount(file: MountFile, place: &Place) -> Result<AdditionalMount, ReadError> {
    let source = file.source.0;
    let destination = match file.destination {
        Some(destination) => destination.0,
        None => source.file_name().try_into().map_err(|error: DestinationError| {
            place.error(format!("source `{source}`: {error}")).with_hint(DESTINATION_HINT)
        })?,
    };
    Ok(AdditionalMount { source, destination })
}
