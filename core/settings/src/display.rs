//! Values as text, for logs and explanations.

use std::num::NonZeroU32;
use std::time::Duration;

use devices::{
    AdditionalMounts, AllocationPolicy, DeviceClass, DeviceScope, EnvironmentHints, FileName,
    MultiDevice, NumaTopology, ResourceName, RuntimeMounts, SharedRequests, Visibility,
};
use documents::Names;

use crate::file::RenameShared;
use crate::values::NamesInFiles;

/// A value as text, spelled as in a file where a file can spell it.
pub(crate) trait ValueText {
    fn text(&self) -> String;
}

impl ValueText for RuntimeMounts {
    fn text(&self) -> String {
        name_in_files(self)
    }
}

impl ValueText for AllocationPolicy {
    fn text(&self) -> String {
        name_in_files(self)
    }
}

impl ValueText for MultiDevice {
    fn text(&self) -> String {
        name_in_files(self)
    }
}

impl ValueText for Option<DeviceClass> {
    fn text(&self) -> String {
        self.map_or_else(|| "none".to_owned(), |class| class.to_string())
    }
}

impl ValueText for SharedRequests {
    fn text(&self) -> String {
        name_in_files(self)
    }
}

impl ValueText for Visibility {
    fn text(&self) -> String {
        name_in_files(self)
    }
}

impl ValueText for RenameShared {
    fn text(&self) -> String {
        (*self == RenameShared::Append).to_string()
    }
}

impl ValueText for DeviceScope {
    fn text(&self) -> String {
        (*self == DeviceScope::Include).to_string()
    }
}

impl ValueText for NumaTopology {
    fn text(&self) -> String {
        (*self == NumaTopology::Publish).to_string()
    }
}

impl ValueText for EnvironmentHints {
    fn text(&self) -> String {
        (*self == EnvironmentHints::Set).to_string()
    }
}

impl ValueText for Duration {
    fn text(&self) -> String {
        self.as_secs().to_string()
    }
}

impl ValueText for NonZeroU32 {
    fn text(&self) -> String {
        self.to_string()
    }
}

impl ValueText for ResourceName {
    fn text(&self) -> String {
        self.to_string()
    }
}

impl ValueText for String {
    fn text(&self) -> String {
        self.clone()
    }
}

impl ValueText for Vec<FileName> {
    fn text(&self) -> String {
        listed(self.iter().map(ToString::to_string))
    }
}

impl ValueText for AdditionalMounts {
    fn text(&self) -> String {
        listed(self.iter().flat_map(|(vendor, files)| {
            files.iter().map(move |f| format!("{vendor}: {} => {}", f.source, f.destination))
        }))
    }
}

fn name_in_files<T: PartialEq>(value: &T) -> String
where
    NamesInFiles: Names<T>,
{
    let mut names = NamesInFiles::names();
    let entry = names.find(|(_, named)| named == value);
    entry.expect("every value has a name").0.to_owned()
}

fn listed(items: impl Iterator<Item = String>) -> String {
    format!("[{}]", items.collect::<Vec<_>>().join(", "))
}
