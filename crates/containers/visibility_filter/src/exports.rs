//! An exported function of a library in another process's memory.

use crate::architecture::Architecture;

/// Offsets in `IMAGE_EXPORT_DIRECTORY` (winnt.h): the number of names, the lists of functions
/// and of names, and the indices of the names' functions.
const NAME_COUNT: u32 = 24;
const FUNCTIONS: u32 = 28;
const NAMES: u32 = 32;
const INDICES: u32 = 36;

/// The longest name that is looked for, with the NUL after it.
const LONGEST: usize = 32;

/// The offset of the function that a 32-bit library exports as `name`; `None` if the library has no
/// such function or refers to another library. `read` fills bytes from an offset in the library.
pub fn export_32(read: impl Fn(u32, &mut [u8]) -> Option<()>, name: &[u8]) -> Option<u32> {
    let library = Library(read);
    let headers = library.number(0, 0x3C)?;
    let directories = u32::try_from(Architecture::X86.directories()).ok()?;
    let directory = headers.checked_add(directories)?;
    let exports = library.number(directory, 0)?;
    let size = library.number(directory, 4)?;
    let functions = library.number(exports, FUNCTIONS)?;
    let names = library.number(exports, NAMES)?;
    let indices = library.number(exports, INDICES)?;
    // The names are sorted.
    let mut first = 0;
    let mut end = library.number(exports, NAME_COUNT)?;
    while first < end {
        let middle = first + (end - first) / 2;
        let mut found = [0; LONGEST];
        (library.0)(library.element(names, middle, 4)?, &mut found)?;
        let found = found.split(|byte| *byte == 0).next().unwrap_or_default();
        match found.cmp(name) {
            core::cmp::Ordering::Less => first = middle + 1,
            core::cmp::Ordering::Greater => end = middle,
            core::cmp::Ordering::Equal => {
                let index = library.element(indices, middle, 2)? & 0xFFFF;
                let function = library.element(functions, index, 4)?;
                let is_text = function.checked_sub(exports).is_some_and(|at| at < size);
                return (!is_text).then_some(function);
            }
        }
    }
    None
}

/// A library, as a function that fills bytes from an offset in it.
struct Library<F>(F);

impl<F: Fn(u32, &mut [u8]) -> Option<()>> Library<F> {
    /// The number at `offset` after `start`.
    fn number(&self, start: u32, offset: u32) -> Option<u32> {
        let mut bytes = [0; 4];
        (self.0)(start.checked_add(offset)?, &mut bytes)?;
        Some(u32::from_le_bytes(bytes))
    }

    /// The element of a list whose elements have `size` bytes.
    fn element(&self, list: u32, index: u32, size: u32) -> Option<u32> {
        self.number(list, index.checked_mul(size)?)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A library that exports three functions and forwards the second one.
    fn library() -> Vec<u8> {
        let mut bytes = vec![0; 0x400];
        for (at, value) in [
            (0x3C, 0x80),
            (0x80 + 24 + 96, 0x200),
            (0x80 + 24 + 100, 0x100),
            (0x200 + NAME_COUNT as usize, 3),
            (0x200 + FUNCTIONS as usize, 0x240),
            (0x200 + NAMES as usize, 0x250),
            (0x200 + INDICES as usize, 0x260),
            (0x240, 0x3001),
            (0x244, 0x3000),
            (0x248, 0x2F0),
            (0x250, 0x270),
            (0x254, 0x280),
            (0x258, 0x290),
            // Each ordinal has two bytes; they are 1, 2 and 0.
            (0x260, 0x0002_0001),
        ] {
            bytes[at..at + 4].copy_from_slice(&u32::to_le_bytes(value));
        }
        for (at, name) in [(0x270, "Copy"), (0x280, "CtrlRoutine"), (0x290, "Delete")] {
            bytes[at..at + name.len()].copy_from_slice(name.as_bytes());
        }
        bytes
    }

    fn export(library: &[u8], name: &str) -> Option<u32> {
        export_32(
            |rva, bytes| {
                let start = rva as usize;
                bytes.copy_from_slice(library.get(start..start.checked_add(bytes.len())?)?);
                Some(())
            },
            name.as_bytes(),
        )
    }

    #[test]
    fn exports_are_found_by_name() {
        let library = library();
        assert_eq!(export(&library, "Copy"), Some(0x3000));
        assert_eq!(export(&library, "CtrlRoutine"), None, "forwarded");
        assert_eq!(export(&library, "Delete"), Some(0x3001));
        for name in ["", "Cop", "Copy1", "Zero"] {
            assert_eq!(export(&library, name), None, "{name}");
        }
        assert_eq!(export(b"MZ", "Copy"), None);
    }

    proptest! {
        #[test]
        fn damaged_libraries_never_panic(
            changes in proptest::collection::vec((0_usize..0x400, any::<u8>()), 0..40),
        ) {
            let mut bytes = library();
            for (at, value) in changes {
                bytes[at] = value;
            }
            let _ = export(&bytes, "CtrlRoutine");
        }
    }
}
