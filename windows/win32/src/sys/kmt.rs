//! The driver store folder from the graphics kernel (D3DKMT, in gdi32.dll).
#![allow(unsafe_code, reason = "calls D3DKMT functions of gdi32.dll")]

use std::io;
use std::mem::offset_of;

use devices::Luid;
use windows::Wdk::Graphics::Direct3D::{
    D3DDDI_QUERYREGISTRY_DRIVERSTOREPATH, D3DDDI_QUERYREGISTRY_INFO,
    D3DDDI_QUERYREGISTRY_STATUS_BUFFER_OVERFLOW, D3DDDI_QUERYREGISTRY_STATUS_SUCCESS,
    D3DKMT_CLOSEADAPTER, D3DKMT_OPENADAPTERFROMLUID, D3DKMT_QUERYADAPTERINFO,
    KMTQAITYPE_QUERYREGISTRY,
};
use windows::Win32::Foundation::{LUID, NTSTATUS};

use super::library::{Library, status_error};
use crate::text;

type OpenAdapterFromLuid = unsafe extern "system" fn(*mut D3DKMT_OPENADAPTERFROMLUID) -> NTSTATUS;
type QueryAdapterInfo = unsafe extern "system" fn(*mut D3DKMT_QUERYADAPTERINFO) -> NTSTATUS;
type CloseAdapter = unsafe extern "system" fn(*const D3DKMT_CLOSEADAPTER) -> NTSTATUS;

/// Room for a folder of the driver store in the first attempt, in bytes.
const FIRST_ROOM: usize = 1024;

/// How often the query is repeated with the room it asks for.
const GROWTH_TRIES: u32 = 4;

/// The three functions that lead from a LUID to its driver's folder.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GraphicsKernel {
    open: OpenAdapterFromLuid,
    query: QueryAdapterInfo,
    close: CloseAdapter,
}

impl GraphicsKernel {
    /// Loads the functions.
    pub(crate) fn load() -> io::Result<Self> {
        let gdi = Library::system("gdi32.dll")?;
        // SAFETY: the type is the one d3dkmthk.h declares.
        let open = unsafe { gdi.function(c"D3DKMTOpenAdapterFromLuid") }?;
        // SAFETY: as above.
        let query = unsafe { gdi.function(c"D3DKMTQueryAdapterInfo") }?;
        // SAFETY: as above.
        let close = unsafe { gdi.function(c"D3DKMTCloseAdapter") }?;
        Ok(Self { open, query, close })
    }

    /// The driver store folder of an adapter, as the kernel spells it.
    pub(crate) fn driver_store(&self, luid: Luid) -> io::Result<String> {
        let adapter = self.open(luid)?;
        let mut room = FIRST_ROOM;
        for _ in 0..GROWTH_TRIES {
            match adapter.driver_store(room)? {
                Answer::Path(path) => return Ok(path),
                Answer::Needs(bytes) => room = bytes.max(room * 2),
            }
        }
        Err(io::Error::other(format!("the folder's name does not fit in {room} bytes")))
    }

    fn open(&self, luid: Luid) -> io::Result<AdapterHandle<'_>> {
        let [low, high] = halves(luid);
        let mut request = D3DKMT_OPENADAPTERFROMLUID {
            AdapterLuid: LUID { LowPart: low, HighPart: high.cast_signed() },
            hAdapter: 0,
        };
        // SAFETY: the request is initialised and ours.
        checked(unsafe { (self.open)(&raw mut request) })?;
        Ok(AdapterHandle { kernel: self, handle: request.hAdapter })
    }
}

/// What the kernel answered to one attempt.
enum Answer {
    Path(String),
    Needs(usize),
}

/// An adapter that the kernel holds open for us.
struct AdapterHandle<'a> {
    kernel: &'a GraphicsKernel,
    handle: u32,
}

impl Drop for AdapterHandle<'_> {
    fn drop(&mut self) {
        let request = D3DKMT_CLOSEADAPTER { hAdapter: self.handle };
        // SAFETY: the handle is open and ours. Closing one cannot usefully fail.
        let _ = unsafe { (self.kernel.close)(&raw const request) };
    }
}

