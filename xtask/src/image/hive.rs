//! The empty registry hive of a Windows base layer.
//!
//! Windows expects hives in the lowest layer of an image. A `HostProcess` container does not
//! use them, so an empty one is enough, but it has to be valid: Windows loads it when
//! somebody derives an image from this one. The format is not documented by Microsoft;
//! <https://github.com/msuhanov/regf> describes it. The result is the same on every call.

use super::security;

/// The size of the base block and of the one hive bin after it.
const BLOCK: usize = 0x1000;

/// Where the checksum of the base block is.
const CHECKSUM: usize = 508;

/// The offset of the root key's cell from the start of the hive bins: right after the
/// header of the bin.
const ROOT_CELL: u32 = 0x20;

/// "No cell".
const NONE: u32 = u32::MAX;

/// `KEY_HIVE_ENTRY`, `KEY_NO_DELETE` and `KEY_COMP_NAME`: the root of a hive, which cannot
/// be deleted, with a name of one byte a character.
const ROOT_FLAGS: u16 = 0x2c;

/// Any name does: Windows shows the name under which the hive is mounted.
const ROOT_NAME: &[u8] = b"R";

/// A hive whose only content is its root key.
pub(super) fn empty() -> Vec<u8> {
    let security_cell = ROOT_CELL + cell_size(&root_key(0));
    let mut bins = bin_header();
    push_cell(&mut bins, &root_key(security_cell));
    push_cell(&mut bins, &security_key(security_cell));
    let free = BLOCK - bins.len();
    // A positive size marks a free cell.
    bins.extend(u32::try_from(free).expect("a bin is 4 KiB").to_le_bytes());
    bins.resize(BLOCK, 0);
    [base_block(), bins].concat()
}

fn base_block() -> Vec<u8> {
    let mut block = Block::default();
    block.bytes(b"regf");
    // Two equal sequence numbers say that the last write was completed.
    block.numbers(&[1, 1]);
    // The time of the last write.
    block.numbers(&[0, 0]);
    // Version 1.3, a primary file, loaded into memory.
    block.numbers(&[1, 3, 0, 1]);
    block.numbers(&[ROOT_CELL, 0x1000]);
    // The clustering factor: one sector.
    block.numbers(&[1]);
    block.0.resize(CHECKSUM, 0);
    let checksum = checksum(&block.0);
    block.numbers(&[checksum]);
    block.0.resize(BLOCK, 0);
    block.0
}

/// The exclusive or of all 32-bit numbers before the checksum. 0 and -1 are reserved; this
/// block has neither.
fn checksum(block: &[u8]) -> u32 {
    let numbers = block[..CHECKSUM].chunks_exact(4);
    numbers.fold(0, |sum, n| sum ^ u32::from_le_bytes([n[0], n[1], n[2], n[3]]))
}

fn bin_header() -> Vec<u8> {
    let mut header = Block::default();
    header.bytes(b"hbin");
    // Its offset from the first bin, its size, two reserved numbers, a time, a spare number.
    header.numbers(&[0, 0x1000, 0, 0, 0, 0, 0]);
    header.0
}

fn root_key(security_cell: u32) -> Vec<u8> {
    let mut key = Block::default();
    key.bytes(b"nk");
    key.bytes(&ROOT_FLAGS.to_le_bytes());
    // The time of the last write, access bits, and no parent.
    key.numbers(&[0, 0, 0, NONE]);
    // No subkeys, no volatile subkeys, and no lists of them; no values and no list of them.
    key.numbers(&[0, 0, NONE, NONE, 0, NONE]);
    // Its security, and no class.
    key.numbers(&[security_cell, NONE]);
    // The lengths of the longest names and values in it, and a number that is not used.
    key.numbers(&[0, 0, 0, 0, 0]);
    key.bytes(&[1, 0, 0, 0]);
    key.bytes(ROOT_NAME);
    key.0
}

/// The security cell of the root key. It is the only one, so it links to itself.
fn security_key(own_cell: u32) -> Vec<u8> {
    let descriptor = security::registry_key();
    let length = u32::try_from(descriptor.len()).expect("the descriptor is short");
    let mut key = Block::default();
    key.bytes(b"sk\0\0");
    // The links, the number of keys that use it, the size of the descriptor.
    key.numbers(&[own_cell, own_cell, 1, length]);
    key.bytes(&descriptor);
    key.0
}

