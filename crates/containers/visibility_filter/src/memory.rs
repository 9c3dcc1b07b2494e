//! The memory of a process: this one, or one that this one started.

use core::ffi::c_void;
use core::ptr::{without_provenance, without_provenance_mut};

use crate::architecture::Architecture;
use crate::nt::{self, Handle, MEMORY_BASIC_INFORMATION, Status};

/// Windows allocates addresses in steps of 64 KiB.
const GRANULARITY: usize = 0x1_0000;

/// How far a 32-bit distance reaches.
pub(crate) const REACH: usize = 0x7FFF_0000;

/// A process whose memory may be read and written.
#[derive(Clone, Copy)]
pub(crate) struct Memory(pub(crate) Handle);

impl Memory {
    /// Fills `buffer` from `address`.
    pub(crate) fn read(self, address: usize, buffer: &mut [u8]) -> Result<(), Status> {
        let mut read = 0;
        let pointer = buffer.as_mut_ptr().cast::<c_void>();
        let size = buffer.len();
        // SAFETY: the kernel writes at most `size` bytes to `buffer`, which has as many; it
        // checks the address in the process itself.
        let status =
            unsafe { nt::NtReadVirtualMemory(self.0, address, pointer, size, &raw mut read) };
        if status == nt::STATUS_SUCCESS && read == size { Ok(()) } else { Err(status) }
    }

    /// A pointer at `address` in a process of `architecture`.
    pub(crate) fn pointer(
        self,
        address: usize,
        architecture: Architecture,
    ) -> Result<usize, Status> {
        match architecture {
            Architecture::X64 => {
                let mut bytes = [0; 8];
                self.read(address, &mut bytes)?;
                // A 32-bit process has no room for it.
                usize::try_from(u64::from_le_bytes(bytes)).map_err(|_| nt::STATUS_INVALID_PARAMETER)
            }
            Architecture::X86 => {
                let mut bytes = [0; 4];
                self.read(address, &mut bytes)?;
                Ok(u32::from_le_bytes(bytes) as usize)
            }
        }
    }

    /// Writes `bytes` at `address`, whose pages must be writable.
    pub(crate) fn write(self, address: usize, bytes: &[u8]) -> Result<(), Status> {
        let mut written = 0;
        let pointer = bytes.as_ptr().cast::<c_void>();
        let size = bytes.len();
        // SAFETY: the kernel reads `size` bytes of `bytes`. The callers write only memory
        // that they allocated, headers of a program that has not started, and the code of
        // functions that they hook.
        let status =
            unsafe { nt::NtWriteVirtualMemory(self.0, address, pointer, size, &raw mut written) };
        if status == nt::STATUS_SUCCESS && written == size { Ok(()) } else { Err(status) }
    }

    /// Writes `bytes` at `address` while its pages have the access rights `access`.
    pub(crate) fn overwrite(self, address: usize, bytes: &[u8], access: u32) -> Result<(), Status> {
        let old = self.protect(address, bytes.len(), access)?;
        let written = self.write(address, bytes);
        // If the call fails, the page stays writable, which harms nothing.
        let _ = self.protect(address, bytes.len(), old);
        written
    }

    /// Sets the access rights of the pages with `size` bytes at `address`, and returns the
    /// earlier ones.
    pub(crate) fn protect(self, address: usize, size: usize, access: u32) -> Result<u32, Status> {
        let mut base = address;
        let mut size = size;
        let mut old = 0;
        // SAFETY: the pointers refer to local variables. The rights that callers ask for
        // include those that running code has needed so far.
        let status = unsafe {
            nt::NtProtectVirtualMemory(self.0, &raw mut base, &raw mut size, access, &raw mut old)
        };
        if status == nt::STATUS_SUCCESS { Ok(old) } else { Err(status) }
    }

    /// Allocates writable memory between the addresses `from` and `to`.
    pub(crate) fn allocate_between(
        self,
        from: usize,
        to: usize,
        size: usize,
    ) -> Result<usize, Status> {
        let mut next = from;
        while next < to {
            let region = self.region(next)?;
            let end = region.BaseAddress.addr().saturating_add(region.RegionSize);
            let start = next.next_multiple_of(GRANULARITY);
            let fits = start.checked_add(size).is_some_and(|last| last <= end && last <= to);
            if region.State == nt::MEM_FREE
                && fits
                && let Ok(address) = self.allocate(start, size)
            {
                return Ok(address);
            }
            next = end.max(next.saturating_add(GRANULARITY));
        }
        Err(nt::STATUS_NO_MEMORY)
    }

    /// Calls `visit` with the start of each private, writable allocation between two addresses.
    pub(crate) fn for_each_allocation(self, from: usize, to: usize, mut visit: impl FnMut(usize)) {
        let mut next = from;
        while next < to
            && let Ok(region) = self.region(next)
        {
            let start = region.BaseAddress.addr();
            if (region.State, region.Type, region.Protect)
                == (nt::MEM_COMMIT, nt::MEM_PRIVATE, nt::PAGE_READWRITE)
                && start == region.AllocationBase.addr()
            {
                visit(start);
            }
            next = start.saturating_add(region.RegionSize);
        }
    }

    /// Frees memory of [`Memory::allocate_between`].
    pub(crate) fn free(self, address: usize) {
        let mut base = without_provenance_mut(address);
        let mut size = 0;
        // SAFETY: the callers allocated the memory and nothing refers to it. A failure
        // leaves it allocated.
        let _ = unsafe {
            nt::NtFreeVirtualMemory(self.0, &raw mut base, &raw mut size, nt::MEM_RELEASE)
        };
    }

    /// Lets the process run.
    #[cfg(not(feature = "dll"))]
    pub(crate) fn resume(self) -> Result<(), Status> {
        // SAFETY: a handle that does not refer to a process is an error.
        let status = unsafe { nt::NtResumeProcess(self.0) };
        if status == nt::STATUS_SUCCESS { Ok(()) } else { Err(status) }
    }

    /// Allocates writable memory at `address`, or anywhere if it is 0.
    pub(crate) fn allocate(self, address: usize, size: usize) -> Result<usize, Status> {
        let mut base = without_provenance_mut(address);
        let mut size = size;
        let kind = nt::MEM_COMMIT | nt::MEM_RESERVE;
        let access = nt::PAGE_READWRITE;
        // SAFETY: the pointers refer to local variables; the kernel refuses an address
        // that is in use.
        let status = unsafe {
            nt::NtAllocateVirtualMemory(self.0, &raw mut base, 0, &raw mut size, kind, access)
        };
        if status == nt::STATUS_SUCCESS { Ok(base.expose_provenance()) } else { Err(status) }
    }

    fn region(self, address: usize) -> Result<MEMORY_BASIC_INFORMATION, Status> {
        let mut region = MEMORY_BASIC_INFORMATION::default();
        let address = without_provenance(address);
        let pointer = (&raw mut region).cast::<c_void>();
        let size = size_of_val(&region);
        let mut returned = 0;
        // SAFETY: class 0 (MemoryBasicInformation) fills this structure, whose size is given.
        let status = unsafe {
            nt::NtQueryVirtualMemory(self.0, address, 0, pointer, size, &raw mut returned)
        };
        if status == nt::STATUS_SUCCESS && region.RegionSize > 0 { Ok(region) } else { Err(status) }
    }
}
