//! The empty registry hive of a Windows base layer.
//!
//! Windows expects hives in the lowest layer of an image. A `HostProcess` container does not use
//! them, but Windows loads them when an image is derived from this one, so they have to be
//! valid. Microsoft does not document the format; <https://github.com/msuhanov/regf> does.

use super::security;

/// The size of the base block, and of the only bin after it.
const BLOCK: usize = 0x1000;

/// The cells, by their offsets in the bin: the root key, its security, and the free rest.
const ROOT: u32 = 0x20;
const SECURITY: u32 = 0x78;
const FREE: u32 = 0xf8;

/// "No cell".
const NONE: u32 = u32::MAX;

/// A hive whose only content is its root key.
pub(super) fn empty() -> Vec<u8> {
    let descriptor = security::registry_key();
    let descriptor_length = u32::try_from(descriptor.len()).expect("the descriptor is short");
    let mut hive = b"regf".to_vec();
    // The header has equal sequence numbers, no time, version 1.3, a primary file in memory, the
    // root, the size of the bins, and one sector in a cluster.
    numbers(&mut hive, &[1, 1, 0, 0, 1, 3, 0, 1, ROOT, 0x1000, 1]);
    hive.resize(508, 0);
    let words =
        hive.chunks_exact(4).map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]]));
    let checksum = words.fold(0, |sum, word| sum ^ word);
    numbers(&mut hive, &[checksum]);
    hive.resize(BLOCK, 0);

    hive.extend(b"hbin");
    // The bin has an offset, a size, and no time.
    numbers(&mut hive, &[0, 0x1000, 0, 0, 0, 0, 0]);

    // The size of a cell in use is negative.
    numbers(&mut hive, &[(SECURITY - ROOT).wrapping_neg()]);
    // The key is a root that cannot be deleted, with a name of one byte a character:
    // `KEY_HIVE_ENTRY`, `KEY_NO_DELETE`, `KEY_COMP_NAME`.
    hive.extend(b"nk\x2c\0");
    // The key has no time, access bits or parent; no subkeys; no values; a security descriptor; no
    // class.
    numbers(&mut hive, &[0, 0, 0, NONE, 0, 0, NONE, NONE, 0, NONE, SECURITY, NONE]);
    // It has no longest names or values. The length of the name may be any.
    numbers(&mut hive, &[0, 0, 0, 0, 0, 1]);
    hive.extend(b"R");

    hive.resize(BLOCK + SECURITY as usize, 0);
    numbers(&mut hive, &[(FREE - SECURITY).wrapping_neg()]);
    hive.extend(b"sk\0\0");
    // The security cell is the only one, so it links to itself; one key uses it.
    numbers(&mut hive, &[SECURITY, SECURITY, 1, descriptor_length]);
    hive.extend(descriptor);

    hive.resize(BLOCK + FREE as usize, 0);
    numbers(&mut hive, &[0x1000 - FREE]);
    hive.resize(2 * BLOCK, 0);
    hive
}

fn numbers(bytes: &mut Vec<u8>, numbers: &[u32]) {
    bytes.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
}
