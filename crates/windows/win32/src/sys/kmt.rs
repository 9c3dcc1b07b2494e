//! Opens adapters of the graphics kernel (D3DKMT, in gdi32.dll) and queries their driver store
//! folder.
#![allow(unsafe_code, reason = "calls D3DKMT functions of gdi32.dll")]

use std::ffi::c_void;
use std::io;
use std::mem::offset_of;
use std::ptr;

use host::Luid;
use windows::Wdk::Graphics::Direct3D::{
    D3DDDI_QUERYREGISTRY_DRIVERSTOREPATH, D3DDDI_QUERYREGISTRY_INFO,
    D3DDDI_QUERYREGISTRY_STATUS_BUFFER_OVERFLOW, D3DDDI_QUERYREGISTRY_STATUS_SUCCESS,
    D3DKMT_CLOSEADAPTER, D3DKMT_OPENADAPTERFROMLUID, D3DKMT_QUERYADAPTERINFO,
    KMTQAITYPE_QUERYREGISTRY, KMTQUERYADAPTERINFOTYPE,
};
use windows::Win32::Foundation::{
    LUID, NTSTATUS, STATUS_INVALID_PARAMETER, STATUS_NOT_IMPLEMENTED, STATUS_NOT_SUPPORTED,
};
use windows_report::text;

use super::library::{Library, status_error};

type OpenAdapterFromLuid = unsafe extern "system" fn(*mut D3DKMT_OPENADAPTERFROMLUID) -> NTSTATUS;
type QueryAdapterInfo = unsafe extern "system" fn(*mut D3DKMT_QUERYADAPTERINFO) -> NTSTATUS;
type CloseAdapter = unsafe extern "system" fn(*const D3DKMT_CLOSEADAPTER) -> NTSTATUS;

/// The functions that return the driver store folder for a LUID.
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

    #[cfg(test)]
    pub(super) fn from_functions(
        open: OpenAdapterFromLuid,
        query: QueryAdapterInfo,
        close: CloseAdapter,
    ) -> Self {
        Self { open, query, close }
    }

    /// The driver store folder of an adapter, in the format of the kernel.
    pub(crate) fn driver_store(&self, luid: Luid) -> io::Result<String> {
        self.open(luid)?.driver_store()
    }

    /// An adapter that the kernel has opened for the caller.
    pub(super) fn adopt(&self, handle: u32) -> AdapterHandle<'_> {
        AdapterHandle { kernel: self, handle }
    }

    pub(super) fn open(&self, luid: Luid) -> io::Result<AdapterHandle<'_>> {
        let mut request =
            D3DKMT_OPENADAPTERFROMLUID { AdapterLuid: windows_luid(luid), hAdapter: 0 };
        // SAFETY: the request is initialized and writable.
        check(unsafe { (self.open)(&raw mut request) })?;
        Ok(self.adopt(request.hAdapter))
    }
}

/// An open adapter, which `Drop` closes.
pub(super) struct AdapterHandle<'a> {
    kernel: &'a GraphicsKernel,
    handle: u32,
}

impl Drop for AdapterHandle<'_> {
    fn drop(&mut self) {
        let request = D3DKMT_CLOSEADAPTER { hAdapter: self.handle };
        // SAFETY: the handle is open and owned by this value. There is no useful reaction to
        // an error.
        let _ = unsafe { (self.kernel.close)(&raw const request) };
    }
}

