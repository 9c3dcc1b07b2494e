//! The settings of a driver model: what a configuration file, the environment and the defaults say.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::str::FromStr;

use serde::Deserialize;
use serde_saphyr::Spanned;

use devices::{
    AdditionalMounts, AllocationPolicy, Destination, DestinationError, DeviceClass, DeviceName,
    DriverModel, FileName, MultiDevice, ParseError, ResetLimit, ResourceName, RuntimeFile,
    RuntimeMounts, SharedRequests, StorePath, Vendor, Visibility,
};

use crate::any_case::AnyCase;
use crate::document::EXPECTED_MAPPING;
use crate::origin::{Effective, Origin, Sourced};
use crate::rules::{FileRule, RuleFile, file_rules};
use crate::values::{
    Choice, Entries, MAX_MULTITENANCY, MAX_REMOVAL_GRACE, MAX_RESET_MINUTES, MAX_RESETS, Number,
    Parsed, TextOr, positive, present,
};
use crate::{ReadError, document};

/// What to write for a resource name, in a file or a variable.
pub(crate) const RESOURCE_NAME_HINT: &str =
    "write a domain, a slash and a name, such as example.com/gpu";

/// Defines the settings: for each one its field, its key, its type and its default for a driver
/// model. `docs/configuration.md` has them in this order.
macro_rules! settings {
    ($($field:ident $key:literal: $type:ty = $default:expr;)*) => {
        /// The keys of a configuration file, matched without case.
        ///
        /// An empty value means unset: the earlier plugins read it so, and a list whose entries
        /// are all commented out has one.
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct ConfigurationFile {
            $(#[serde(rename = $key)] $field: Option<Spanned<$type>>,)*
            resources: Option<Vec<Spanned<AnyCase<RuleFile>>>>,
        }

        /// What a file or the environment sets.
        #[derive(Clone, Default)]
        pub(crate) struct SetValues {
            $(pub(crate) $field: Option<Sourced<$type>>,)*
        }

        /// The value of every setting.
        pub(crate) struct Settings {
            $(pub(crate) $field: Sourced<$type>,)*
        }

        /// The keys of a configuration file.
        pub(crate) const KEYS: &[&str] = &[$($key,)* "resources"];

        impl ConfigurationFile {
            fn values(self, file: &str) -> SetValues {
                SetValues { $($field: self.$field.map(|value| Sourced::of_file(file, $key, value)),)* }
            }
        }

        impl SetValues {
            /// Every setting: its value here, else in `other`, else the default for `model`.
            pub(crate) fn or(self, other: SetValues, model: DriverModel) -> Settings {
                Settings {
                    $($field: self.$field.or(other.$field).unwrap_or_else(|| {
                        let default: fn(DriverModel) -> $type = $default;
                        Sourced { value: default(model), origin: Origin::Default }
                    }),)*
                }
            }
        }

        impl Settings {
            /// Every value and where it comes from.
            pub(crate) fn effective(&self, model: DriverModel) -> Vec<Effective> {
                vec![$(self.$field.effective(model, $key),)*]
            }
        }
    };
}

settings! {
    multitenancy "multitenancy": Number<0, MAX_MULTITENANCY> = |_| Number(1);
    include_integrated "includeIntegrated": Integrated = Integrated::default_for;
    include_detachable "includeDetachable": Switch = |model| Switch(model == DriverModel::Legacy);
    additional_mounts "additionalMounts": Mounts = |_| Mounts::default();
    additional_mounts_wow64 "additionalMountsWow64": Mounts = |_| Mounts::default();
    runtime_mounts "runtimeMounts": Parsed<Choice<RuntimeMounts>> = |_| Parsed::default();
    runtime_files_wow64 "runtimeFilesWow64": Switch = |_| Switch(true);
    exclude_mounts "excludeMounts": List<FileName> = |_| List(Vec::new());
    allocation_policy "allocationPolicy": Parsed<Choice<AllocationPolicy>> = |_| Parsed::default();
    multi_device "multiDevice": Parsed<Choice<MultiDevice>> = |_| Parsed::default();
    device_class "deviceClass": DeviceClasses = DeviceClasses::default_for;
    shared_requests "sharedRequests": Parsed<Choice<SharedRequests>> = |_| Parsed::default();
    rename_shared "renameShared": Switch = |_| Switch(false);
    publish_numa "publishNuma": Switch = |_| Switch(false);
    removal_grace "removalGraceSeconds": Number<0, MAX_REMOVAL_GRACE> = |_| Number(60);
    environment_hints "environmentHints": Switch = |_| Switch(true);
    visibility "visibility": Parsed<Choice<Visibility>> = |_| Parsed::default();
    cdi_devices "cdiDevices": Switch = |_| Switch(false);
    cordoned_devices "cordonedDevices": List<DeviceName> = |_| List(Vec::new());
    unhealthy_after_resets "unhealthyAfterResets": Resets = |_| Resets::default();
    resource_name "resourceName": Parsed<ResourceName> = default_resource;
}

/// The default resource name of a driver model, as in the earlier plugins.
fn default_resource(model: DriverModel) -> Parsed<ResourceName> {
    let name = match model {
        DriverModel::Wddm => "directx.microsoft.com/display",
        DriverModel::Mcdm => "directx.microsoft.com/compute",
        DriverModel::Legacy => "microsoft.com/directx",
    };
    Parsed(name.parse().expect("the default names are extended resource names"))
}

/// The settings and rules in one file.
#[derive(Clone, Default)]
pub(crate) struct FileSettings {
    values: SetValues,
    pub(crate) rules: Vec<FileRule>,
    /// The files that were found before this one and are not trusted; each deserves a warning.
    pub(crate) ignored: Vec<String>,
}

impl FileSettings {
    pub(crate) fn with_ignored(self, ignored: Vec<String>) -> FileSettings {
        FileSettings { ignored, ..self }
    }

    /// What the file sets for `model`.
    pub(crate) fn values(&self, model: DriverModel) -> SetValues {
        let mut values = self.values.clone();
        values.device_class = values.device_class.and_then(|Sourced { value, origin }| {
            let class = *value.0.get(&model)?;
            Some(Sourced { value: DeviceClasses([(model, class)].into()), origin })
        });
        values
    }
}

/// Reads the bytes of the file `path`.
pub(crate) fn read_file(path: &Path, bytes: &[u8]) -> Result<FileSettings, ReadError> {
    let name = path.display().to_string();
    let AnyCase(mut file): AnyCase<ConfigurationFile> =
        document::parse(&name, bytes).map_err(advised)?;
    let rules = file_rules(&name, file.resources.take().unwrap_or_default())?;
    Ok(FileSettings { values: file.values(&name), rules, ignored: Vec::new() })
}

/// Keys of an earlier version and of the configuration of NVIDIA's device plugin, and what to write
/// instead.
const OTHER_KEYS: [(&str, &str); 7] = [
    (
        "onDriverChange",
        "onDriverChange was removed: delete the key, and cordon and drain a node before you \
         replace its driver",
    ),
    ("schema", "this is an inventory: name it with --inventory"),
    ("adapters", "this is an inventory: name it with --inventory"),
    ("timeSlicing", "a key of NVIDIA's device plugin: write `multitenancy: 4` for `replicas: 4`"),
    ("replicas", "a key of NVIDIA's device plugin: did you mean `multitenancy`?"),
    (
        "failRequestsGreaterThanOne",
        "a key of NVIDIA's device plugin: write `sharedRequests: one` for true",
    ),
    ("renameByDefault", "a key of NVIDIA's device plugin: write `renameShared: true` for true"),
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
fn advised(error: ReadError) -> ReadError {
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
             1CA05180-A699-450A-9A0C-DE4FBE3DDD89",
        ),
        "destination" => Some("write a bare file name that Windows does not use itself, such as nvcuda.dll"),
        "cordoneddevices" => Some(
            "write the ID or the location path of a device as `devices` prints it, such as \
             PCIROOT(0)#PCI(1B00)",
        ),
        "unhealthyafterresets" => Some("write {count: 3, minutes: 60}, or leave the key out"),
        "excludemounts" => Some("write bare file names, such as nvcuda.dll"),
        "source" => {
            Some(r"write a path below the driver store folder, such as B026261\amfrt64.dll")
        }
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

/// `true` or `false`.
#[derive(Deserialize, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Switch(pub(crate) bool);

/// Variables may also have the spellings of Go's `strconv.ParseBool`, which the earlier plugins
/// used, and of YAML 1.1.
impl FromStr for Switch {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.to_ascii_lowercase().as_str() {
            "1" | "t" | "true" | "yes" | "on" => Ok(Switch(true)),
            "0" | "f" | "false" | "no" | "off" => Ok(Switch(false)),
            _ => Err("expected true or false"),
        }
    }
}

impl fmt::Display for Switch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Whether integrated devices are included: `true`, `false`, or by default only on Linux.
#[derive(Deserialize, Clone, Copy, Debug)]
pub(crate) struct Integrated(pub(crate) Option<bool>);

impl Integrated {
    fn default_for(model: DriverModel) -> Integrated {
        Integrated((model == DriverModel::Legacy).then_some(true))
    }
}

impl FromStr for Integrated {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().map(|Switch(included)| Integrated(Some(included)))
    }
}

