//! The values of configuration files, as serde reads them.

use std::str::FromStr;

use devices::{
    AllocationPolicy, Destination, DeviceClass, DriverModel, FileName, MultiDevice, ResourceName,
    RuntimeMounts, SharedRequests, Visibility,
};
use devices::{DescriptionPattern, StorePath};
use documents::{Advice, LenientWhole, Names, OneOf, Parsed};

use crate::{MAX_MEMORY_MIB, MAX_MULTITENANCY, MAX_REMOVAL_GRACE};

pub(crate) type Multitenancy = LenientWhole<u32, 0, { MAX_MULTITENANCY as i128 }>;
pub(crate) type RemovalGrace = LenientWhole<u64, 0, { MAX_REMOVAL_GRACE as i128 }>;
pub(crate) type MemoryMib = LenientWhole<u64, 1, { MAX_MEMORY_MIB as i128 }>;

/// A value that has a name in files.
pub(crate) type Choice<T> = OneOf<T, NamesInFiles>;

/// The names that the choices have in files.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct NamesInFiles;

impl Names<RuntimeMounts> for NamesInFiles {
    fn names() -> impl Iterator<Item = (&'static str, RuntimeMounts)> {
        [
            ("auto", RuntimeMounts::Auto),
            ("always", RuntimeMounts::Always),
            ("never", RuntimeMounts::Never),
            ("extra", RuntimeMounts::Extra),
        ]
        .into_iter()
    }
}

impl Names<AllocationPolicy> for NamesInFiles {
    fn names() -> impl Iterator<Item = (&'static str, AllocationPolicy)> {
        [("distributed", AllocationPolicy::Distributed), ("packed", AllocationPolicy::Packed)]
            .into_iter()
    }
}

impl Names<MultiDevice> for NamesInFiles {
    fn names() -> impl Iterator<Item = (&'static str, MultiDevice)> {
        [("class", MultiDevice::Class), ("reject", MultiDevice::Reject)].into_iter()
    }
}

impl Names<SharedRequests> for NamesInFiles {
    fn names() -> impl Iterator<Item = (&'static str, SharedRequests)> {
        [("any", SharedRequests::Any), ("one", SharedRequests::One)].into_iter()
    }
}

impl Names<Visibility> for NamesInFiles {
    fn names() -> impl Iterator<Item = (&'static str, Visibility)> {
        [("off", Visibility::Off), ("launcher", Visibility::Launcher)].into_iter()
    }
}

impl Names<DriverModel> for NamesInFiles {
    fn names() -> impl Iterator<Item = (&'static str, DriverModel)> {
        [DriverModel::Wddm, DriverModel::Mcdm, DriverModel::Legacy]
            .into_iter()
            .map(|model| (model.name(), model))
    }
}

/// Defines the advice for one kind of text.
macro_rules! advice {
    ($name:ident, $hint:expr) => {
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub(crate) struct $name;

        impl Advice for $name {
            const HINT: Option<&'static str> = Some($hint);
        }
    };
}

advice!(ResourceNameAdvice, RESOURCE_NAME_HINT);
advice!(DeviceClassAdvice, DEVICE_CLASS_HINT);
advice!(DestinationAdvice, DESTINATION_HINT);
advice!(FileNameAdvice, "write a bare file name, such as nvcuda.dll");
advice!(
    StorePathAdvice,
    r"write a path below the driver store folder, such as B026261\amfrt64.dll"
);
advice!(
    DescriptionAdvice,
    r"write a regular expression, such as tesla t4, with \( for a parenthesis, or leave the key out"
);

/// What to write for the destination of a mount.
pub(crate) const DESTINATION_HINT: &str =
    "write a bare file name that Windows does not use itself, such as nvcuda.dll";

/// What to write for a resource name, in a file or a variable.
pub(crate) const RESOURCE_NAME_HINT: &str =
    "write a domain, a slash and a name, such as example.com/gpu";

/// What to write for a device class.
pub(crate) const DEVICE_CLASS_HINT: &str =
    "write the GUID of a device interface class, such as 1CA05180-A699-450A-9A0C-DE4FBE3DDD89";

pub(crate) type DeviceClassText = Parsed<DeviceClass, DeviceClassAdvice>;
pub(crate) type ResourceNameText = Parsed<ResourceName, ResourceNameAdvice>;
pub(crate) type DestinationText = Parsed<Destination, DestinationAdvice>;
pub(crate) type FileNameText = Parsed<FileName, FileNameAdvice>;
pub(crate) type StorePathText = Parsed<StorePath, StorePathAdvice>;
pub(crate) type DescriptionText = Parsed<Description, DescriptionAdvice>;

/// A pattern that does not match every description.
pub(crate) struct Description(pub(crate) DescriptionPattern);

impl FromStr for Description {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Err("an empty pattern matches every description".to_owned());
        }
        text.parse().map(Description).map_err(|error| format!("{error}"))
    }
}
