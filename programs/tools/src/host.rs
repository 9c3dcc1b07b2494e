//! The host that a program looks at: this one, or a recorded one.

use std::path::PathBuf;

use cli::Failure;
use devices::HostSnapshot;

/// Which host.
#[derive(clap::Args, Debug)]
pub(crate) struct Host {
    /// Recorded inventory to use instead of this host
    #[arg(long, value_name = "FILE")]
    pub(crate) inventory: Option<PathBuf>,
}

impl Host {
    /// The host's adapters and facts.
    pub(crate) fn snapshot(&self) -> Result<HostSnapshot, Failure> {
        match &self.inventory {
            Some(file) => cli::read_inventory(file),
            None => live(),
        }
    }
}

#[cfg(windows)]
fn live() -> Result<HostSnapshot, Failure> {
    use devices::AdapterSource as _;

    let mut source = win32::HostSource::new().map_err(Failure::at_work)?;
    source.snapshot().map_err(|error| Failure::at_work(anyhow::Error::from_boxed(error)))
}

#[cfg(not(windows))]
fn live() -> Result<HostSnapshot, Failure> {
    Err(Failure::at_work(anyhow::anyhow!("only Windows has DirectX devices to list"))
        .hint("`--inventory FILE` reads a host that was recorded on Windows"))
}