impl fmt::Display for Integrated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(included) => included.fmt(f),
            None => f.write_str("false, on Linux true"),
        }
    }
}

/// A list of texts.
#[derive(Deserialize, Clone, Debug)]
#[serde(bound = "T: FromStr<Err: fmt::Display>")]
pub(crate) struct List<T>(pub(crate) Vec<Parsed<T>>);

impl<T: fmt::Display> fmt::Display for List<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<String> = self.0.iter().map(Parsed::to_string).collect();
        write!(f, "[{}]", names.join(", "))
    }
}

/// How many resets of a driver make a device unhealthy; by default, any number does not.
#[derive(Deserialize, Clone, Copy, Debug, Default)]
#[serde(from = "AnyCase<ResetsFile>")]
pub(crate) struct Resets(pub(crate) Option<ResetLimit>);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ResetsFile {
    count: Number<1, MAX_RESETS>,
    minutes: Number<1, MAX_RESET_MINUTES>,
}

impl From<AnyCase<ResetsFile>> for Resets {
    fn from(AnyCase(file): AnyCase<ResetsFile>) -> Resets {
        Resets(Some(ResetLimit { count: positive(file.count), minutes: positive(file.minutes) }))
    }
}

impl fmt::Display for Resets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(ResetLimit { count, minutes }) => {
                write!(f, "{{count: {count}, minutes: {minutes}}}")
            }
            None => f.write_str("off"),
        }
    }
}

