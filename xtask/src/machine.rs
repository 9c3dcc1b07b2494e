//! The processors that Windows files are built for.

use std::fmt;

/// The processor that a Windows file is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Machine {
    X86,
    X86_64,
}

impl Machine {
    /// `IMAGE_FILE_MACHINE_I386` or `IMAGE_FILE_MACHINE_AMD64` (winnt.h).
    #[cfg(test)]
    pub(crate) fn number(self) -> u16 {
        match self {
            Machine::X86 => 0x014c,
            Machine::X86_64 => 0x8664,
        }
    }

    /// The format of object files, as windres calls it.
    pub(crate) fn object_format(self) -> &'static str {
        match self {
            Machine::X86 => "pe-i386",
            Machine::X86_64 => "pe-x86-64",
        }
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Machine::X86 => "x86",
            Machine::X86_64 => "x86-64",
        })
    }
}
