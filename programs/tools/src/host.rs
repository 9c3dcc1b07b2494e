//! The host that a program inspects: this host, or one recorded in an inventory.

use std::path::PathBuf;

use command_line::Failure;
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
        if self.inventory.is_none() && !cfg!(windows) {
            let error = anyhow::anyhow!("DirectX devices can be listed only on Windows");
            return Err(Failure::runtime(error)
                .hint("use `--inventory FILE` to read an inventory that was recorded on Windows"));
        }
        command_line::read_host(self.inventory.as_deref())
    }
}
