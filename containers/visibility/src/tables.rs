//! The tables of a loaded library: which addresses it exports, and which it has imported.
//!
//! The library's memory is read through a function that takes an address in the image and
//! a buffer, and fails where the image has no memory.

use crate::Directory;

/// `IMAGE_EXPORT_DIRECTORY`: how many functions it has, and where their list lies.
const EXPORT_DIRECTORY_SIZE: usize = 40;
const FUNCTION_COUNT: usize = 20;
const FUNCTIONS: usize = 28;

/// `IMAGE_IMPORT_DESCRIPTOR`: the library's name, and the list of addresses.
const DESCRIPTOR_SIZE: usize = 20;
const NAME: usize = 12;
const ADDRESSES: usize = 16;

/// The most functions and libraries; more are not searched.
const MOST: u32 = 4096;

/// The longest name of a library, with the zero after it.
const LONGEST_NAME: usize = 32;

/// Where the list of exported addresses has `function`, an address in the image.
pub fn export_slot(
    read: impl Fn(u32, &mut [u8]) -> Option<()>,
    exports: Directory,
    function: u32,
) -> Option<u32> {
    if exports.rva == 0 {
        return None;
    }
    let mut directory = [0; EXPORT_DIRECTORY_SIZE];
    read(exports.rva, &mut directory)?;
    let list = number(&directory, FUNCTIONS)?;
    (0..number(&directory, FUNCTION_COUNT)?.min(MOST)).find_map(|n| {
        let slot = list.checked_add(n * 4)?;
        let mut address = [0; 4];
        read(slot, &mut address)?;
        (u32::from_le_bytes(address) == function).then_some(slot)
    })
}

/// Calls `found` for each function that a 64-bit image imports from `library`, a name in
/// lower case: with the place of its address, and the address.
pub fn import_slots(
    read: impl Fn(u32, &mut [u8]) -> Option<()>,
    imports: Directory,
    library: &[u8],
    mut found: impl FnMut(u32, u64),
) -> Option<()> {
    if imports.rva == 0 {
        return Some(());
    }
    for n in 0..MOST {
        let mut descriptor = [0; DESCRIPTOR_SIZE];
        read(imports.rva.checked_add(n * 20)?, &mut descriptor)?;
        let name = number(&descriptor, NAME)?;
        if name == 0 {
            break;
        }
        if !is_named(&read, name, library) {
            continue;
        }
        let list = number(&descriptor, ADDRESSES)?;
        for n in 0..MOST {
            let slot = list.checked_add(n * 8)?;
            let mut address = [0; 8];
            read(slot, &mut address)?;
            match u64::from_le_bytes(address) {
                0 => break,
                address => found(slot, address),
            }
        }
    }
    Some(())
}

/// Whether the text at `name` is `library`, with any case and a zero after it.
fn is_named(read: &impl Fn(u32, &mut [u8]) -> Option<()>, name: u32, library: &[u8]) -> bool {
    let mut text = [0; LONGEST_NAME];
    let Some(text) = text.get_mut(..=library.len()) else { return false };
    read(name, text).is_some()
        && text.strip_suffix(&[0]).is_some_and(|text| text.eq_ignore_ascii_case(library))
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at + 4)?.try_into().ok().map(u32::from_le_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn put(image: &mut [u8], at: usize, values: &[u32]) {
        for (n, value) in values.iter().enumerate() {
            image[at + n * 4..at + n * 4 + 4].copy_from_slice(&value.to_le_bytes());
        }
    }

    fn reader(image: &[u8]) -> impl Fn(u32, &mut [u8]) -> Option<()> {
        |at, buffer| {
            let at = at as usize;
            buffer.copy_from_slice(image.get(at..at.checked_add(buffer.len())?)?);
            Some(())
        }
    }

    fn directory(rva: u32) -> Directory {
        Directory { rva, size: 0 }
    }

    #[test]
    fn an_exported_function_is_found_by_its_address() {
        let mut image = [0; 200];
        put(&mut image, 10 + FUNCTION_COUNT, &[3, 0, 100]);
        put(&mut image, 100, &[0x111, 0x222, 0x333, 0x444]);
        let slot = |function| export_slot(reader(&image), directory(10), function);
        assert_eq!(slot(0x111), Some(100));
        assert_eq!(slot(0x333), Some(108));
        assert_eq!(slot(0x444), None, "after the list");
        assert_eq!(export_slot(reader(&image), directory(0), 0), None);
    }

    #[test]
    fn imports_of_one_library_are_found() {
        let mut image = [0; 400];
        put(&mut image, 20 + NAME, &[300, 200]);
        put(&mut image, 40 + NAME, &[310, 220]);
        put(&mut image, 200, &[0x111, 0, 0, 0]);
        put(&mut image, 220, &[0x222, 1, 0x333, 0, 0, 0]);
        image[300..307].copy_from_slice(b"dxgi.dl");
        image[310..318].copy_from_slice(b"DXGI.dll");
        let mut found = Vec::new();
        let add = |slot, address| found.push((slot, address));
        import_slots(reader(&image), directory(20), b"dxgi.dll", add).unwrap();
        assert_eq!(found, [(220, 0x1_0000_0222), (228, 0x333)]);
        let none = |_, _| panic!("nothing is imported");
        import_slots(reader(&image), directory(0), b"dxgi.dll", none).unwrap();
        import_slots(reader(&image), directory(20), &[b'a'; 40], none).unwrap();
    }

    proptest! {
        #[test]
        fn other_bytes_do_no_harm(
            image in proptest::collection::vec(prop_oneof![Just(0), any::<u8>()], 0..300),
            at: u8,
        ) {
            export_slot(reader(&image), directory(at.into()), 1);
            import_slots(reader(&image), directory(at.into()), b"a", |_, _| ());
        }
    }
}
