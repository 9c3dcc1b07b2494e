//! Selects devices of a host by the options of the command line.

use std::collections::BTreeMap;
use std::fmt::{self, Display};

use anyhow::anyhow;
use command_line::Failure;
use devices::Device;
use host::{LocationPath, Luid};

/// The options that select devices. Each value must match a device.
#[derive(clap::Args, Debug, Default, PartialEq, Eq)]
pub(super) struct DeviceSelector {
    /// Select every device that the device plugin could advertise
    #[arg(long)]
    pub(super) all: bool,
    /// Select devices by number in the output of test-device-discovery; repeatable, or separated by
    /// commas
    #[arg(long = "index", value_name = "N", value_delimiter = ',', value_parser = parse_index)]
    pub(super) indexes: Vec<usize>,
    /// Select devices by adapter LUID, a signed number; repeatable, or separated by commas
    // Without `allow_hyphen_values` clap reads `-7,5` as short options.
    #[arg(long = "luid", value_name = "N", value_delimiter = ',', allow_hyphen_values = true)]
    #[arg(value_parser = parse_luid)]
    pub(super) luids: Vec<i64>,
    /// Select devices by location path, ignoring case; repeatable, or separated by commas
    #[arg(long = "path", value_name = "LOCATION", value_delimiter = ',')]
    pub(super) paths: Vec<String>,
}

/// How a device is selected.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Selected {
    /// By `--all`.
    WithAll,
    /// By an option that names it.
    ByName,
}

impl DeviceSelector {
    /// The indexes of the selected devices in `devices`.
    pub(super) fn select(&self, devices: &[Device]) -> Result<BTreeMap<usize, Selected>, Failure> {
        if devices.is_empty() {
            return Err(Failure::runtime(anyhow!("this host has no DirectX device")));
        }
        let mut selected = BTreeMap::new();
        if self.all {
            selected.extend((0..devices.len()).map(|index| (index, Selected::WithAll)));
        }
        let mut add = |found: Option<usize>, what, value: &dyn Display| -> Result<(), Failure> {
            let index = found.ok_or_else(|| no_such(what, value))?;
            selected.insert(index, Selected::ByName);
            Ok(())
        };
        for index in &self.indexes {
            add(devices.get(*index).map(|_| *index), "index", index)?;
        }
        for luid in &self.luids {
            let found = devices.iter().position(|device| device.luid == Luid(*luid));
            add(found, "LUID", luid)?;
        }
        for path in &self.paths {
            let found = devices.iter().position(|device| is_at(device, path));
            add(found, "location path", path)?;
        }
        Ok(selected)
    }
}

/// The options as text.
impl Display for DeviceSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = self.all.then(|| "all devices".to_owned());
        let indexes = self.indexes.iter().map(|index| format!("index {index}"));
        let luids = self.luids.iter().map(|luid| format!("LUID {luid}"));
        let paths = self.paths.iter().map(|path| format!("location path {path}"));
        let options: Vec<String> =
            all.into_iter().chain(indexes).chain(luids).chain(paths).collect();
        f.write_str(&options.join(", "))
    }
}

fn parse_index(text: &str) -> Result<usize, &'static str> {
    text.parse().map_err(
        |_| "expected the number of a device, such as 0; `test-device-discovery` lists the devices",
    )
}

fn parse_luid(text: &str) -> Result<i64, &'static str> {
    text.parse().map_err(|_| {
        "expected a LUID in decimal, such as 7048070; `test-device-discovery` lists the devices"
    })
}

fn is_at(device: &Device, path: &str) -> bool {
    device.location_path.as_ref().is_some_and(|at| *at == LocationPath::new(path))
}

fn no_such(what: &str, value: &dyn Display) -> Failure {
    Failure::runtime(anyhow!("no device with {what} {value}"))
        .hint("`test-device-discovery` lists the devices")
}
