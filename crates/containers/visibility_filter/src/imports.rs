//! The import table of a program, with the filter as its first library.
//!
//! The new table is in a separate block above the program's image: two lists with the
//! only imported ordinal, the payload, the filter's descriptor and the program's own
//! descriptors. The loader of Windows loads the filter from it as any other library.

use crate::architecture::{Architecture, number, short, start};
use crate::not_filtered::NotFiltered;
use crate::payload::{self, Payload};

/// The size of a program's start that is read. It contains the headers.
pub const HEADERS_SIZE: usize = 2048;

/// The most bytes of descriptors; programs have some hundred libraries at most.
pub(crate) const MAX_IMPORTS_SIZE: usize = 20 * 2048;

/// Offsets in `IMAGE_NT_HEADERS64` and `IMAGE_NT_HEADERS32` (winnt.h).
const NUMBER_OF_SECTIONS: usize = 6;
const SIZE_OF_OPTIONAL_HEADER: usize = 20;
const OPTIONAL_HEADER: usize = 24;
const SIZE_OF_IMAGE: usize = OPTIONAL_HEADER + 56;

/// `IMAGE_SECTION_HEADER`, and the offset of its fields: size in memory, offset in the image, size
/// in the file.
const SECTION_SIZE: usize = 40;
const SECTION_FIELDS: usize = 8;

/// Indices of directories: imports, bound imports, import addresses, the .NET header.
const IMPORT: usize = 1;
const BOUND_IMPORT: usize = 11;
const IMPORT_ADDRESSES: usize = 12;
const CLR: usize = 14;

/// `IMAGE_IMPORT_DESCRIPTOR`.
const DESCRIPTOR_SIZE: usize = 20;
/// Its fields: names, time, forwarder chain, library, addresses.
const NAME: usize = 12;

/// The size of a list that imports only ordinal 1, and its first entry (`IMAGE_THUNK_DATA64` or
/// `IMAGE_THUNK_DATA32`).
const THUNKS_SIZE: usize = 16;
const ORDINAL_1: [u8; 8] = [1, 0, 0, 0, 0, 0, 0, 0x80];
const ORDINAL_1_32: [u8; 8] = [1, 0, 0, 0x80, 0, 0, 0, 0];

/// `IMAGE_DATA_DIRECTORY`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Directory {
    /// Its offset in the image.
    pub rva: u32,
    /// Its size in bytes.
    pub size: u32,
}

/// The parts of a program's headers that matter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Image {
    /// The architecture of the program.
    pub architecture: Architecture,
    /// The size of the program in memory.
    pub size: u32,
    pub imports: Directory,
    /// The offset of the list of directories in the image.
    directories: u32,
    /// What the loader makes writable while it fills in the import addresses. Empty if the program
    /// has no imports.
    addresses: Directory,
}

impl Image {
    /// Reads the start of a program.
    pub fn read(headers: &[u8]) -> Result<Image, NotFiltered> {
        let bad = NotFiltered::UnusualProgram;
        let start = start(headers).ok_or(bad)?;
        let architecture =
            Architecture::read(headers, start).ok_or(NotFiltered::OtherArchitecture)?;
        let directories = start + architecture.directories();
        if number(headers, directories - 4).ok_or(bad)? as usize <= CLR {
            return Err(bad);
        }
        if directory(headers, directories, CLR).ok_or(bad)?.rva != 0 {
            return Err(NotFiltered::Managed);
        }
        let imports = directory(headers, directories, IMPORT).ok_or(bad)?;
        let mut addresses = directory(headers, directories, IMPORT_ADDRESSES).ok_or(bad)?;
        if addresses.rva == 0 && imports.rva != 0 {
            addresses = section(headers, start, imports.rva).ok_or(bad)?;
        }
        Ok(Image {
            architecture,
            size: number(headers, start + SIZE_OF_IMAGE).ok_or(bad)?,
            imports,
            directories: u32::try_from(directories).map_err(|_| bad)?,
            addresses,
        })
    }

    /// Replaces the directories from the imports to the import addresses. `current` has the bytes
    /// of these directories in the image.
    pub fn directories(&self, imports: Directory, current: &mut [u8]) -> Option<()> {
        write_directory(current, IMPORT, imports)?;
        write_directory(current, BOUND_IMPORT, Directory::default())?;
        // A program without imports gets only the address in the new block.
        let addresses = if self.addresses.rva == 0 { imports } else { self.addresses };
        write_directory(current, IMPORT_ADDRESSES, addresses)
    }

    /// The offset of the bytes for [`Image::directories`] in the image.
    #[must_use]
    pub fn directories_rva(&self) -> u32 {
        self.directories + 8
    }

