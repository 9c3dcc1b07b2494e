//! Windows security descriptors in the self-relative form (MS-DTYP, section 2.4.6).
//!
//! Each entry of a Windows image layer and the root key of a registry hive has one. The
//! comments give them in SDDL, the text form that Windows documents.

/// All rights to a file or folder, `FA` in SDDL (`FILE_ALL_ACCESS`, winnt.h).
const FILE_ALL: u32 = 0x001f_01ff;

/// Read and execute a file, `0x1200a9` in SDDL.
const FILE_READ_AND_EXECUTE: u32 = 0x0012_00a9;

/// All rights to a registry key, `KA` in SDDL (`KEY_ALL_ACCESS`, winnt.h).
const KEY_ALL: u32 = 0x000f_003f;

/// All rights, mapped by the type of the object, `GA` in SDDL (`GENERIC_ALL`, winnt.h).
const GENERIC_ALL: u32 = 0x1000_0000;

/// Add a folder, which SDDL writes as `LC` (bit 2, `FILE_ADD_SUBDIRECTORY`, winnt.h).
const ADD_FOLDER: u32 = 0x4;

/// Add a file, which SDDL writes as `DC` (bit 1, `FILE_ADD_FILE`, winnt.h).
const ADD_FILE: u32 = 0x2;

/// Files inherit the entry, `OI` in SDDL.
const FOR_FILES: u8 = 0x1;

/// Folders and keys inherit the entry, `CI` in SDDL.
const FOR_FOLDERS: u8 = 0x2;

/// The entry does not apply to the object itself, `IO` in SDDL.
const INHERIT_ONLY: u8 = 0x8;

/// A security identifier: its authority, then its numbers.
struct Account(u8, &'static [u32]);

/// The authority `SECURITY_NT_AUTHORITY` (winnt.h).
const NT: u8 = 5;

/// `BA` in SDDL: S-1-5-32-544.
const ADMINISTRATORS: Account = Account(NT, &[32, 544]);

/// `SY` in SDDL: S-1-5-18.
const SYSTEM: Account = Account(NT, &[18]);

/// `BU` in SDDL: S-1-5-32-545.
const USERS: Account = Account(NT, &[32, 545]);

/// `CO` in SDDL: S-1-3-0.
const CREATOR_OWNER: Account = Account(3, &[0]);

/// An entry that allows `access` to `account`.
struct Allow {
    inheritance: u8,
    access: u32,
    account: Account,
}

/// The descriptor of a folder in a layer:
/// `O:BAG:SYD:(A;OICI;FA;;;BA)(A;OICI;FA;;;SY)(A;;FA;;;BA)(A;OICIIO;GA;;;CO)(A;OICI;0x1200a9;;;BU)(A;CI;LC;;;BU)(A;CI;DC;;;BU)`.
pub(super) fn folder() -> Vec<u8> {
    const ALL: u8 = FOR_FILES | FOR_FOLDERS;
    descriptor(&[
        Allow { inheritance: ALL, access: FILE_ALL, account: ADMINISTRATORS },
        Allow { inheritance: ALL, access: FILE_ALL, account: SYSTEM },
        Allow { inheritance: 0, access: FILE_ALL, account: ADMINISTRATORS },
        Allow { inheritance: ALL | INHERIT_ONLY, access: GENERIC_ALL, account: CREATOR_OWNER },
        Allow { inheritance: ALL, access: FILE_READ_AND_EXECUTE, account: USERS },
        Allow { inheritance: FOR_FOLDERS, access: ADD_FOLDER, account: USERS },
        Allow { inheritance: FOR_FOLDERS, access: ADD_FILE, account: USERS },
    ])
}

/// The descriptor of a file in a layer: `O:BAG:SYD:(A;;FA;;;BA)(A;;FA;;;SY)(A;;0x1200a9;;;BU)`.
pub(super) fn file() -> Vec<u8> {
    descriptor(&[
        Allow { inheritance: 0, access: FILE_ALL, account: ADMINISTRATORS },
        Allow { inheritance: 0, access: FILE_ALL, account: SYSTEM },
        Allow { inheritance: 0, access: FILE_READ_AND_EXECUTE, account: USERS },
    ])
}

/// The descriptor of a hive's root key: `O:BAG:SYD:(A;CI;KA;;;SY)(A;CI;KA;;;BA)`.
pub(super) fn registry_key() -> Vec<u8> {
    descriptor(&[
        Allow { inheritance: FOR_FOLDERS, access: KEY_ALL, account: SYSTEM },
        Allow { inheritance: FOR_FOLDERS, access: KEY_ALL, account: ADMINISTRATORS },
    ])
}

/// A descriptor with Administrators as the owner and SYSTEM as the primary group.
fn descriptor(entries: &[Allow]) -> Vec<u8> {
    /// `SE_SELF_RELATIVE | SE_DACL_PRESENT` (winnt.h).
    const CONTROL: u16 = 0x8004;
    const HEADER: usize = 20;
    let owner = identifier(&ADMINISTRATORS);
    let group = identifier(&SYSTEM);
    let mut bytes = vec![1, 0];
    bytes.extend(CONTROL.to_le_bytes());
    for offset in [HEADER, HEADER + owner.len(), 0, HEADER + owner.len() + group.len()] {
        bytes.extend(length32(offset).to_le_bytes());
    }
    bytes.extend(owner);
    bytes.extend(group);
    bytes.extend(access_control_list(entries));
    bytes
}

fn access_control_list(entries: &[Allow]) -> Vec<u8> {
    const REVISION: u16 = 2;
    let mut body = Vec::new();
    for entry in entries {
        let account = identifier(&entry.account);
        // Type 0 is `ACCESS_ALLOWED_ACE_TYPE` (winnt.h).
        body.extend([0, entry.inheritance]);
        body.extend(length16(8 + account.len()).to_le_bytes());
        body.extend(entry.access.to_le_bytes());
        body.extend(account);
    }
    let mut list = REVISION.to_le_bytes().to_vec();
    list.extend(length16(8 + body.len()).to_le_bytes());
    list.extend(length16(entries.len()).to_le_bytes());
    list.extend([0, 0]);
    list.extend(body);
    list
}

fn identifier(account: &Account) -> Vec<u8> {
    let Account(authority, numbers) = account;
    let count = u8::try_from(numbers.len()).expect("an identifier has at most 15 numbers");
    let mut bytes = vec![1, count, 0, 0, 0, 0, 0, *authority];
    bytes.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
    bytes
}

/// Base64 with padding (RFC 4648, section 4), as layers contain descriptors.
pub(crate) fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let byte = |index: usize| u32::from(chunk.get(index).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for digit in 0..4 {
            let index = (bits >> (18 - 6 * digit) & 0x3f) as usize;
            text.push(if digit > chunk.len() { '=' } else { DIGITS[index].into() });
        }
    }
    text
}

