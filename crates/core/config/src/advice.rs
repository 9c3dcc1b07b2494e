//! What to write instead of something that a configuration file may not have.

use devices::DriverModel;

use crate::closest::closest;
use crate::document::{EXPECTED_MAPPING, OTHER_KEYS_HINT};
use crate::keys::keys_of;
use crate::rules::{MatchFile, RuleFile};
use crate::settings::{SetValues, nested_keys};
use crate::synonyms::{plain, synonym};
use crate::{ReadError, numbers};

/// What to write for a resource name, in a file or a variable.
pub(crate) const RESOURCE_NAME_HINT: &str =
    "write a domain, a slash and a name, such as example.com/gpu";

/// Keys of earlier versions and of the configuration of NVIDIA's device plugin, and what to write
/// instead.
const OTHER_KEYS: [(&str, &str); 11] = [
    (
        "onDriverChange",
        "onDriverChange was removed: delete the key, and cordon and drain a node before you \
         replace its driver",
    ),
    (
        "cdiDevices",
        "cdiDevices was removed: delete the key; on Linux nodes with /dev/dxg, use another device \
         plugin, as docs/installation.md describes",
    ),
    (
        "unhealthyAfterResets",
        "unhealthyAfterResets was removed: delete the key; the alert DirectXDeviceReset reports \
         resets, and the annotation directx.microsoft.com/cordoned-devices of the node takes a \
         device out of service",
    ),
    ("schema", "this is an inventory: name it with --inventory"),
    ("adapters", "this is an inventory: name it with --inventory"),
    (
        "timeSlicing",
        "a key of NVIDIA's device plugin: write `multitenancy: 4` for `replicas: 4`, at the top of \
         the file or in a rule of `resources`",
    ),
    (
        "replicas",
        "a key of NVIDIA's device plugin: write `multitenancy`, at the top of the file or in a rule \
         of `resources`",
    ),
    (
        "failRequestsGreaterThanOne",
        "a key of NVIDIA's device plugin: for true, write `sharedRequests: one` at the top of the \
         file, for all shared resources",
    ),
    (
        "renameByDefault",
        "a key of NVIDIA's device plugin: for true, write `renameShared: true` at the top of the \
         file, for all shared resources",
    ),
    ("rename", "a key of NVIDIA's device plugin: write the new name as `name` of a rule"),
    ("devices", "a key of NVIDIA's device plugin: write conditions in `match` of a rule"),
];

/// The keys of a file of NVIDIA's device plugin.
const NVIDIA_KEYS: [&str; 3] = ["version", "flags", "sharing"];
/// What to write instead of a file of NVIDIA's device plugin.
const NVIDIA_HINT: &str = "delete the keys `version`, `flags` and `sharing`; write \
     `multitenancy: 4` for `replicas: 4`, `sharedRequests: one` for \
     `failRequestsGreaterThanOne: true`, and `renameShared: true` for `renameByDefault: true`; \
     docs/nvidia.md has an example";

/// Adds what to write instead, if the error is about the value of one of some keys, or about one of
/// [`OTHER_KEYS`] or [`NVIDIA_KEYS`].
pub(crate) fn advised(error: ReadError) -> ReadError {
    let is_of_nvidia = |key: &&str| error.what == format!("unknown key `{key}`");
    if error.path.is_empty() && NVIDIA_KEYS.iter().any(is_of_nvidia) {
        let what = format!("{}: this is a file of NVIDIA's device plugin", error.what);
        return ReadError { what, ..error }.with_hint(NVIDIA_HINT);
    }
    for (key, hint) in OTHER_KEYS {
        if error.what.eq_ignore_ascii_case(&format!("unknown key `{key}`")) {
            return error.with_hint(hint);
        }
    }
    if let Some(hint) = misplaced_key(&error, &sections()) {
        return error.with_hint(hint);
    }
    if error.hint.is_none()
        && let Some(hint) = numbers::hint(&error)
    {
        return error.with_hint(hint);
    }
    let path = error.path.to_ascii_lowercase();
    if error.what == EXPECTED_MAPPING && path.starts_with("additionalmounts") {
        return error.with_hint(
            "write a vendor with a list of files, such as `nvidia: [{source: nvml.dll}]`",
        );
    }
    let hint = path.rsplit(['.', '[']).find_map(|key| match key {
        "name" | "resourcename" => Some(RESOURCE_NAME_HINT),
        "deviceclass" => Some(
            "write the GUID of a device interface class, such as \
             5B45201D-F2F2-4F3B-85BB-30FF1F953599",
        ),
        "destination" => Some("write a bare file name that Windows does not use itself, such as nvcuda.dll"),
        "cordoneddevices" => Some(
            "write the ID or the location path of a device as `devices` prints it, such as \
             PCIROOT(0)#PCI(1B00)",
        ),
        "excludemounts" => Some("write bare file names, such as nvcuda.dll"),
        "source" => {
            Some(
                r"write a path below the driver store folder, such as B*\amfrt64.dll, in which `*` stands for any characters of a folder's name",
            )
        }
        "drivermodel" => error.what.rsplit('"').nth(1).and_then(DriverModel::advice),
        "description" => Some(
            r"write a regular expression, such as tesla t4, with \( for a parenthesis, or leave the key out",
        ),
        _ => None,
    });
    match hint {
        Some(hint) if error.hint.is_none() || error.what == EXPECTED_MAPPING => {
            error.with_hint(hint)
        }
        _ => error,
    }
}