impl AdapterHandle<'_> {
    fn driver_store(&self, room: usize) -> io::Result<Answer> {
        const OUTPUT: usize = offset_of!(D3DDDI_QUERYREGISTRY_INFO, Anonymous);
        let size = size_of::<D3DDDI_QUERYREGISTRY_INFO>() + room;
        // Eight-byte units, because the structure holds a 64-bit number.
        let mut buffer = vec![0_u64; size.div_ceil(8)];
        let info = buffer.as_mut_ptr().cast::<D3DDDI_QUERYREGISTRY_INFO>();
        // SAFETY: the buffer is large enough and aligned for the structure, and zeroes
        // are one.
        unsafe { (*info).QueryType = D3DDDI_QUERYREGISTRY_DRIVERSTOREPATH };
        let mut request = D3DKMT_QUERYADAPTERINFO {
            hAdapter: self.handle,
            Type: KMTQAITYPE_QUERYREGISTRY,
            pPrivateDriverData: info.cast(),
            PrivateDriverDataSize: u32::try_from(size).map_err(io::Error::other)?,
        };
        // SAFETY: the request points to `size` bytes that outlive the call.
        checked(unsafe { (self.kernel.query)(&raw mut request) })?;
        // SAFETY: the structure is still whole: the kernel wrote plain numbers to it.
        let status = unsafe { (*info).Status };
        match status {
            D3DDDI_QUERYREGISTRY_STATUS_SUCCESS => {
                let bytes: Vec<u8> = buffer.iter().flat_map(|unit| unit.to_le_bytes()).collect();
                Ok(Answer::Path(text::single_for_display(&bytes[OUTPUT..])))
            }
            D3DDDI_QUERYREGISTRY_STATUS_BUFFER_OVERFLOW => {
                // SAFETY: as above.
                Ok(Answer::Needs(unsafe { (*info).OutputValueSize } as usize))
            }
            other => Err(io::Error::other(format!("query status {}", other.0))),
        }
    }
}

fn halves(luid: Luid) -> [u32; 2] {
    let bits = luid.0.cast_unsigned();
    let low = u32::try_from(bits & 0xFFFF_FFFF).expect("32 bits are left");
    let high = u32::try_from(bits >> 32).expect("32 bits are left");
    [low, high]
}

