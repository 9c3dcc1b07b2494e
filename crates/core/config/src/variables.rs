//! Environment variables: their names and what their values mean.
//!
//! An empty variable means unset, as for the earlier plugins: manifests set a variable to an
//! empty value to select the default. Blanks around a number or a word do not count. A name or a
//! path is used as it is, as in the plugin of 2019: with `DIRECTX_GPU_MATCH_NAME=" "`, Kubernetes'
//! own test of device plugins on Windows selects every adapter whose name has a blank.

use std::ffi::OsString;
use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use devices::{DriverModel, RuntimeMounts};
use host::ParseError;

use crate::advice::RESOURCE_NAME_HINT;
use crate::closest::closest;
use crate::setting_types::Switch;
use crate::settings::SetValues;
use crate::values::{Choice, Parsed};
use crate::{ConfigError, Environment};

/// Every environment variable that the program reads; `{MODEL}` is `WDDM`, `MCDM` or `LEGACY`.
pub const VARIABLES: [&str; 11] = [
    "{MODEL}_DEVICE_PLUGIN_MULTITENANCY",
    "{MODEL}_DEVICE_PLUGIN_INCLUDE_INTEGRATED",
    "{MODEL}_DEVICE_PLUGIN_INCLUDE_DETACHABLE",
    "{MODEL}_DEVICE_PLUGIN_CONFIG_FILE",
    "{MODEL}_DEVICE_PLUGIN_SKIP_RUNTIME_MOUNTS",
    "{MODEL}_DEVICE_PLUGIN_MULTI_DEVICE",
    "{MODEL}_DEVICE_PLUGIN_VISIBILITY",
    "{MODEL}_DEVICE_PLUGIN_RESOURCE_NAME",
    "DIRECTX_GPU_MATCH_NAME",
    "PLUGIN_SOCK_DIR",
    OTHER_DRIVER_MODELS,
];

/// The variables of one driver model.
pub(crate) struct Variables<'a> {
    pub(crate) model: DriverModel,
    pub(crate) environment: &'a dyn Environment,
}

type Read<T> = Result<Option<T>, ConfigError>;

const RESOURCE_NAME: &str = "RESOURCE_NAME";
const CONFIG_FILE: &str = "CONFIG_FILE";
const MATCH_NAME: &str = "DIRECTX_GPU_MATCH_NAME";
const SOCKET_DIRECTORY: &str = "PLUGIN_SOCK_DIR";

/// The driver models of another daemon that should run on the same node, separated by commas.
pub(crate) const OTHER_DRIVER_MODELS: &str = "DIRECTX_OTHER_DRIVER_MODELS";

/// The ends of the names of the variables that contain text.
const TEXTS: [&str; 4] = [RESOURCE_NAME, CONFIG_FILE, MATCH_NAME, SOCKET_DIRECTORY];

/// What to write for a variable that is true or false.
const SWITCH_HINT: &str = "write true or false, or leave the variable unset";

impl Variables<'_> {
    /// What the variables set.
    pub(crate) fn values(&self) -> Result<SetValues, ConfigError> {
        let multitenancy_hint = "write a whole number, such as 4, or leave the variable unset";
        // `true` means `runtimeMounts: never`; `false` means that the file decides.
        let skip = self.read::<Switch>("SKIP_RUNTIME_MOUNTS", SWITCH_HINT)?;
        Ok(SetValues {
            multitenancy: self.read("MULTITENANCY", multitenancy_hint)?,
            include_integrated: self.read("INCLUDE_INTEGRATED", SWITCH_HINT)?,
            include_detachable: self.read("INCLUDE_DETACHABLE", SWITCH_HINT)?,
            runtime_mounts: skip
                .filter(|Switch(skip)| *skip)
                .map(|_| Parsed(Choice(RuntimeMounts::Never))),
            multi_device: self.read(
                "MULTI_DEVICE",
                "write class, first or reject, or leave the variable unset",
            )?,
            visibility: self.read(
                "VISIBILITY",
                "write off, launcher or required, or leave the variable unset",
            )?,
            resource_name: self.read(RESOURCE_NAME, RESOURCE_NAME_HINT)?,
            ..SetValues::default()
        })
    }

    /// The variable that sets the resource's name.
    pub(crate) fn resource_name(&self) -> String {
        self.name(RESOURCE_NAME)
    }

    /// The variables that are set, except the one that names the file.
    pub(crate) fn names_of_set(&self) -> Vec<String> {
        variables_of(self.model)
            .filter(|name| !name.ends_with(CONFIG_FILE))
            .filter(|name| value(self.environment, name).is_some())
            .collect()
    }

    pub(crate) fn config_file(&self) -> Read<PathBuf> {
        let hint = r"write an absolute path, such as C:\etc\directx-device-plugins\wddm.yaml";
        variable(self.environment, self.name(CONFIG_FILE), hint, |text| {
            if is_absolute(text) {
                Ok(PathBuf::from(text))
            } else {
                Err("the path is not absolute".to_owned())
            }
        })
    }

    /// An error about `CONFIG_FILE`, whose value was `path`.
    pub(crate) fn bad_config_file(&self, path: &Path, what: String) -> ConfigError {
        ConfigError::Variable {
            name: self.name(CONFIG_FILE),
            value: path.display().to_string(),
            what,
            hint: "name an existing, readable file, or leave the variable unset",
        }
    }

    fn read<T: FromStr<Err: Display>>(&self, suffix: &str, hint: &'static str) -> Read<T> {
        variable(self.environment, self.name(suffix), hint, |text| {
            text.parse().map_err(|error: T::Err| error.to_string())
        })
    }

    fn name(&self, suffix: &str) -> String {
        format!("{}_DEVICE_PLUGIN_{suffix}", self.model.to_string().to_ascii_uppercase())
    }
}

