//! The configuration file of each driver model.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::advice::advised;
use crate::any_case::AnyCase;
use crate::rules::{FileRule, file_rules};
use crate::settings::SetValues;
use crate::variables::Variables;
use crate::{ConfigError, Environment, ReadError, Trust, document, kubernetes_object};

/// The folder searched after the working directory; on Windows on the system drive.
const MACHINE_FOLDER: &str =
    if cfg!(windows) { r"\etc\directx-device-plugins" } else { "/etc/directx-device-plugins" };

/// The default files of a driver model, in the order in which they are tried.
const EXTENSIONS: [&str; 3] = ["yaml", "yml", "json"];

/// The default files of the earlier plugins, in the order in which they were tried: the names of
/// the library viper 1.12 (`SupportedExts` in `viper.go`), and last the name without an extension.
const EARLIER_EXTENSIONS: [&str; 13] = [
    "json",
    "toml",
    "yaml",
    "yml",
    "properties",
    "props",
    "prop",
    "hcl",
    "tfvars",
    "dotenv",
    "env",
    "ini",
    "",
];

/// The configuration file of a driver model.
#[derive(Default)]
pub(crate) struct ConfigFile {
    /// Its path; `None` if no file exists.
    pub(crate) path: Option<String>,
    pub(crate) values: SetValues,
    pub(crate) rules: Vec<FileRule>,
    /// Warnings about files that were found before this one and are ignored.
    pub(crate) ignored: Vec<String>,
}

/// Reads the file for one driver model; empty if no file exists. `chosen` is
/// the file of the command line, which applies to every driver model.
pub(crate) fn config_file(
    variables: &Variables<'_>,
    chosen: Option<&Path>,
) -> Result<ConfigFile, ConfigError> {
    let environment = variables.environment;
    if let Some(path) = chosen {
        let bytes = environment
            .read(path)
            .map_err(|source| ConfigError::File { path: path.to_owned(), source })?;
        return Ok(parse(path, &bytes)?);
    }
    if let Some(path) = variables.config_file()? {
        let bytes = environment.read(&path).map_err(|error| {
            let what = match error.kind() {
                ErrorKind::NotFound => "the file does not exist".to_owned(),
                _ => format!("cannot read the file: {error}"),
            };
            variables.bad_config_file(&path, what)
        })?;
        return Ok(parse(&path, &bytes)?);
    }
    default_file(variables)
}

/// The first default file found that is trusted: in the working directory, then in the machine's
/// folder.
fn default_file(variables: &Variables<'_>) -> Result<ConfigFile, ConfigError> {
    let environment = variables.environment;
    // A working directory that was deleted contains no file.
    let here = environment.working_directory().ok();
    let mut ignored = Vec::new();
    for folder in here.into_iter().chain([machine_folder(environment)]) {
        ignored.extend(earlier_notice(&folder, variables));
        for extension in EXTENSIONS {
            let path = default_path(&folder, variables, extension);
            // This is checked before the file is read, because a file that others wrote must not
            // stop the program either.
            match environment.trust(&path) {
                Trust::Trusted => {}
                Trust::Absent => continue,
                Trust::Distrusted(reason) => {
                    let path = path.display();
                    ignored.push(format!("the configuration file `{path}` is ignored: {reason}"));
                    continue;
                }
            }
            match environment.read(&path) {
                Ok(bytes) => return Ok(ConfigFile { ignored, ..parse(&path, &bytes)? }),
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(source) => return Err(ConfigError::File { path, source }),
            }
        }
    }
    Ok(ConfigFile { ignored, ..ConfigFile::default() })
}

fn parse(path: &Path, bytes: &[u8]) -> Result<ConfigFile, ReadError> {
    let name = path.display().to_string();
    let AnyCase(mut values): AnyCase<SetValues> =
        document::parse(&name, bytes).map_err(|error| {
            kubernetes_object::recognize(&error, &name, bytes, "configuration")
                .unwrap_or_else(|| advised(error))
        })?;
    let rules = file_rules(&name, values.resources.take().unwrap_or_default())?;
    Ok(ConfigFile { path: Some(name), values, rules, ignored: Vec::new() })
}

/// A warning about the file that the earlier plugins would read in the folder, if it is not one of
/// [`EXTENSIONS`]. They read every default file as YAML, whatever its extension.
fn earlier_notice(folder: &Path, variables: &Variables<'_>) -> Option<String> {
    let exists = |extension: &&str| {
        variables.environment.is_file(&default_path(folder, variables, extension))
    };
    let extension = EARLIER_EXTENSIONS.into_iter().find(exists)?;
    if EXTENSIONS.contains(&extension) {
        return None;
    }
    let model = variables.model;
    let path = default_path(folder, variables, extension);
    let path = path.display();
    Some(format!("the file `{path}` is ignored: write its keys to {model}.yaml, as YAML"))
}

fn default_path(folder: &Path, variables: &Variables<'_>, extension: &str) -> PathBuf {
    folder.join(variables.model.to_string()).with_extension(extension)
}

fn machine_folder(environment: &dyn Environment) -> PathBuf {
    let drive = if cfg!(windows) { environment.variable("SystemDrive") } else { None };
    let mut folder = drive.unwrap_or_default();
    folder.push(MACHINE_FOLDER);
    folder.into()
}
