//! Which file each driver model is configured by.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::file::{FileSettings, read_file};
use crate::variables::Variables;
use crate::{SettingsError, Surroundings};

/// The folder that is looked into after the working directory; on Windows on the
/// system drive.
const MACHINE_FOLDER: &str =
    if cfg!(windows) { r"\etc\directx-device-plugins" } else { "/etc/directx-device-plugins" };

/// The settings of the file for one driver model; none where there is no file.
/// `config` is `--config`, which is for every driver model.
pub(crate) fn settings(
    variables: &Variables<'_>,
    config: Option<&Path>,
) -> Result<FileSettings, SettingsError> {
    let around = variables.around;
    if let Some(path) = config {
        let bytes = around
            .read(path)
            .map_err(|source| SettingsError::File { path: path.to_owned(), source })?;
        return Ok(read_file(path, &bytes)?);
    }
    if let Some(path) = variables.config_file()? {
        let path = path.value;
        let bytes = around.read(&path).map_err(|error| {
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

/// `<model>.yaml` in the working directory, else in the machine's folder.
fn default_file(variables: &Variables<'_>) -> Result<FileSettings, SettingsError> {
    let name = format!("{}.yaml", variables.model);
    let around = variables.around;
    // A working directory that was deleted holds no file.
    let here = around.working_directory().ok();
    for folder in here.into_iter().chain([machine_folder(around)]) {
        let path = folder.join(&name);
        match around.read(&path) {
            Ok(bytes) => return Ok(read_file(&path, &bytes)?),
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(source) => return Err(SettingsError::File { path, source }),
        }
    }
    Ok(FileSettings::default())
}

fn machine_folder(around: &dyn Surroundings) -> PathBuf {
    let drive = if cfg!(windows) { around.variable("SystemDrive") } else { None };
    let mut folder = drive.unwrap_or_default();
    folder.push(MACHINE_FOLDER);
    folder.into()
}
