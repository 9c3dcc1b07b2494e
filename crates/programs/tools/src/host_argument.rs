//! The host that a program inspects: this host, or one recorded in an inventory.

use std::path::PathBuf;

use anyhow::anyhow;
use command_line::Failure;
use host::HostSnapshot;

/// What to do on a host that does not run Windows.
pub(crate) const USE_INVENTORY: &str =
    "use `--inventory FILE` with a file that `directx-device-plugin record` wrote on Windows";

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
        if self.inventory.is_none() && !cfg!(windows) {
            let os = std::env::consts::OS;
            let error =
                anyhow!("this host runs {os}; without an inventory, this program needs Windows");
            return Err(Failure::runtime(error).hint(USE_INVENTORY));
        }
        Ok(command_line::read_host(self.inventory.as_deref())?)
    }
}
