//! The architecture of a program or library, from its headers.

/// Offsets in `IMAGE_NT_HEADERS64` and `IMAGE_NT_HEADERS32` (winnt.h).
pub(crate) const MACHINE: usize = 4;
pub(crate) const MAGIC: usize = 24;

/// The architecture for which a program is made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Architecture {
    /// 64-bit, x86-64.
    X64,
    /// 32-bit, x86.
    X86,
}

impl Architecture {
    /// The architecture of the file whose headers begin at `start`; `None` for another one.
    pub(crate) fn read(file: &[u8], start: usize) -> Option<Architecture> {
        // The two numbers are `IMAGE_FILE_MACHINE_…` and `IMAGE_NT_OPTIONAL_HDR…_MAGIC` (winnt.h).
        match (short(file, start.checked_add(MACHINE)?)?, short(file, start.checked_add(MAGIC)?)?) {
            (0x8664, 0x20B) => Some(Architecture::X64),
            (0x14C, 0x10B) => Some(Architecture::X86),
            _ => None,
        }
    }

    /// The offset of the list of directories, which follows their number.
    pub(crate) fn directories(self) -> usize {
        match self {
            Architecture::X64 => 24 + 112,
            Architecture::X86 => 24 + 96,
        }
    }
}

/// The offset of the headers of a program or library; `None` for another file.
pub(crate) fn start(file: &[u8]) -> Option<usize> {
    let start = number(file, 0x3C)? as usize;
    let is_image = file.get(..2) == Some(b"MZ") && number(file, start) == Some(0x4550);
    is_image.then_some(start)
}

/// The 16-bit number at an offset, after which the file has at least two more bytes.
pub(crate) fn short(bytes: &[u8], at: usize) -> Option<u32> {
    Some(number(bytes, at)? & 0xFFFF)
}

/// The 32-bit number at an offset.
pub(crate) fn number(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at.checked_add(4)?)?.try_into().ok().map(u32::from_le_bytes)
}