/// Mappings of a file: where each may be, and its keys.
pub(crate) type Sections = [(String, &'static [&'static str])];

/// Where the key of the error belongs, or the most similar key of the file.
pub(crate) fn misplaced_key(error: &ReadError, sections: &Sections) -> Option<String> {
    let key = error.unknown_key().or_else(|| key_of_data(error))?;
    let other_keys = error.hint().is_some_and(|hint| hint.starts_with(OTHER_KEYS_HINT));
    if let Some(belongs) = place_of(key, sections) {
        return Some(match error.hint() {
            // Another word for a key of this mapping, or a similar one.
            Some(meant) if meant.to_lowercase().contains(&format!("`{}`", key.to_lowercase())) => {
                meant.to_owned()
            }
            Some(meant) if !other_keys && error.path.ends_with("match") => {
                format!("{meant} {belongs}, outside of `match`")
            }
            Some(meant) if !other_keys => format!("{meant} {belongs}"),
            _ => belongs,
        });
    }
    // A key of this mapping that is similar is in the hint already.
    let all: Vec<&'static str> = sections.iter().flat_map(|(_, keys)| *keys).copied().collect();
    let meant = other_keys.then(|| synonym(key, &all).or_else(|| closest(key, all)))??;
    Some(format!("did you mean `{meant}`, which {}?", belongs(meant, sections)))
}

/// Where a key belongs that is written like this.
fn place_of(key: &str, sections: &Sections) -> Option<String> {
    let mut all = sections.iter().flat_map(|(_, keys)| *keys);
    let known = all.find(|known| known.eq_ignore_ascii_case(key))?;
    Some(format!("`{known}` {}", belongs(known, sections)))
}

fn belongs(key: &str, sections: &Sections) -> String {
    let sections = sections.iter().filter(|(_, keys)| keys.contains(&key));
    let places: Vec<&str> = sections.map(|(place, _)| place.as_str()).collect();
    format!("belongs {}", places.join(" or "))
}

/// Where in a configuration file the key belongs that an option is named after, or what to write
/// instead of a key of NVIDIA's device plugin.
#[must_use]
pub fn key_advice(option: &str) -> Option<String> {
    let sections = sections();
    let mut all = sections.iter().flat_map(|(_, keys)| *keys);
    if let Some(key) = all.find(|key| plain(key) == plain(option)) {
        return place_of(key, &sections);
    }
    let (_, hint) = OTHER_KEYS.iter().find(|(key, _)| plain(key) == plain(option))?;
    Some((*hint).to_owned())
}

/// Where a configuration file may have a mapping, and the keys of the mapping.
fn sections() -> Vec<(String, &'static [&'static str])> {
    let in_value = nested_keys().into_iter().filter(|(_, keys)| !keys.is_empty());
    let mut sections = vec![
        ("at the top of the file".to_owned(), keys_of::<SetValues>()),
        ("in a rule of `resources`".to_owned(), keys_of::<RuleFile>()),
        ("in `match` of a rule".to_owned(), keys_of::<MatchFile>()),
    ];
    sections.extend(in_value.map(|(key, keys)| (format!("in `{key}`"), keys)));
    sections
}

/// A key where a vendor or a driver model is expected, because its line has too many blanks.
fn key_of_data(error: &ReadError) -> Option<&str> {
    let is_of_setting =
        keys_of::<SetValues>().iter().any(|key| key.eq_ignore_ascii_case(&error.path));
    let (key, _) = error.what.strip_prefix('`')?.split_once("` is not a ")?;
    Some(key).filter(|_| is_of_setting)
}
