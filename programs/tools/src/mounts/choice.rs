//! Which of a host's devices are meant.

use devices::{Device, Luid};

/// What the command line says about devices. Each word must mean a device.
#[derive(clap::Args, Debug, Default, PartialEq, Eq)]
pub(super) struct Choice {
    /// Every device that can be given to a container
    #[arg(long)]
    pub(super) all: bool,
    /// Device numbers from the output of test-device-discovery; repeatable, or separated by commas
    #[arg(long = "index", value_name = "N", value_delimiter = ',')]
    pub(super) indexes: Vec<usize>,
    /// Adapter LUIDs as signed numbers; repeatable, or separated by commas
    // Without `allow_hyphen_values` clap reads `-7,5` as short options.
    #[arg(long = "luid", value_name = "N", value_delimiter = ',', allow_hyphen_values = true)]
    pub(super) luids: Vec<i64>,
    /// Device location paths, compared case-insensitively; repeatable, or separated by commas
    #[arg(long = "path", value_name = "LOCATION", value_delimiter = ',')]
    pub(super) paths: Vec<String>,
}

/// Why no device is chosen.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum ChoiceError {
    /// None was asked for.
    #[error("no device is chosen")]
    Nothing,
    /// The host has none.
    #[error("this host has no DirectX device")]
    NoDevices,
    /// Something that was asked for does not exist.
    #[error("no device has the {0}")]
    NoSuchDevice(String),
}

impl Choice {
    /// The numbers of the chosen devices, in the order of the host, each once.
    pub(super) fn of(&self, devices: &[Device]) -> Result<Vec<usize>, ChoiceError> {
        let named = self.indexes.len() + self.luids.len() + self.paths.len();
        if named == 0 && !self.all {
            return Err(ChoiceError::Nothing);
        }
        if devices.is_empty() {
            return Err(ChoiceError::NoDevices);
        }
        let mut chosen: Vec<usize> = Vec::new();
        if self.all {
            chosen.extend(0..devices.len());
        }
        for index in &self.indexes {
            let number = devices.get(*index).map(|_| *index);
            chosen.push(number.ok_or_else(|| no_such("index", index))?);
        }
        for luid in &self.luids {
            let number = devices.iter().position(|device| device.luid == Luid(*luid));
            chosen.push(number.ok_or_else(|| no_such("LUID", luid))?);
        }
        for path in &self.paths {
            let number = devices.iter().position(|device| is_at(device, path));
            chosen.push(number.ok_or_else(|| no_such("location path", path))?);
        }
        chosen.sort_unstable();
        chosen.dedup();
        Ok(chosen)
    }
}

fn no_such(what: &str, value: &dyn std::fmt::Display) -> ChoiceError {
    ChoiceError::NoSuchDevice(format!("{what} {value}"))
}

fn is_at(device: &Device, path: &str) -> bool {
    device.location_path.as_ref().is_some_and(|at| at.as_str().eq_ignore_ascii_case(path))
}

/// What can be chosen, a line a device.
pub(super) fn listing(devices: &[Device]) -> String {
    let lines: Vec<String> = devices
        .iter()
        .enumerate()
        .map(|(number, device)| {
            let path = device.location_path.as_ref().map_or("none", |path| path.as_str());
            format!(
                "  index {number}: {}, LUID {}, location path {path}",
                device.description, device.luid
            )
        })
        .collect();
    lines.join("\n")
}