fn length16(length: usize) -> u16 {
    u16::try_from(length).expect("the lists here are short")
}

fn length32(length: usize) -> u32 {
    u32::try_from(length).expect("the descriptors here are short")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As `BuildKit` writes them (`util/winlayers`); Windows made them from the SDDL texts.
    const FOLDER: &str = "AQAEgBQAAAAkAAAAAAAAADAAAAABAgAAAAAABSAAAAAgAgAAAQEAAAAAAAUSAAAAAgCoAAcAAAAAAxgA/wEfAAECAAAAAAAFIAAAACACAAAAAxQA/wEfAAEBAAAAAAAFEgAAAAAAGAD/AR8AAQIAAAAAAAUgAAAAIAIAAAALFAAAAAAQAQEAAAAAAAMAAAAAAAMYAKkAEgABAgAAAAAABSAAAAAhAgAAAAIYAAQAAAABAgAAAAAABSAAAAAhAgAAAAIYAAIAAAABAgAAAAAABSAAAAAhAgAA";
    const FILE: &str = "AQAEgBQAAAAkAAAAAAAAADAAAAABAgAAAAAABSAAAAAgAgAAAQEAAAAAAAUSAAAAAgBMAAMAAAAAABgA/wEfAAECAAAAAAAFIAAAACACAAAAABQA/wEfAAEBAAAAAAAFEgAAAAAAGACpABIAAQIAAAAAAAUgAAAAIQIAAA==";

    #[test]
    fn folders_and_files_have_the_descriptors_that_buildkit_writes() {
        assert_eq!(base64(&folder()), FOLDER);
        assert_eq!(base64(&file()), FILE);
    }

    #[test]
    fn base64_pads_to_multiples_of_four() {
        // From RFC 4648, section 10.
        for (text, encoded) in [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foobar", "Zm9vYmFy")] {
            assert_eq!(base64(text.as_bytes()), encoded);
        }
    }

    #[test]
    fn a_registry_key_belongs_to_system_and_administrators() {
        let bytes = registry_key();
        assert_eq!(&bytes[48..56], [2, 0, 52, 0, 2, 0, 0, 0]);
        assert_eq!(&bytes[56..64], [0, 2, 20, 0, 0x3f, 0, 0xf, 0]);
        assert_eq!(&bytes[76..84], [0, 2, 24, 0, 0x3f, 0, 0xf, 0]);
        assert_eq!(bytes.len(), 100);
    }
}