impl AdapterHandle<'_> {
    /// Queries `kind` into `data`.
    ///
    /// # Safety
    /// `T` must be valid with the bytes that the kernel writes for `kind`, and every pointer in
    /// `data` must be valid for that query.
    pub(super) unsafe fn query<T>(
        &self,
        kind: KMTQUERYADAPTERINFOTYPE,
        data: &mut T,
    ) -> io::Result<()> {
        // SAFETY: the pointer refers to `size_of::<T>()` writable bytes that outlive the call;
        // the caller guarantees the rest.
        unsafe { self.query_bytes(kind, ptr::from_mut(data).cast(), size_of::<T>()) }
    }

    /// # Safety
    /// `data` must point to `size` writable bytes, which must be valid for `kind`.
    unsafe fn query_bytes(
        &self,
        kind: KMTQUERYADAPTERINFOTYPE,
        data: *mut c_void,
        size: usize,
    ) -> io::Result<()> {
        let mut request = D3DKMT_QUERYADAPTERINFO {
            hAdapter: self.handle,
            Type: kind,
            pPrivateDriverData: data,
            PrivateDriverDataSize: u32::try_from(size).map_err(io::Error::other)?,
        };
        // SAFETY: the caller guarantees the data of the request.
        check(unsafe { (self.kernel.query)(&raw mut request) })
    }

    /// Asks for the length of the folder first, as other programs do.
    fn driver_store(&self) -> io::Result<String> {
        let (mut info, mut bytes) = self.query_driver_store(0)?;
        if info.Status == D3DDDI_QUERYREGISTRY_STATUS_BUFFER_OVERFLOW {
            (info, bytes) = self.query_driver_store(info.OutputValueSize)?;
        }
        match info.Status {
            D3DDDI_QUERYREGISTRY_STATUS_SUCCESS => Ok(text::single_for_display(&bytes)),
            other => Err(io::Error::other(format!("query status {}", other.0))),
        }
    }

    /// Queries the driver store folder with space for this many bytes.
    fn query_driver_store(&self, length: u32) -> io::Result<(D3DDDI_QUERYREGISTRY_INFO, Vec<u8>)> {
        const OUTPUT: usize = offset_of!(D3DDDI_QUERYREGISTRY_INFO, Anonymous);
        let size = size_of::<D3DDDI_QUERYREGISTRY_INFO>() + length as usize;
        // The units have eight bytes, because the structure contains a 64-bit number.
        let mut buffer = vec![0_u64; size.div_ceil(8)];
        let info = buffer.as_mut_ptr().cast::<D3DDDI_QUERYREGISTRY_INFO>();
        // SAFETY: the buffer is large enough and aligned for the structure, and zero bytes
        // are a valid value.
        unsafe { (*info).QueryType = D3DDDI_QUERYREGISTRY_DRIVERSTOREPATH };
        // SAFETY: the buffer has `size` bytes, and the query takes such a structure.
        unsafe { self.query_bytes(KMTQAITYPE_QUERYREGISTRY, info.cast(), size) }?;
        // SAFETY: the structure is still valid, because it contains only numbers.
        let answer = unsafe { info.read() };
        let bytes: Vec<u8> = buffer.iter().flat_map(|unit| unit.to_le_bytes()).collect();
        Ok((answer, bytes[OUTPUT..].to_vec()))
    }
}

/// The LUID in the type of Windows.
pub(super) fn windows_luid(luid: Luid) -> LUID {
    let bits = luid.0.cast_unsigned();
    let low = u32::try_from(bits & 0xFFFF_FFFF).expect("the value has 32 bits");
    let high = u32::try_from(bits >> 32).expect("the value has 32 bits");
    LUID { LowPart: low, HighPart: high.cast_signed() }
}

