//! The configuration file of each driver model.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::settings::{FileSettings, read_file};
use crate::variables::Variables;
use crate::{ConfigError, Environment, Trust};

/// The folder searched after the working directory; on Windows on the system drive.
const MACHINE_FOLDER: &str =
    if cfg!(windows) { r"\etc\directx-device-plugins" } else { "/etc/directx-device-plugins" };

/// The default files of a driver model, in the order in which they are tried.
const EXTENSIONS: [&str; 3] = ["yaml", "yml", "json"];

/// The settings of the file for one driver model; empty if no file exists. `chosen` is
/// the file of the command line, which applies to every driver model.
pub(crate) fn settings(
    variables: &Variables<'_>,
    chosen: Option<&Path>,
) -> Result<FileSettings, ConfigError> {
    let environment = variables.environment;
    if let Some(path) = chosen {
        let bytes = environment
            .read(path)
            .map_err(|source| ConfigError::File { path: path.to_owned(), source })?;
        return Ok(read_file(path, &bytes)?);
    }
    if let Some(path) = variables.config_file()? {
        let path = path.value;
        let bytes = environment.read(&path).map_err(|error| {
            let what = match error.kind() {
                ErrorKind::NotFound => "the file does not exist".to_owned(),
                _ => format!("cannot read the file: {error}"),
            };
            variables.bad_config_file(&path, what)
        })?;
        return Ok(read_file(&path, &bytes)?);
    }
    default_file(variables)
}

/// The first default file found that is trusted: in the working directory, then in the machine's
/// folder.
fn default_file(variables: &Variables<'_>) -> Result<FileSettings, ConfigError> {
    let environment = variables.environment;
    // A working directory that was deleted contains no file.
    let here = environment.working_directory().ok();
    let mut ignored = Vec::new();
    for folder in here.into_iter().chain([machine_folder(environment)]) {
        ignored.extend(toml_notice(&folder, variables));
        for extension in EXTENSIONS {
            let path = folder.join(format!("{}.{extension}", variables.model));
            // This is checked before the file is read, because a file that others wrote must not stop
            // the program either.
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
                Ok(bytes) => return Ok(read_file(&path, &bytes)?.with_ignored(ignored)),
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(source) => return Err(ConfigError::File { path, source }),
            }
        }
    }
    Ok(FileSettings::default().with_ignored(ignored))
}

/// A warning about the file of an earlier plugin, which read TOML.
fn toml_notice(folder: &Path, variables: &Variables<'_>) -> Option<String> {
    let (model, path) = (variables.model, folder.join(format!("{}.toml", variables.model)));
    variables.environment.read(&path).ok()?;
    let path = path.display();
    Some(format!("the file `{path}` is ignored: write its keys to {model}.yaml, as YAML"))
}

fn machine_folder(environment: &dyn Environment) -> PathBuf {
    let drive = if cfg!(windows) { environment.variable("SystemDrive") } else { None };
    let mut folder = drive.unwrap_or_default();
    folder.push(MACHINE_FOLDER);
    folder.into()
}