/// Additional mounts: vendor → list of files.
#[derive(Deserialize, Clone, Debug, Default)]
#[serde(from = "Entries<Vendor, Option<Vec<AnyCase<Mount>>>>")]
pub(crate) struct Mounts(pub(crate) AdditionalMounts);

impl From<Entries<Vendor, Option<Vec<AnyCase<Mount>>>>> for Mounts {
    fn from(file: Entries<Vendor, Option<Vec<AnyCase<Mount>>>>) -> Mounts {
        let entries = file.0.into_iter().map(|(vendor, list)| {
            let mounts = list.unwrap_or_default().into_iter().map(|AnyCase(Mount(mount))| mount);
            (vendor, mounts.collect())
        });
        Mounts(entries.collect())
    }
}

impl fmt::Display for Mounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mounts = self.0.iter().flat_map(|(vendor, files)| {
            files.iter().map(move |f| format!("{vendor}: {} => {}", f.source, f.destination))
        });
        write!(f, "[{}]", mounts.collect::<Vec<_>>().join(", "))
    }
}

/// One additional mount.
#[derive(Deserialize)]
#[serde(try_from = "MountFile")]
struct Mount(RuntimeFile);

/// The keys of a mount; without a destination the file keeps its name.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MountFile {
    source: Parsed<StorePath>,
    #[serde(default, deserialize_with = "present")]
    destination: Option<Parsed<Destination>>,
}

impl TryFrom<MountFile> for Mount {
    type Error = String;

    fn try_from(file: MountFile) -> Result<Mount, String> {
        let source = file.source.0;
        let destination = match file.destination {
            Some(destination) => destination.0,
            None => source.file_name().try_into().map_err(|error: DestinationError| {
                format!("source `{source}`: {error}; name another destination")
            })?,
        };
        Ok(Mount(RuntimeFile { source, destination }))
    }
}

/// The device classes of driver models: one GUID for all of them, or driver model → GUID.
#[derive(Deserialize, Clone, Debug)]
#[serde(try_from = "TextOr<Entries<DriverModel, Parsed<DeviceClass>>>")]
pub(crate) struct DeviceClasses(BTreeMap<DriverModel, DeviceClass>);

impl DeviceClasses {
    fn default_for(model: DriverModel) -> DeviceClasses {
        let class = DeviceClass::default_for(model);
        DeviceClasses(class.map(|class| (model, class)).into_iter().collect())
    }

    /// The class, if these are the settings of one driver model.
    pub(crate) fn class(&self) -> Option<DeviceClass> {
        self.0.values().next().copied()
    }
}

impl TryFrom<TextOr<Entries<DriverModel, Parsed<DeviceClass>>>> for DeviceClasses {
    type Error = ParseError;

    fn try_from(
        file: TextOr<Entries<DriverModel, Parsed<DeviceClass>>>,
    ) -> Result<Self, Self::Error> {
        Ok(DeviceClasses(match file {
            TextOr::Text(text) => {
                let class = text.parse()?;
                let all = [DriverModel::Wddm, DriverModel::Mcdm, DriverModel::Legacy];
                all.into_iter().map(|model| (model, class)).collect()
            }
            TextOr::Several(Entries(classes)) => {
                classes.into_iter().map(|(model, Parsed(class))| (model, class)).collect()
            }
        }))
    }
}

impl fmt::Display for DeviceClasses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.class() {
            Some(class) => class.fmt(f),
            None => f.write_str("none"),
        }
    }
}
