//! Checks that a file is the filter, and who may load it, without loading it.
//!
//! A process can load only libraries for its architecture, and a process does not start if it
//! imports a library that it cannot load.

use crate::architecture::{Architecture, number, short, start};

/// Offsets in `IMAGE_NT_HEADERS` (winnt.h): the number of sections, the size of the optional
/// header, and the optional header.
const SECTIONS: usize = 6;
const OPTIONAL_SIZE: usize = 20;
const OPTIONAL: usize = 24;

/// The size of `IMAGE_SECTION_HEADER`.
const SECTION_SIZE: usize = 40;

/// The name that the filter exports, without the decoration of 32-bit functions.
const EXPORT: &[u8] = b"DllMain";

/// Whether `file` is the filter for programs of this architecture, and complete.
#[must_use]
pub fn is_filter(file: &[u8], architecture: Architecture) -> bool {
    start(file).is_some_and(|start| {
        Architecture::read(file, start) == Some(architecture)
            && is_complete(file, start).unwrap_or_default()
            && file.windows(EXPORT.len()).any(|part| part == EXPORT)
    })
}

/// A file that was cut lacks the end of a section.
fn is_complete(file: &[u8], start: usize) -> Option<bool> {
    let optional_size = short(file, start + OPTIONAL_SIZE)? as usize;
    let count = short(file, start + SECTIONS)? as usize;
    let sections = file.get(start + OPTIONAL + optional_size..)?.get(..count * SECTION_SIZE)?;
    Some(sections.chunks_exact(SECTION_SIZE).all(|section| {
        // The size and the place of its content.
        let [size, begin] = [16, 20].map(|at| number(section, at).unwrap_or(u32::MAX));
        size.checked_add(begin).is_some_and(|end| end as usize <= file.len())
    }))
}

/// Whether a `SECURITY_DESCRIPTOR_RELATIVE` names `ALL APPLICATION PACKAGES` (S-1-15-2-1). If it
/// does not, no process in an `AppContainer` can use the file. The rights of the entry are not
/// compared, because nobody is expected to deny access to this group.
pub(crate) fn admits_app_containers(descriptor: &[u8]) -> bool {
    const ALL: [u8; 16] = [1, 2, 0, 0, 0, 0, 0, 15, 2, 0, 0, 0, 1, 0, 0, 0];
    descriptor.windows(ALL.len()).any(|part| part == ALL)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A library with one section, which has the name `export`.
    fn library(architecture: Architecture, export: &[u8]) -> Vec<u8> {
        const START: usize = 0x80;
        let (machine, magic, optional) = match architecture {
            Architecture::X64 => (0x8664, 0x20B, 240),
            Architecture::X86 => (0x14C, 0x10B, 224),
        };
        let mut bytes = vec![0; 0x400];
        bytes[..2].copy_from_slice(b"MZ");
        bytes[START..START + 4].copy_from_slice(b"PE\0\0");
        let section = START + OPTIONAL + optional as usize;
        for (at, value) in [
            (0x3C, 0x80),
            (START + 4, machine | 1 << 16),
            (START + OPTIONAL_SIZE, optional),
            (START + OPTIONAL, magic),
            (section + 16, 0x200),
            (section + 20, 0x200),
        ] {
            bytes[at..at + 4].copy_from_slice(&u32::to_le_bytes(value));
        }
        bytes[0x250..0x250 + export.len()].copy_from_slice(export);
        bytes
    }

    #[test]
    fn only_the_complete_filter_of_the_architecture_is_accepted() {
        use Architecture::{X64, X86};
        for (architecture, other) in [(X64, X86), (X86, X64)] {
            let filter = library(architecture, b"DllMain\0");
            assert!(is_filter(&filter, architecture));
            assert!(!is_filter(&filter, other));
            assert!(!is_filter(&filter[..0x3FF], architecture), "cut");
            assert!(!is_filter(&library(architecture, b"Start\0"), architecture));
        }
        assert!(!is_filter(b"", X86));
        assert!(!is_filter(b"no library", X86));
    }

    #[test]
    fn only_a_descriptor_that_names_them_admits_app_containers() {
        // As SDDL, the descriptor is `D:P(A;;FRFX;;;WD)(A;;FRFX;;;S-1-15-2-1)`.
        let everyone = [0, 0, 20, 0, 0xA9, 0, 0x12, 0, 1, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0];
        let all = [0, 0, 24, 0, 0xA9, 0, 0x12, 0, 1, 2, 0, 0, 0, 0, 0, 15, 2, 0, 0, 0, 1, 0, 0, 0];
        let start = [1, 0, 4, 0x90, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 20, 0, 0, 0];
        let list = [2, 0, 52, 0, 2, 0, 0, 0];
        let descriptor = [&start[..], &list, &everyone, &all].concat();
        assert!(admits_app_containers(&descriptor));
        assert!(!admits_app_containers(&[&start[..], &list, &everyone, &everyone].concat()));
        assert!(!admits_app_containers(&[0; 1024]));
    }

    proptest! {
        #[test]
        fn damaged_files_never_panic(
            changes in proptest::collection::vec((0_usize..0x400, any::<u8>()), 0..40),
            length in 0_usize..=0x400,
        ) {
            let mut bytes = library(Architecture::X86, b"DllMain@12\0");
            for (at, value) in changes {
                bytes[at] = value;
            }
            let _ = is_filter(&bytes[..length], Architecture::X86);
        }
    }
}
