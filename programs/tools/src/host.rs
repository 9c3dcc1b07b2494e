//! The host that a program inspects: this host, or one recorded in an inventory.

use std::path::PathBuf;

use devices::HostSnapshot;
use node::cli::Failure;

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
            Some(file) => node::cli::read_inventory(file),
            None => live(),
        }
    }
}

#[cfg(windows)]
fn live() -> Result<HostSnapshot, Failure> {
    node::cli::read_host(None)
}

#[cfg(not(windows))]
fn live() -> Result<HostSnapshot, Failure> {
    Err(Failure::runtime(anyhow::anyhow!("DirectX devices can be listed only on Windows"))
        .hint("use `--inventory FILE` to read an inventory that was recorded on Windows"))
}