/// The size of the cell that holds `content`: with its size field, and a multiple of 8.
fn cell_size(content: &[u8]) -> u32 {
    let size = (content.len() + 4).next_multiple_of(8);
    u32::try_from(size).expect("a cell lies in a bin of 4 KiB")
}

fn push_cell(bins: &mut Vec<u8>, content: &[u8]) {
    let size = cell_size(content);
    let end = bins.len() + size as usize;
    // A negative size marks a used cell.
    bins.extend(size.wrapping_neg().to_le_bytes());
    bins.extend(content);
    bins.resize(end, 0);
}

#[derive(Default)]
struct Block(Vec<u8>);

impl Block {
    fn bytes(&mut self, bytes: &[u8]) {
        self.0.extend(bytes);
    }

    fn numbers(&mut self, numbers: &[u32]) {
        self.0.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
    }
}

/// Checks what hive readers do not: hivexml, reglookup, regipy and others accept hives with
/// different sequence numbers, with too large a size of the bins and with a root key that
/// is not marked as one, while Windows does not.
pub(crate) fn check(hive: &[u8]) -> Result<(), &'static str> {
    let number = |at: usize| -> Option<u32> {
        Some(u32::from_le_bytes(hive.get(at..at + 4)?.try_into().ok()?))
    };
    let root = number(36).ok_or("it has no root cell")?;
    // After the base block, the cell's size and the signature.
    let flags = number(BLOCK + root as usize + 4).ok_or("its root cell lies outside")? >> 16;
    if number(4) != number(8) {
        return Err("its sequence numbers differ");
    }
    if number(40).map(|size| size as usize + BLOCK) != Some(hive.len()) {
        return Err("the size of its bins is wrong");
    }
    if flags & 0x4 == 0 {
        return Err("its root key is not marked as the root");
    }
    if number(CHECKSUM) != Some(checksum(hive)) {
        return Err("its checksum is wrong");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hive_is_valid_and_always_the_same() {
        let hive = empty();
        assert_eq!(hive.len(), 0x2000);
        assert_eq!(check(&hive), Ok(()));
        assert_eq!(hive, empty());
    }

    #[test]
    fn its_header_is_that_of_a_completely_written_primary_file() {
        let hive = empty();
        assert_eq!(&hive[..4], b"regf");
        let number = |at: usize| u32::from_le_bytes(hive[at..at + 4].try_into().unwrap());
        assert_eq!((number(4), number(8)), (1, 1), "sequence numbers");
        assert_eq!((number(20), number(24)), (1, 3), "version");
        assert_eq!((number(28), number(32)), (0, 1), "type and format");
        assert_eq!((number(36), number(40), number(44)), (0x20, 0x1000, 1));
    }

    #[test]
    fn its_cells_fill_the_bin() {
        let hive = empty();
        let mut at = BLOCK + 0x20;
        let mut cells = Vec::new();
        while at < hive.len() {
            let size = i32::from_le_bytes(hive[at..at + 4].try_into().unwrap());
            assert_eq!(size % 8, 0);
            cells.push((size < 0, hive[at + 4..at + 6].to_vec()));
            at += size.unsigned_abs() as usize;
        }
        assert_eq!(at, hive.len());
        let expected = [(true, b"nk".to_vec()), (true, b"sk".to_vec()), (false, vec![0, 0])];
        assert_eq!(cells, expected);
    }

    #[test]
    fn faults_that_readers_accept_are_found() {
        let damaged = |at: usize, value: u8| {
            let mut hive = empty();
            hive[at] = value;
            let sum = checksum(&hive);
            hive[CHECKSUM..CHECKSUM + 4].copy_from_slice(&sum.to_le_bytes());
            check(&hive)
        };
        assert_eq!(damaged(8, 2), Err("its sequence numbers differ"));
        assert_eq!(damaged(41, 0x20), Err("the size of its bins is wrong"));
        let flags = BLOCK + ROOT_CELL as usize + 6;
        assert_eq!(damaged(flags, 0x20), Err("its root key is not marked as the root"));
        assert_eq!(damaged(38, 1), Err("its root cell lies outside"));
        let mut hive = empty();
        hive[20] = 2;
        assert_eq!(check(&hive), Err("its checksum is wrong"));
        assert_eq!(check(&hive[..10]), Err("it has no root cell"));
    }
}
