//! Compares the adapters of `DXCore` with those of the graphics kernel.

use std::io;

use host::{AdapterWarning, Luid};
use windows_report::assembly;

use crate::live::{candidate, candidates};
use crate::sys::kmt_adapters::KernelAdapterList;
use crate::sys::setup::SetupApi;

/// The warnings about GPUs and accelerators that only the graphics kernel lists. `DXCore` lists the
/// adapters `listed`. Opens every other adapter, also those that only display, which may hang.
///
/// # Errors
/// The kernel or the devices cannot be listed. Windows has the list of the kernel with adapters that
/// only compute since version 2004 and Server 2022.
pub fn adapters_only_in_kernel(listed: &[Luid]) -> io::Result<Vec<AdapterWarning>> {
    let others = KernelAdapterList::load_with_compute_only()?.read_except(listed)?;
    if others.is_empty() {
        return Ok(Vec::new());
    }
    let devices = candidates(&SetupApi::load()?, candidate)?;
    Ok(assembly::not_listed(others, devices))
}
