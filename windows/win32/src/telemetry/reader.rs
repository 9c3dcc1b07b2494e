//! Reads the telemetry of this host.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::io;

use devices::{Luid, Telemetry};

use super::kernel::{EngineDescription, complete};
use super::states;
use crate::sys::dxcore::{Dxcore, DxcoreAdapter};
use crate::sys::kmt_statistics::KernelStatistics;
use crate::sys::library::Library;

/// Reads what adapters do. Between two reads it keeps the adapters and the descriptions of their
/// engines, so that a read takes only the queries of what changes.
#[derive(Default)]
pub struct TelemetryReader {
    interfaces: Option<Interfaces>,
    known: BTreeMap<Luid, Known>,
}

/// The interfaces of this Windows; each may be missing.
struct Interfaces {
    dxcore: io::Result<Dxcore>,
    kernel: io::Result<KernelStatistics>,
}

/// What is known about an adapter.
struct Known {
    adapter: Option<DxcoreAdapter>,
    engines: Vec<EngineDescription>,
}

impl TelemetryReader {
    /// Reads these adapters. Blocks, for microseconds unless the driver hangs.
    ///
    /// An adapter that does not exist, or no longer, is an error.
    pub fn read(&mut self, luids: &[Luid]) -> Vec<(Luid, io::Result<Telemetry>)> {
        self.known.retain(|luid, known| luids.contains(luid) && known.is_valid());
        let interfaces = self.interfaces.get_or_insert_with(Interfaces::open);
        let known = &mut self.known;
        luids.iter().map(|luid| (*luid, interfaces.read(known, *luid))).collect()
    }
}

impl Known {
    fn is_valid(&self) -> bool {
        self.adapter.as_ref().is_none_or(DxcoreAdapter::is_valid)
    }
}

impl Interfaces {
    fn open() -> Self {
        Self {
            dxcore: Library::system("dxcore.dll").and_then(Dxcore::open),
            kernel: KernelStatistics::load(),
        }
    }

    fn read(&self, known: &mut BTreeMap<Luid, Known>, luid: Luid) -> io::Result<Telemetry> {
        let kernel = self.kernel.as_ref().map_err(same).and_then(|kernel| kernel.open(luid));
        let known = match known.entry(luid) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => {
                new.insert(Known { adapter: self.dxcore_adapter(luid)?, engines: Vec::new() })
            }
        };
        // A driver that is starting does not report its engines yet.
        if let (true, Ok(kernel)) = (known.engines.is_empty(), &kernel) {
            known.engines = EngineDescription::of(kernel);
        }
        let mut telemetry = match (&known.adapter, &kernel) {
            (Some(adapter), _) if !adapter.is_valid() => {
                return Err(io::Error::other("the adapter was removed"));
            }
            (Some(adapter), _) => states::read(adapter, &known.engines),
            (None, Ok(_)) => Telemetry::default(),
            (None, Err(error)) => return Err(cannot_open("the graphics kernel", error)),
        };
        if let Ok(kernel) = &kernel {
            complete(&mut telemetry, kernel, &known.engines);
        }
        Ok(telemetry)
    }

    /// The adapter; `None` on a host without `DXCore`. Where it exists, adapters are its own.
    fn dxcore_adapter(&self, luid: Luid) -> io::Result<Option<DxcoreAdapter>> {
        let Ok(dxcore) = &self.dxcore else { return Ok(None) };
        dxcore.adapter(luid).map(Some).map_err(|error| cannot_open("DXCore", &error))
    }
}

fn cannot_open(interface: &str, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("cannot open the adapter with {interface}: {error}"))
}

/// The same error again.
fn same(error: &io::Error) -> io::Error {
    match error.raw_os_error() {
        Some(code) => io::Error::from_raw_os_error(code),
        None => io::Error::new(error.kind(), error.to_string()),
    }
}

#[cfg(test)]
mod tests;