/// `DIRECTX_GPU_MATCH_NAME`, for the driver model `legacy`.
pub(crate) fn match_name(environment: &dyn Environment) -> Read<String> {
    let hint = "write a part of the adapter names, such as nvidia";
    variable(environment, MATCH_NAME.to_owned(), hint, |text| Ok(text.to_owned()))
}

/// `PLUGIN_SOCK_DIR`, for the driver model `legacy`.
pub(crate) fn socket_directory(environment: &dyn Environment) -> Read<PathBuf> {
    let hint = r"write the kubelet's directory, such as C:\var\lib\kubelet\device-plugins";
    variable(environment, SOCKET_DIRECTORY.to_owned(), hint, |text| Ok(PathBuf::from(text)))
}

/// `DIRECTX_OTHER_DRIVER_MODELS`.
pub(crate) fn other_driver_models(
    environment: &dyn Environment,
) -> Result<Vec<DriverModel>, ConfigError> {
    let hint = "write the driver models of the other DaemonSet, such as mcdm";
    let read = variable(environment, OTHER_DRIVER_MODELS.to_owned(), hint, |text| {
        let models = text.split(',').map(|name| match name.trim().parse() {
            Ok(DriverModel::Legacy) => Err("legacy runs beside no other driver model".to_owned()),
            Ok(model) => Ok(model),
            Err(error) => Err(ParseError::to_string(&error)),
        });
        models.collect()
    })?;
    Ok(read.unwrap_or_default())
}

/// Warnings about variables that resemble one of [`VARIABLES`] but have no effect.
pub(crate) fn misspelled_variables(environment: &dyn Environment) -> Vec<String> {
    let known: Vec<String> = DriverModel::ALL.iter().copied().flat_map(variables_of).collect();
    let mut names = environment.variable_names();
    names.sort();
    names
        .iter()
        // Comparing takes long, and Kubernetes sets hundreds of variables.
        .filter(|name| name.contains("PLUGIN") || name.contains("DIRECTX"))
        // Windows ignores the case of variable names.
        .filter(|name| {
            !known.iter().any(|k| k == *name || cfg!(windows) && k.eq_ignore_ascii_case(name))
        })
        .filter_map(|name| {
            // Some name a variable after this plugin.
            let of_model = name.replacen("DIRECTX_DEVICE", "WDDM_DEVICE", 1);
            let meant = closest(&of_model, known.iter().map(String::as_str))?;
            Some(format!("variable {name} has no effect; did you mean {meant}?"))
        })
        .collect()
}

fn variables_of(model: DriverModel) -> impl Iterator<Item = String> {
    let is_legacy = model == DriverModel::Legacy;
    VARIABLES
        .into_iter()
        .filter(move |name| is_legacy || name.contains("{MODEL}") || *name == OTHER_DRIVER_MODELS)
        .map(move |name| name.replace("{MODEL}", &model.to_string().to_ascii_uppercase()))
}

fn variable<T>(
    environment: &dyn Environment,
    name: String,
    hint: &'static str,
    parse: impl Fn(&str) -> Result<T, String>,
) -> Read<T> {
    let Some(value) = value(environment, &name) else { return Ok(None) };
    let parsed = match value.to_str() {
        Some(text) => parse(text),
        None => Err("the value is not Unicode text".to_owned()),
    };
    match parsed {
        Ok(value) => Ok(Some(value)),
        Err(what) => {
            let value = value.to_string_lossy().into_owned();
            Err(ConfigError::Variable { name, value, what, hint })
        }
    }
}

/// What a variable is set to; `None` if it is not set, or empty.
fn value(environment: &dyn Environment, name: &str) -> Option<OsString> {
    let value = environment.variable(name)?;
    let is_text = TEXTS.iter().any(|text| name.ends_with(text));
    let value = match value.to_str() {
        Some(word) if !is_text => word.trim().into(),
        _ => value,
    };
    Some(value).filter(|value| !value.is_empty())
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
