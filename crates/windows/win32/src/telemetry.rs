//! Asks the graphics kernel what the adapters of this host do.

use std::io;

use host::{Luid, Telemetry};
use windows_report::telemetry::telemetry;

use crate::error::failed;
use crate::sys::kmt_statistics::KernelStatistics;

/// Reads what these adapters do. Blocks, for microseconds unless the driver hangs.
///
/// An adapter that does not exist, or no longer, is an error.
#[must_use]
pub fn read_telemetry(luids: &[Luid]) -> Vec<(Luid, io::Result<Telemetry>)> {
    let kernel = KernelStatistics::load();
    luids.iter().map(|luid| (*luid, read(&kernel, *luid))).collect()
}

fn read(kernel: &io::Result<KernelStatistics>, luid: Luid) -> io::Result<Telemetry> {
    match kernel {
        Ok(kernel) => match kernel.open(luid) {
            Ok(adapter) => Ok(telemetry(&adapter)),
            Err(error) => Err(failed(CANNOT_OPEN, &error)),
        },
        Err(error) => Err(failed(CANNOT_OPEN, error)),
    }
}

const CANNOT_OPEN: &str = "cannot open the adapter with the graphics kernel";

#[cfg(test)]
mod tests {
    use super::*;

    /// Windows opens no such adapter; Wine opens every LUID.
    #[test]
    fn an_adapter_that_does_not_exist_has_no_values() {
        let luid = Luid(i64::MAX);
        let mut read = read_telemetry(&[luid]);
        assert_eq!((read.len(), read[0].0), (1, luid));
        match read.remove(0).1 {
            Ok(telemetry) => assert_eq!(telemetry, Telemetry::default()),
            Err(error) => {
                let text = error.to_string();
                assert!(text.starts_with("cannot open the adapter with the graphics"), "{text}");
            }
        }
    }
}
