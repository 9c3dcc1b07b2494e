//! Environment variables: their names and what their values mean.
//!
//! An empty variable means unset, as for the earlier plugins: manifests set a variable to an
//! empty value to select the default.

use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

use devices::{DeviceScope, DriverModel, ResourceName, RuntimeMounts};

use crate::origin::{Origin, Sourced};
use crate::values::RESOURCE_NAME_HINT;
use crate::{Environment, MAX_MULTITENANCY, SettingsError};

/// Every environment variable that the program reads; `{MODEL}` is `WDDM`, `MCDM` or `LEGACY`.
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
    pub(crate) environment: &'a dyn Environment,
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

    /// `true` means `runtimeMounts: never`; `false` means that the file decides.
    pub(crate) fn runtime_mounts(&self) -> Read<RuntimeMounts> {
        let skip = self.flag("SKIP_RUNTIME_MOUNTS", |skip| skip)?;
        let skip = skip.filter(|skip| skip.value);
        Ok(skip.map(|skip| Sourced { value: RuntimeMounts::Never, origin: skip.origin }))
    }

    pub(crate) fn resource_name(&self) -> Read<ResourceName> {
        self.read("RESOURCE_NAME", RESOURCE_NAME_HINT, |text| {
            text.parse().map_err(|error| format!("{error}"))
        })
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
            hint: "name an existing, readable file, or leave the variable unset",
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
        variable(self.environment, self.name(suffix), hint, parse)
    }

    fn name(&self, suffix: &str) -> String {
        format!("{}_DEVICE_PLUGIN_{suffix}", self.model.name().to_ascii_uppercase())
    }
}

/// `DIRECTX_GPU_MATCH_NAME`, for the driver model `legacy`.
pub(crate) fn match_name(environment: &dyn Environment) -> Read<String> {
    let hint = "write a part of the adapter names, such as nvidia";
    variable(environment, "DIRECTX_GPU_MATCH_NAME".to_owned(), hint, |text| Ok(text.to_owned()))
}

/// `PLUGIN_SOCK_DIR`, for the driver model `legacy`.
pub(crate) fn socket_directory(environment: &dyn Environment) -> Read<PathBuf> {
    let hint = r"write the kubelet's directory, such as C:\var\lib\kubelet\device-plugins";
    variable(environment, "PLUGIN_SOCK_DIR".to_owned(), hint, |text| Ok(PathBuf::from(text)))
}

/// Warnings about variables that resemble one of [`VARIABLES`] but have no effect.
pub(crate) fn misspelled_variables(environment: &dyn Environment) -> Vec<String> {
    let known: Vec<String> = known_variables().collect();
    let mut names = environment.variable_names();
    names.sort();
    names
        .iter()
        // Windows ignores the case of variable names.
        .filter(|name| {
            !known.iter().any(|k| k == *name || cfg!(windows) && k.eq_ignore_ascii_case(name))
        })
        .filter_map(|name| {
            let meant = documents::closest(name, known.iter().map(String::as_str))?;
            Some(format!("variable {name} has no effect; did you mean {meant}?"))
        })
        .collect()
}

fn known_variables() -> impl Iterator<Item = String> {
    let models = [DriverModel::Wddm, DriverModel::Mcdm, DriverModel::Legacy];
    VARIABLES.into_iter().flat_map(move |name| {
        let per_model = name.contains("{MODEL}");
        models
            .into_iter()
            .filter(move |model| per_model || *model == DriverModel::Legacy)
            .map(move |model| name.replace("{MODEL}", &model.name().to_ascii_uppercase()))
    })
}

/// The number of replicas that `multitenancy` means: 0 means 1, as in the earlier plugins.
pub(crate) fn replicas(multitenancy: u32) -> NonZeroU32 {
    NonZeroU32::new(multitenancy).unwrap_or(NonZeroU32::MIN)
}

fn variable<T>(
    environment: &dyn Environment,
    name: String,
    hint: &'static str,
    parse: impl Fn(&str) -> Result<T, String>,
) -> Read<T> {
    let Some(value) = environment.variable(&name) else { return Ok(None) };
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

/// The spellings that Go's `strconv.ParseBool` accepts, which the earlier plugins used, and
/// those of YAML 1.1.
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

/// Whether a path is absolute on this system or on Windows: manifests are tried on other
/// systems too.
fn is_absolute(path: &str) -> bool {
    let windows = match path.as_bytes() {
        [drive, b':', b'\\' | b'/', ..] => drive.is_ascii_alphabetic(),
        [b'\\', b'\\', first, ..] => *first != b'\\',
        _ => false,
    };
    windows || PathBuf::from(path).is_absolute()
}