    /// The number of bytes for [`Image::directories`].
    pub const DIRECTORIES_SIZE: usize = (IMPORT_ADDRESSES - IMPORT + 1) * 8;
}

/// The directory with this index, in the list that begins at `list`.
fn directory(headers: &[u8], list: usize, index: usize) -> Option<Directory> {
    let at = list + index * 8;
    Some(Directory { rva: number(headers, at)?, size: number(headers, at + 4)? })
}

/// The section with the import directory, in which the loader looks for import addresses if the
/// program does not name their range. It does not find a section for the new import directory.
fn section(headers: &[u8], start: usize, imports: u32) -> Option<Directory> {
    let count = short(headers, start + NUMBER_OF_SECTIONS)? as usize;
    let size = short(headers, start + SIZE_OF_OPTIONAL_HEADER)? as usize;
    let table = start + OPTIONAL_HEADER + size;
    (0..count).find_map(|n| {
        let fields = headers.get(table + n * SECTION_SIZE + SECTION_FIELDS..)?.as_chunks().0;
        let [size, rva, in_file, ..] = *fields else { return None };
        let [size, rva, in_file] = [size, rva, in_file].map(u32::from_le_bytes);
        let contains = imports.wrapping_sub(rva) < in_file;
        contains.then_some(Directory { rva, size: if size == 0 { in_file } else { size } })
    })
}

/// Writes the directory with this index into a list that begins with the import directory.
fn write_directory(list: &mut [u8], index: usize, directory: Directory) -> Option<()> {
    let at = (index - IMPORT) * 8;
    list.get_mut(at..at + 4)?.copy_from_slice(&directory.rva.to_le_bytes());
    list.get_mut(at + 4..at + 8)?.copy_from_slice(&directory.size.to_le_bytes());
    Some(())
}

/// The size of the descriptors at the start of `table`, without the empty one that ends
/// them; `None` if none does.
pub(crate) fn imports_length(table: &[u8]) -> Option<usize> {
    let count = table
        .chunks_exact(DESCRIPTOR_SIZE)
        .position(|descriptor| number(descriptor, NAME) == Some(0))?;
    Some(count * DESCRIPTOR_SIZE)
}

/// The size of the block with the new import table, for a program with `imports` bytes of
/// descriptors.
pub(crate) fn block_size(imports: usize) -> usize {
    BEFORE_IMPORTS + imports + DESCRIPTOR_SIZE
}

/// The part of a block before the program's own descriptors.
pub(crate) const BEFORE_IMPORTS: usize = DESCRIPTOR + DESCRIPTOR_SIZE;

/// The offsets of the payload and of the filter's descriptor in a block.
pub(crate) const PAYLOAD: usize = 2 * THUNKS_SIZE;
const DESCRIPTOR: usize = PAYLOAD + payload::SIZE;