/// The error of a request, `Unsupported` if this Windows or the driver does not know it.
pub(super) fn check(status: NTSTATUS) -> io::Result<()> {
    match status {
        NTSTATUS(0..) => Ok(()),
        STATUS_INVALID_PARAMETER | STATUS_NOT_IMPLEMENTED | STATUS_NOT_SUPPORTED => {
            Err(io::Error::new(io::ErrorKind::Unsupported, status_error(status.0)))
        }
        NTSTATUS(status) => Err(status_error(status)),
    }
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
        /// The folder that the test functions return.
        static FOLDER: Cell<&'static str> = const { Cell::new("") };
        /// The number of open adapters.
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

    unsafe extern "system" fn open_unsupported(_: *mut D3DKMT_OPENADAPTERFROMLUID) -> NTSTATUS {
        NOT_IMPLEMENTED
    }

    unsafe extern "system" fn close(request: *const D3DKMT_CLOSEADAPTER) -> NTSTATUS {
        // SAFETY: the caller passes a request.
        assert_eq!(unsafe { (*request).hAdapter }, HANDLE);
        OPEN.set(OPEN.get() - 1);
        NTSTATUS(0)
    }

    /// Returns `FOLDER` if the buffer is large enough.
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
        let available = request.PrivateDriverDataSize as usize - size_of_val(info);
        info.Status = D3DDDI_QUERYREGISTRY_STATUS_BUFFER_OVERFLOW;
        if available >= needed {
            info.Status = D3DDDI_QUERYREGISTRY_STATUS_SUCCESS;
            let output = (&raw mut info.Anonymous.OutputString).cast::<u16>();
            // SAFETY: the buffer is large enough.
            unsafe { std::ptr::copy_nonoverlapping(text.as_ptr(), output, text.len()) };
        }
        NTSTATUS(0)
    }

    unsafe extern "system" fn query_unsupported(_: *mut D3DKMT_QUERYADAPTERINFO) -> NTSTATUS {
        NOT_IMPLEMENTED
    }

    unsafe extern "system" fn query_failure(request: *mut D3DKMT_QUERYADAPTERINFO) -> NTSTATUS {
        // SAFETY: the caller passes a request.
        let info = unsafe { (*request).pPrivateDriverData.cast::<D3DDDI_QUERYREGISTRY_INFO>() };
        // SAFETY: the request of this type points to such a structure.
        unsafe { (*info).Status = D3DDDI_QUERYREGISTRY_STATUS_FAIL };
        NTSTATUS(0)
    }

    unsafe extern "system" fn query_always_too_small(
        request: *mut D3DKMT_QUERYADAPTERINFO,
    ) -> NTSTATUS {
        // SAFETY: the caller passes a request.
        let info = unsafe { (*request).pPrivateDriverData.cast::<D3DDDI_QUERYREGISTRY_INFO>() };
        // SAFETY: the request of this type points to such a structure.
        unsafe { (*info).Status = D3DDDI_QUERYREGISTRY_STATUS_BUFFER_OVERFLOW };
        NTSTATUS(0)
    }

    fn folder(kernel: &GraphicsKernel) -> io::Result<String> {
        let folder = kernel.driver_store(LUID);
        assert_eq!(OPEN.get(), 0, "an adapter was not closed");
        folder
    }

    /// The first query has no space for text, as the public programs that ran on Windows.
    #[test]
    fn the_length_is_queried_before_the_folder() {
        let kernel = GraphicsKernel { open, query, close };
        FOLDER.set(r"\SystemRoot\System32\DriverStore\FileRepository\nv.inf_amd64_1");
        assert_eq!(folder(&kernel).unwrap(), FOLDER.get());
        assert_eq!(QUERIES.get(), 2);
        FOLDER.set(String::leak(r"C:\ä".repeat(40_000)));
        assert_eq!(folder(&kernel).unwrap(), FOLDER.get());
        assert_eq!(QUERIES.get(), 4);
    }

    #[test]
    fn every_failure_closes_the_adapter() {
        let working = GraphicsKernel { open, query, close };
        let failing = [
            (GraphicsKernel { query: query_unsupported, ..working }, "status 0xC0000002"),
            (GraphicsKernel { query: query_failure, ..working }, "query status 2"),
            (GraphicsKernel { open: open_unsupported, ..working }, "status 0xC0000002"),
            (GraphicsKernel { query: query_always_too_small, ..working }, "query status 1"),
        ];
        for (kernel, reason) in failing {
            assert_eq!(folder(&kernel).unwrap_err().to_string(), reason);
        }
    }

    #[test]
    fn an_unknown_luid_is_an_error() {
        let kernel = GraphicsKernel::load().unwrap();
        assert!(kernel.driver_store(Luid(i64::MAX)).is_err());
    }
}