fn checked(status: NTSTATUS) -> io::Result<()> {
    if status.0 < 0 { Err(status_error(status.0)) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use windows::Wdk::Graphics::Direct3D::D3DDDI_QUERYREGISTRY_STATUS_FAIL;

    use super::*;

    const HANDLE: u32 = 0x4000_0040;
    const LUID: Luid = Luid(-2 << 32 | 5);
    const NOT_IMPLEMENTED: NTSTATUS = NTSTATUS(0xC000_0002_u32.cast_signed());

    thread_local! {
        /// The folder that the kernel of this test knows.
        static FOLDER: Cell<&'static str> = const { Cell::new("") };
        /// Adapters opened less those closed.
        static OPEN: Cell<i32> = const { Cell::new(0) };
        static QUERIES: Cell<u32> = const { Cell::new(0) };
    }

    unsafe extern "system" fn open(request: *mut D3DKMT_OPENADAPTERFROMLUID) -> NTSTATUS {
        // SAFETY: the caller passes a request.
        let request = unsafe { &mut *request };
        assert_eq!((request.AdapterLuid.LowPart, request.AdapterLuid.HighPart), (5, -2));
        request.hAdapter = HANDLE;
        OPEN.set(OPEN.get() + 1);
        NTSTATUS(0)
    }

    unsafe extern "system" fn open_nothing(_: *mut D3DKMT_OPENADAPTERFROMLUID) -> NTSTATUS {
        NOT_IMPLEMENTED
    }

    unsafe extern "system" fn close(request: *const D3DKMT_CLOSEADAPTER) -> NTSTATUS {
        // SAFETY: the caller passes a request.
        assert_eq!(unsafe { (*request).hAdapter }, HANDLE);
        OPEN.set(OPEN.get() - 1);
        NTSTATUS(0)
    }

    /// Answers with `FOLDER` where there is room for it.
    unsafe extern "system" fn query(request: *mut D3DKMT_QUERYADAPTERINFO) -> NTSTATUS {
        QUERIES.set(QUERIES.get() + 1);
        // SAFETY: the caller passes a request.
        let request = unsafe { &*request };
        assert_eq!((request.hAdapter, request.Type), (HANDLE, KMTQAITYPE_QUERYREGISTRY));
        let info = request.pPrivateDriverData.cast::<D3DDDI_QUERYREGISTRY_INFO>();
        // SAFETY: the request of this type points to such a structure.
        let info = unsafe { &mut *info };
        assert_eq!(info.QueryType, D3DDDI_QUERYREGISTRY_DRIVERSTOREPATH);
        let text: Vec<u16> = FOLDER.get().encode_utf16().collect();
        let needed = size_of_val(text.as_slice());
        info.OutputValueSize = u32::try_from(needed).unwrap();
        let room = request.PrivateDriverDataSize as usize - size_of_val(info);
        info.Status = D3DDDI_QUERYREGISTRY_STATUS_BUFFER_OVERFLOW;
        if room >= needed {
            info.Status = D3DDDI_QUERYREGISTRY_STATUS_SUCCESS;
            let output = (&raw mut info.Anonymous.OutputString).cast::<u16>();
            // SAFETY: there is room for it.
            unsafe { std::ptr::copy_nonoverlapping(text.as_ptr(), output, text.len()) };
        }
        NTSTATUS(0)
    }

    unsafe extern "system" fn query_nothing(_: *mut D3DKMT_QUERYADAPTERINFO) -> NTSTATUS {
        NOT_IMPLEMENTED
    }

    unsafe extern "system" fn query_failure(request: *mut D3DKMT_QUERYADAPTERINFO) -> NTSTATUS {
        // SAFETY: the caller passes a request.
        let info = unsafe { (*request).pPrivateDriverData.cast::<D3DDDI_QUERYREGISTRY_INFO>() };
        // SAFETY: the request of this type points to such a structure.
        unsafe { (*info).Status = D3DDDI_QUERYREGISTRY_STATUS_FAIL };
        NTSTATUS(0)
    }

    unsafe extern "system" fn query_for_ever(request: *mut D3DKMT_QUERYADAPTERINFO) -> NTSTATUS {
        // SAFETY: the caller passes a request.
        let info = unsafe { (*request).pPrivateDriverData.cast::<D3DDDI_QUERYREGISTRY_INFO>() };
        // SAFETY: the request of this type points to such a structure.
        unsafe { (*info).Status = D3DDDI_QUERYREGISTRY_STATUS_BUFFER_OVERFLOW };
        NTSTATUS(0)
    }

    fn folder(kernel: &GraphicsKernel) -> io::Result<String> {
        let folder = kernel.driver_store(LUID);
        assert_eq!(OPEN.get(), 0, "an adapter was left open");
        folder
    }

    #[test]
    fn a_short_folder_takes_one_query_and_a_long_one_another() {
        let kernel = GraphicsKernel { open, query, close };
        FOLDER.set(r"\SystemRoot\System32\DriverStore\FileRepository\nv.inf_amd64_1");
        assert_eq!(folder(&kernel).unwrap(), FOLDER.get());
        assert_eq!(QUERIES.get(), 1);
        FOLDER.set(String::leak(r"C:\ä".repeat(2000)));
        assert_eq!(folder(&kernel).unwrap(), FOLDER.get());
        assert_eq!(QUERIES.get(), 3);
    }

    #[test]
    fn every_failure_closes_what_was_opened() {
        let working = GraphicsKernel { open, query, close };
        let failing = [
            (GraphicsKernel { query: query_nothing, ..working }, "status 0xC0000002"),
            (GraphicsKernel { query: query_failure, ..working }, "query status 2"),
            (GraphicsKernel { open: open_nothing, ..working }, "status 0xC0000002"),
            (
                GraphicsKernel { query: query_for_ever, ..working },
                "the folder's name does not fit in 16384 bytes",
            ),
        ];
        for (kernel, reason) in failing {
            assert_eq!(folder(&kernel).unwrap_err().to_string(), reason);
        }
    }

    #[test]
    fn this_host_has_no_adapter_that_nobody_made() {
        let kernel = GraphicsKernel::load().unwrap();
        assert!(kernel.driver_store(Luid(i64::MAX)).is_err());
    }
}