impl Image {
    /// Writes the part of a block before the program's own descriptors, for a block at `rva` in the
    /// image. Returns the new directory.
    pub(crate) fn write_block(
        &self,
        bytes: &mut [u8; BEFORE_IMPORTS],
        rva: u32,
        payload: &Payload,
        imports: usize,
    ) -> Option<Directory> {
        bytes.fill(0);
        let (lists, rest) = bytes.split_at_mut(PAYLOAD);
        let ordinal = match self.architecture {
            Architecture::X64 => ORDINAL_1,
            Architecture::X86 => ORDINAL_1_32,
        };
        for list in lists.chunks_exact_mut(THUNKS_SIZE) {
            list[..8].copy_from_slice(&ordinal);
        }
        let (place, rest) = rest.split_first_chunk_mut::<{ payload::SIZE }>()?;
        *place = payload.bytes();
        let descriptor = rest.first_chunk_mut::<DESCRIPTOR_SIZE>()?;
        let path = PAYLOAD + Payload::path_offset(self.architecture);
        let library = rva.checked_add(u32::try_from(path).ok()?)?;
        let addresses = rva.checked_add(u32::try_from(THUNKS_SIZE).ok()?)?;
        for (at, value) in [(0, rva), (NAME, library), (NAME + 4, addresses)] {
            descriptor[at..at + 4].copy_from_slice(&value.to_le_bytes());
        }
        Some(Directory {
            rva: rva.checked_add(u32::try_from(DESCRIPTOR).ok()?)?,
            size: u32::try_from(DESCRIPTOR_SIZE + imports + DESCRIPTOR_SIZE).ok()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::AllowedLuids;
    use crate::architecture::{MACHINE, MAGIC};

    const START: usize = 0x80;

    const SECTIONS: u32 = 2;
    const IDATA: Directory = Directory { rva: 0x2000, size: 0x1234 };

    /// The place of the section headers.
    fn sections(architecture: Architecture) -> usize {
        START + architecture.directories() + 16 * 8
    }

    /// The headers of a program whose import directory is in its second section, and which does
    /// not name the range of its import addresses.
    fn headers(architecture: Architecture) -> Vec<u8> {
        let (machine, magic) = match architecture {
            Architecture::X64 => (0x8664, 0x20B),
            Architecture::X86 => (0x14C, 0x10B),
        };
        let directories = START + architecture.directories();
        let mut bytes = vec![0; 0x400];
        bytes[..2].copy_from_slice(b"MZ");
        bytes[START..START + 4].copy_from_slice(b"PE\0\0");
        let optional_header = u32::try_from(sections(architecture) - START - OPTIONAL_HEADER);
        let text = sections(architecture);
        let idata = text + SECTION_SIZE;
        for (at, value) in [
            (0x3C, 0x80),
            (START + MACHINE, SECTIONS << 16 | machine),
            (START + SIZE_OF_OPTIONAL_HEADER, optional_header.unwrap()),
            (text + 8, 0xFF0),
            (text + 12, 0x1000),
            (text + 16, 0x1000),
            (idata + 8, IDATA.size),
            (idata + 12, IDATA.rva),
            (idata + 16, 0x1400),
            (START + MAGIC, magic),
            (START + SIZE_OF_IMAGE, 0x5000),
            (directories - 4, 16),
            (directories + 8 * IMPORT, 0x2000),
            (directories + 8 * IMPORT + 4, 60),
            (directories + 8 * BOUND_IMPORT, 0x3000),
        ] {
            put(&mut bytes, at, value);
        }
        bytes
    }

    const BOTH: [Architecture; 2] = [Architecture::X64, Architecture::X86];

    fn put(bytes: &mut [u8], at: usize, value: u32) {
        bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
    }

    #[test]
    fn only_native_programs_are_changed() {
        for architecture in BOTH {
            let image = Image::read(&headers(architecture)).unwrap();
            assert_eq!((image.architecture, image.size), (architecture, 0x5000));
            assert_eq!(image.imports, Directory { rva: 0x2000, size: 60 });
            let changed = |at: usize, value: u32| {
                let mut bytes = headers(architecture);
                put(&mut bytes, at, value);
                Image::read(&bytes)
            };
            let directories = START + architecture.directories();
            assert_eq!(changed(START + MACHINE, 0xAA64), Err(NotFiltered::OtherArchitecture));
            assert_eq!(changed(START + MAGIC, 0x107), Err(NotFiltered::OtherArchitecture));
            assert_eq!(changed(directories - 4, 2), Err(NotFiltered::UnusualProgram));
            assert_eq!(changed(0x3C, 0xFFFF_FFF0), Err(NotFiltered::UnusualProgram));
            assert_eq!(Image::read(&headers(architecture)[1..]), Err(NotFiltered::UnusualProgram));
        }
        let mut mixed = headers(Architecture::X64);
        put(&mut mixed, START + MAGIC, 0x10B);
        assert_eq!(Image::read(&mixed), Err(NotFiltered::OtherArchitecture));
        assert_eq!(Image::read(b"MZ"), Err(NotFiltered::UnusualProgram));
    }

    /// .NET Framework's compiler writes a 32-bit program, also for 64-bit processes.
    #[test]
    fn programs_of_the_net_framework_are_not_changed() {
        for architecture in BOTH {
            let mut bytes = headers(architecture);
            put(&mut bytes, START + architecture.directories() + 8 * CLR, 0x2008);
            assert_eq!(Image::read(&bytes), Err(NotFiltered::Managed));
        }
    }

    #[test]
    fn a_block_lists_the_filter_before_the_programs_own_libraries() {
        let allowed = AllowedLuids::new([7]).unwrap();
        let mut payload = Payload::new(allowed, r"C:\f.dll").unwrap();
        payload.set_32_bit_filter(r"C:\f32.dll").unwrap();
        let expected: [(_, &[u8], u64); 2] = [
            (Architecture::X64, b"C:\\f.dll\0", (1 << 63) | 1),
            (Architecture::X86, b"C:\\f32.dll\0", (1 << 31) | 1),
        ];
        for (architecture, library, ordinal) in expected {
            let image = Image::read(&headers(architecture)).unwrap();
            let imports = 2 * DESCRIPTOR_SIZE;
            let mut block = [0; BEFORE_IMPORTS];
            let directory = image.write_block(&mut block, 0x10_0000, &payload, imports).unwrap();
            assert_eq!(BEFORE_IMPORTS + imports + DESCRIPTOR_SIZE, block_size(imports));
            assert_eq!(directory.size as usize, 4 * DESCRIPTOR_SIZE);
            let descriptor = (directory.rva - 0x10_0000) as usize;
            let pointed =
                |field: usize| number(&block, descriptor + field).unwrap() as usize - 0x10_0000;
            assert!(block[pointed(NAME)..].starts_with(library));
            for list in [pointed(0), pointed(NAME + 4)] {
                assert_eq!(block[list..list + 8], ordinal.to_le_bytes());
                assert_eq!(block[list + 8..list + 16], [0; 8]);
            }
            assert_eq!(descriptor, DESCRIPTOR);
            assert_eq!(Payload::read(block[PAYLOAD..].first_chunk().unwrap()), Some(payload));
            assert_eq!(Payload::read(block[1..].first_chunk().unwrap()), None);
        }
    }

    const NEW: Directory = Directory { rva: 0x10_0000, size: 80 };

    /// The range of import addresses of a program after the change of its directories.
    fn changed(mut bytes: Vec<u8>) -> Result<Directory, NotFiltered> {
        let image = Image::read(&bytes)?;
        let at = image.directories_rva() as usize;
        image.directories(NEW, &mut bytes[at..at + Image::DIRECTORIES_SIZE]).unwrap();
        let directories = at - 8;
        assert_eq!(directory(&bytes, directories, BOUND_IMPORT), Some(Directory::default()));
        let addresses = directory(&bytes, directories, IMPORT_ADDRESSES).unwrap();
        // An inner launcher changes the program again.
        let image = Image::read(&bytes)?;
        assert_eq!((image.imports, image.addresses), (NEW, addresses));
        Ok(addresses)
    }

    #[test]
    fn bound_imports_are_removed_and_the_range_of_the_import_addresses_stays() {
        for architecture in BOTH {
            let mut bytes = headers(architecture);
            let at = START + architecture.directories() + 8 * IMPORT_ADDRESSES;
            put(&mut bytes, at, 0x2800);
            put(&mut bytes, at + 4, 0x88);
            let range = Directory { rva: 0x2800, size: 0x88 };
            assert_eq!(changed(bytes), Ok(range));
        }
    }

    /// Windows makes only this range writable. The loader of Wine does not need it.
    #[test]
    fn a_missing_range_of_import_addresses_is_the_section_of_the_import_directory() {
        let bad = Err(NotFiltered::UnusualProgram);
        for architecture in BOTH {
            let imports = START + architecture.directories() + 8 * IMPORT;
            let idata = sections(architecture) + SECTION_SIZE;
            let range = |changes: &[(usize, u32)]| {
                let mut bytes = headers(architecture);
                for (at, value) in changes {
                    put(&mut bytes, *at, *value);
                }
                changed(bytes)
            };
            assert_eq!(range(&[]), Ok(IDATA));
            assert_eq!(range(&[(imports, 0x33FF)]), Ok(IDATA));
            assert_eq!(range(&[(imports, 0x1FFF)]), Ok(Directory { rva: 0x1000, size: 0xFF0 }));
            // A section without a size in memory has its size in the file.
            assert_eq!(range(&[(idata + 8, 0)]), Ok(Directory { size: 0x1400, ..IDATA }));
            // No section, no section header, or none in the bytes that are read.
            assert_eq!(range(&[(imports, 0x3400)]), bad);
            assert_eq!(range(&[(imports, 0xFFF)]), bad);
            assert_eq!(range(&[(START + SIZE_OF_OPTIONAL_HEADER, 0xFFFF)]), bad);
            let machine = number(&headers(architecture), START + MACHINE).unwrap() & 0xFFFF;
            assert_eq!(range(&[(START + MACHINE, 1 << 16 | machine)]), bad);
            assert_eq!(range(&[(START + MACHINE, machine)]), bad);
            // A program without imports has no addresses, and no section is needed.
            assert_eq!(range(&[(imports, 0), (START + MACHINE, machine)]), Ok(NEW));
        }
    }

    #[test]
    fn descriptors_end_with_an_empty_one() {
        let mut table = vec![1; 3 * DESCRIPTOR_SIZE];
        assert_eq!(imports_length(&table), None);
        table[2 * DESCRIPTOR_SIZE..].fill(0);
        assert_eq!(imports_length(&table), Some(2 * DESCRIPTOR_SIZE));
        assert_eq!(imports_length(&[0; DESCRIPTOR_SIZE]), Some(0));
    }

    proptest! {
        #[test]
        fn damaged_headers_never_panic(
            changes in proptest::collection::vec((0_usize..0x200, any::<u8>()), 0..40),
            is_32_bit: bool,
        ) {
            let mut bytes = headers(BOTH[usize::from(is_32_bit)]);
            for (at, value) in changes {
                bytes[at] = value;
            }
            let _ = Image::read(&bytes);
        }
    }
}
