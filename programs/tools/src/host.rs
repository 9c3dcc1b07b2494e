//! The host that a program inspects: this host, or one recorded in an inventory.

use std::path::{Path, PathBuf};

use cli::Failure;
use devices::HostSnapshot;

/// The option that selects the host.
#[derive(clap::Args, Debug)]
pub(crate) struct Host {
    /// Inventory file to use instead of this host
    #[arg(long, value_name = "FILE")]
    pub(crate) inventory: Option<PathBuf>,
}

impl Host {
    /// The host's adapters and facts.
    pub(crate) fn snapshot(&self) -> Result<HostSnapshot, Failure> {
        match &self.inventory {
            Some(file) => from_inventory(file),
            None => live(),
        }
    }
}

/// The host that an inventory describes.
pub(crate) fn from_inventory(file: &Path) -> Result<HostSnapshot, Failure> {
    inventory::read(file).map_err(|error| {
        let hint = error.hint().map(str::to_owned);
        Failure::usage(error).hint_if_any(hint)
    })
}

#[cfg(windows)]
fn live() -> Result<HostSnapshot, Failure> {
    use devices::AdapterSource as _;

    let mut source = win32::HostSource::new().map_err(Failure::runtime)?;
    source.snapshot().map_err(|error| Failure::runtime(anyhow::Error::from_boxed(error)))
}

#[cfg(not(windows))]
fn live() -> Result<HostSnapshot, Failure> {
    Err(Failure::runtime(anyhow::anyhow!("DirectX devices can be listed only on Windows"))
        .hint("use `--inventory FILE` to read an inventory that was recorded on Windows"))
}
