//! The empty registry hive of a Windows base layer.
//!
//! Windows expects hives in the lowest layer of an image. A `HostProcess` container does not use
//! them, but Windows loads them when an image is derived from this one, so they have to be
//! valid. Microsoft does not document the format; <https://github.com/msuhanov/regf> does.

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
    let mut hive = b"regf".to_vec();
    // Equal sequence numbers, no time, version 1.3, a primary file in memory, the root, the size
    // of the bins, one sector in a cluster.
    numbers(&mut hive, &[1, 1, 0, 0, 1, 3, 0, 1, ROOT, 0x1000, 1]);
    hive.resize(508, 0);
    let words =
        hive.chunks_exact(4).map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]]));
    let checksum = words.fold(0, |sum, word| sum ^ word);
    numbers(&mut hive, &[checksum]);
    hive.resize(BLOCK, 0);

    hive.extend(b"hbin");
    // Its offset and its size, and no time.
    numbers(&mut hive, &[0, 0x1000, 0, 0, 0, 0, 0]);

    // The size of a cell in use is negative.
    numbers(&mut hive, &[(SECURITY - ROOT).wrapping_neg()]);
    // A root that cannot be deleted, with a name of one byte a character: KEY_HIVE_ENTRY,
    // KEY_NO_DELETE, KEY_COMP_NAME.
    hive.extend(b"nk\x2c\0");
    // No time, access bits or parent; no subkeys; no values; the security; no class.
    numbers(&mut hive, &[0, 0, 0, NONE, 0, 0, NONE, NONE, 0, NONE, SECURITY, NONE]);
    // No longest names or values; the length of the name, which may be any.
    numbers(&mut hive, &[0, 0, 0, 0, 0, 1]);
    hive.extend(b"R");

    hive.resize(BLOCK + SECURITY as usize, 0);
    numbers(&mut hive, &[(FREE - SECURITY).wrapping_neg()]);
    hive.extend(b"sk\0\0");
    // It is the only one, so it links to itself; one key uses it. The length of what follows.
    numbers(&mut hive, &[SECURITY, SECURITY, 1, 100]);
    // The security descriptor (MS-DTYP, section 2.4.6): its header, the owner, the group, and a
    // list of two entries. `O:BAG:SYD:(A;CI;KA;;;SY)(A;CI;KA;;;BA)`.
    numbers(&mut hive, &[0x8004_0001, 20, 36, 0, 48]);
    numbers(&mut hive, &[0x201, 0x500_0000, 32, 544, 0x101, 0x500_0000, 18, 0x34_0002, 2]);
    numbers(&mut hive, &[0x14_0200, 0xf_003f, 0x101, 0x500_0000, 18]);
    numbers(&mut hive, &[0x18_0200, 0xf_003f, 0x201, 0x500_0000, 32, 544]);

    hive.resize(BLOCK + FREE as usize, 0);
    numbers(&mut hive, &[0x1000 - FREE]);
    hive.resize(2 * BLOCK, 0);
    hive
}

fn numbers(bytes: &mut Vec<u8>, numbers: &[u32]) {
    bytes.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
}
