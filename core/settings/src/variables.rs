//! Environment variables: their names and what their values mean.
//!
//! An empty variable is one that is not set, as it was for the earlier plugins:
//! manifests set variables to nothing to take a default.

use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

use devices::{DeviceScope, DriverModel, ResourceName, RuntimeMounts};

use crate::origin::{Origin, Sourced};
use crate::{MAX_MULTITENANCY, SettingsError, Surroundings};

/// Every environment variable that is read; `{MODEL}` is `WDDM`, `MCDM` or `LEGACY`.
pub const VARIABLES: [&str; 8] = [
    "{MODEL}_DEVICE_PLUGIN_MULTITENANCY",
    "{MODEL}_DEVICE_PLUGIN_INCLUDE_INTEGRATED",
    "{MODEL}_DEVICE_PLUGIN_INCLUDE_DETACHABLE",
    "{MODEL}_DEVICE_PLUGIN_CONFIG_FILE",
    "{MODEL}_DEVICE_PLUGIN_SKIP_RUNTIME_MOUNTS",
    "{MODEL}_DEVICE_PLUGIN_RESOURCE_NAME",
    "DIRECTX_GPU_MATCH_NAME",
    "PLUGIN_SOCK_DIR",
];

/// The variables of one driver model.
pub(crate) struct Variables<'a> {
    pub(crate) model: DriverModel,
    pub(crate) around: &'a dyn Surroundings,
}

type Read<T> = Result<Option<Sourced<T>>, SettingsError>;

impl Variables<'_> {
    pub(crate) fn multitenancy(&self) -> Read<NonZeroU32> {
        self.read(
            "MULTITENANCY",
            "write a whole number, such as 4, or leave the variable unset",
            |text| {
                let out_of_range =
                    || format!("expected a whole number from 0 to {MAX_MULTITENANCY}");
                let number: u32 = text.parse().map_err(|_| out_of_range())?;
                if number > MAX_MULTITENANCY { Err(out_of_range()) } else { Ok(replicas(number)) }
            },
        )
    }

    pub(crate) fn include_integrated(&self) -> Read<DeviceScope> {
        self.flag("INCLUDE_INTEGRATED", scope)
    }

    pub(crate) fn include_detachable(&self) -> Read<DeviceScope> {
        self.flag("INCLUDE_DETACHABLE", scope)
    }

    /// `true` is `runtimeMounts: never`; `false` leaves the file its say.
    pub(crate) fn runtime_mounts(&self) -> Read<RuntimeMounts> {
        let skip = self.flag("SKIP_RUNTIME_MOUNTS", |skip| skip)?;
        let skip = skip.filter(|skip| skip.value);
        Ok(skip.map(|skip| Sourced { value: RuntimeMounts::Never, origin: skip.origin }))
    }

    pub(crate) fn resource_name(&self) -> Read<ResourceName> {
        self.read(
            "RESOURCE_NAME",
            "write a domain, a slash and a name, such as example.com/gpu",
            |text| text.parse().map_err(|error| format!("{error}")),
        )
    }

    pub(crate) fn config_file(&self) -> Read<PathBuf> {
        let hint = r"write an absolute path, such as C:\etc\directx-device-plugins\wddm.yaml";
        self.read("CONFIG_FILE", hint, |text| {
            if is_absolute(text) {
                Ok(PathBuf::from(text))
            } else {
                Err("the path is not absolute".to_owned())
            }
        })
    }

    /// An error about `CONFIG_FILE`, whose value was `path`.
    pub(crate) fn bad_config_file(&self, path: &Path, what: String) -> SettingsError {
        SettingsError::Variable {
            name: self.name("CONFIG_FILE"),
            value: path.display().to_string(),
            what,
            hint: "name a file that exists and can be read, or leave the variable unset",
        }
    }

    fn flag<T>(&self, suffix: &str, meaning: fn(bool) -> T) -> Read<T> {
        self.read(suffix, "write true or false, or leave the variable unset", |text| {
            boolean(text).map(meaning)
        })
    }

    fn read<T>(
        &self,
        suffix: &str,
        hint: &'static str,
        parse: impl Fn(&str) -> Result<T, String>,
    ) -> Read<T> {
        variable(self.around, self.name(suffix), hint, parse)
    }

    fn name(&self, suffix: &str) -> String {
        format!("{}_DEVICE_PLUGIN_{suffix}", self.model.name().to_ascii_uppercase())
    }
}

/// `DIRECTX_GPU_MATCH_NAME`, for the driver model `legacy`.
pub(crate) fn match_name(around: &dyn Surroundings) -> Read<String> {
    let hint = "write a part of the adapters' names, such as nvidia";
    variable(around, "DIRECTX_GPU_MATCH_NAME".to_owned(), hint, |text| Ok(text.to_owned()))
}

/// `PLUGIN_SOCK_DIR`, for the driver model `legacy`.
pub(crate) fn socket_directory(around: &dyn Surroundings) -> Read<PathBuf> {
    let hint = r"write the kubelet's directory, such as C:\var\lib\kubelet\device-plugins";
    variable(around, "PLUGIN_SOCK_DIR".to_owned(), hint, |text| Ok(PathBuf::from(text)))
}

/// How many slots `multitenancy` stands for: 0 means 1, as it always did.
pub(crate) fn replicas(multitenancy: u32) -> NonZeroU32 {
    NonZeroU32::new(multitenancy).unwrap_or(NonZeroU32::MIN)
}

fn variable<T>(
    around: &dyn Surroundings,
    name: String,
    hint: &'static str,
    parse: impl Fn(&str) -> Result<T, String>,
) -> Read<T> {
    let Some(value) = around.variable(&name) else { return Ok(None) };
    let parsed = match value.to_str().map(str::trim) {
        Some("") => return Ok(None),
        Some(text) => parse(text),
        None => Err("the value is not Unicode text".to_owned()),
    };
    match parsed {
        Ok(value) => Ok(Some(Sourced { value, origin: Origin::Variable(name) })),
        Err(what) => {
            let value = value.to_string_lossy().into_owned();
            Err(SettingsError::Variable { name, value, what, hint })
        }
    }
}

/// The spellings that Go's `strconv.ParseBool` takes, through which the earlier
/// plugins read them, and YAML's words.
fn boolean(text: &str) -> Result<bool, String> {
    match text.to_ascii_lowercase().as_str() {
        "1" | "t" | "true" | "yes" | "on" => Ok(true),
        "0" | "f" | "false" | "no" | "off" => Ok(false),
        _ => Err("expected true or false".to_owned()),
    }
}

pub(crate) fn scope(include: bool) -> DeviceScope {
    if include { DeviceScope::Include } else { DeviceScope::Exclude }
}

/// Whether a path is absolute here, or as Windows writes it: manifests are read on
/// other systems too.
fn is_absolute(path: &str) -> bool {
    let windows = match path.as_bytes() {
        [drive, b':', b'\\' | b'/', ..] => drive.is_ascii_alphabetic(),
        [b'\\', b'\\', first, ..] => *first != b'\\',
        _ => false,
    };
    windows || PathBuf::from(path).is_absolute()
}
