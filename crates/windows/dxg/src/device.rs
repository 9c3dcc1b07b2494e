//! The device file and its ioctls.
#![allow(unsafe_code, reason = "calls ioctl with structures that contain pointers")]

use std::ffi::c_void;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;

use devices::Luid;

/// The most adapters that the driver lists (`D3DKMT_ADAPTERS_MAX`).
const MAX_ADAPTERS: usize = 64;

/// Includes adapters that only compute in the list.
const COMPUTE_ONLY: u64 = 1;

/// Calls an ioctl with its number and structure. Tests replace it.
pub(crate) type Call = Box<dyn Fn(u32, *mut c_void) -> io::Result<()> + Send>;

/// A structure of the driver and the number of its ioctl.
///
/// # Safety
/// It has the layout that the driver expects for `NUMBER`.
unsafe trait Request {
    const FUNCTION: u32;
}

/// The number of an ioctl that reads and writes a `T`: `_IOWR('G', function, T)`.
const fn number<T: Request>() -> u32 {
    #[expect(clippy::cast_possible_truncation, reason = "the structures have at most 24 bytes")]
    let size = size_of::<T>() as u32;
    3 << 30 | size << 16 | 0x47 << 8 | T::FUNCTION
}

/// `D3DKMT_ENUMADAPTERS2`.
#[repr(C)]
struct EnumAdapters2 {
    count: u32,
    reserved: u32,
    adapters: u64,
}

/// `D3DKMT_ENUMADAPTERS3`.
#[repr(C)]
struct EnumAdapters3 {
    filter: u64,
    count: u32,
    reserved: u32,
    adapters: u64,
}

/// `D3DKMT_ADAPTERINFO`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct AdapterInfo {
    handle: u32,
    luid_low: u32,
    luid_high: i32,
    sources: u32,
    move_regions: u32,
}

/// `D3DKMT_QUERYADAPTERINFO`.
#[repr(C)]
struct QueryAdapterInfo {
    handle: u32,
    kind: u32,
    data: u64,
    size: u32,
    reserved: u32,
}

/// `D3DKMT_CLOSEADAPTER`.
#[repr(C)]
struct CloseAdapter {
    handle: u32,
}

// SAFETY: the layouts are the same as in d3dkmthk.h, where pointers have 64 bits.
unsafe impl Request for EnumAdapters2 {
    const FUNCTION: u32 = 0x14;
}
// SAFETY: as above.
unsafe impl Request for EnumAdapters3 {
    const FUNCTION: u32 = 0x3E;
}
// SAFETY: as above.
unsafe impl Request for QueryAdapterInfo {
    const FUNCTION: u32 = 0x09;
}
// SAFETY: as above.
unsafe impl Request for CloseAdapter {
    const FUNCTION: u32 = 0x15;
}

/// The open device file.
pub(crate) struct DxgDevice {
    call: Call,
}

impl DxgDevice {
    /// Opens the device file. The first open of a process makes the host create a process, which
    /// ends when the last file is closed.
    #[allow(
        clippy::cast_lossless,
        clippy::cast_possible_wrap,
        reason = "the type of the number depends on the C library"
    )]
    pub(crate) fn open(path: &Path) -> io::Result<DxgDevice> {
        let file = File::open(path)?;
        Ok(DxgDevice::with(Box::new(move |number, request| {
            // SAFETY: the caller passes the structure for the number, and the file is open.
            let result = unsafe { libc::ioctl(file.as_raw_fd(), number as libc::Ioctl, request) };
            // A positive result is a success of Windows.
            if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
        })))
    }

    pub(crate) fn with(call: Call) -> DxgDevice {
        DxgDevice { call }
    }

    fn request<T: Request>(&self, request: &mut T) -> io::Result<()> {
        (self.call)(number::<T>(), (&raw mut *request).cast())
    }

    /// Every adapter in the order of the host, opened. Older drivers list no adapters that only
    /// compute.
    pub(crate) fn adapters(&self) -> io::Result<Vec<OpenAdapter<'_>>> {
        let mut list = [AdapterInfo::default(); MAX_ADAPTERS];
        // The list always has the full length, because the driver checks it only after it has
        // written.
        let count = u32::try_from(MAX_ADAPTERS).expect("a small number");
        let adapters = list.as_mut_ptr().expose_provenance() as u64;
        let mut newer = EnumAdapters3 { filter: COMPUTE_ONLY, count, reserved: 0, adapters };
        let mut older = EnumAdapters2 { count, reserved: 0, adapters };
        let listed = match self.request(&mut newer) {
            Ok(()) => newer.count,
            Err(error) if error.raw_os_error() == Some(libc::ENOTTY) => {
                self.request(&mut older)?;
                older.count
            }
            Err(error) => return Err(error),
        };
        let listed = list.iter().take(listed as usize);
        Ok(listed.map(|info| OpenAdapter { device: self, info: *info }).collect())
    }
}

/// An open adapter, which `Drop` closes.
pub(crate) struct OpenAdapter<'a> {
    device: &'a DxgDevice,
    info: AdapterInfo,
}

impl Drop for OpenAdapter<'_> {
    fn drop(&mut self) {
        // There is no useful reaction to an error.
        let _ = self.device.request(&mut CloseAdapter { handle: self.info.handle });
    }
}

impl OpenAdapter<'_> {
    /// The LUID under which this virtual machine sees the adapter. On the Windows host, it has
    /// another.
    pub(crate) fn luid(&self) -> Luid {
        Luid(i64::from(self.info.luid_high) << 32 | i64::from(self.info.luid_low))
    }

    /// Queries `kind` (`KMTQUERYADAPTERINFOTYPE`) into `data`, which must be as long as the
    /// structure of the query.
    pub(crate) fn query(&self, kind: u32, data: &mut [u8]) -> io::Result<()> {
        let size = u32::try_from(data.len()).map_err(io::Error::other)?;
        let data = data.as_mut_ptr().expose_provenance() as u64;
        let handle = self.info.handle;
        self.device.request(&mut QueryAdapterInfo { handle, kind, data, size, reserved: 0 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_are_those_of_the_driver() {
        let numbers = [
            number::<EnumAdapters2>(),
            number::<EnumAdapters3>(),
            number::<QueryAdapterInfo>(),
            number::<CloseAdapter>(),
        ];
        assert_eq!(numbers, [0xC010_4714, 0xC018_473E, 0xC018_4709, 0xC004_4715]);
        assert_eq!(size_of::<AdapterInfo>(), 20);
    }

    /// The kernel's own refusal, since `/dev/null` has no ioctls.
    #[test]
    fn a_file_of_another_driver_is_refused() {
        let device = DxgDevice::open(Path::new("/dev/null")).unwrap();
        let error = device.adapters().err().unwrap();
        assert_eq!(error.raw_os_error(), Some(libc::ENOTTY));
    }
}
