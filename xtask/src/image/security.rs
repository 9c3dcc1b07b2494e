//! Windows security descriptors in the self-relative form (MS-DTYP, section 2.4.6).
//!
//! Each entry of a Windows image layer and the root key of a registry hive has one. The owner
//! is Administrators, the primary group SYSTEM. The comments give them in SDDL.

const FILE_ALL: u32 = 0x001f_01ff;
const FILE_READ_AND_EXECUTE: u32 = 0x0012_00a9;
const KEY_ALL: u32 = 0x000f_003f;

/// Files (`OI`) and folders or keys (`CI`) inherit an entry.
const OBJECT_INHERIT: u8 = 1;
const CONTAINER_INHERIT: u8 = 2;

/// `BA`, S-1-5-32-544.
const ADMINISTRATORS: &[u8] = &[1, 2, 0, 0, 0, 0, 0, 5, 32, 0, 0, 0, 0x20, 2, 0, 0];

/// `SY`, S-1-5-18.
const SYSTEM: &[u8] = &[1, 1, 0, 0, 0, 0, 0, 5, 18, 0, 0, 0];

/// `BU`, S-1-5-32-545.
const USERS: &[u8] = &[1, 2, 0, 0, 0, 0, 0, 5, 32, 0, 0, 0, 0x21, 2, 0, 0];

/// Users cannot create files, which a program that runs as SYSTEM might load:
/// `O:BAG:SYD:(A;OICI;FA;;;BA)(A;OICI;FA;;;SY)(A;OICI;0x1200a9;;;BU)`.
pub(super) fn folder() -> Vec<u8> {
    file_descriptor(OBJECT_INHERIT | CONTAINER_INHERIT)
}

/// `O:BAG:SYD:(A;;FA;;;BA)(A;;FA;;;SY)(A;;0x1200a9;;;BU)`.
pub(super) fn file() -> Vec<u8> {
    file_descriptor(0)
}

/// `O:BAG:SYD:(A;CI;KA;;;SY)(A;CI;KA;;;BA)`.
pub(super) fn registry_key() -> Vec<u8> {
    descriptor(CONTAINER_INHERIT, &[(KEY_ALL, SYSTEM), (KEY_ALL, ADMINISTRATORS)])
}

fn file_descriptor(inheritance: u8) -> Vec<u8> {
    let entries = [(FILE_ALL, ADMINISTRATORS), (FILE_ALL, SYSTEM), (FILE_READ_AND_EXECUTE, USERS)];
    descriptor(inheritance, &entries)
}

/// A descriptor that allows each account its access.
fn descriptor(inheritance: u8, entries: &[(u32, &[u8])]) -> Vec<u8> {
    let mut list = Vec::new();
    for (access, account) in entries {
        // The type 0 is `ACCESS_ALLOWED_ACE_TYPE`.
        list.extend([0, inheritance]);
        list.extend(length(8 + account.len()));
        list.extend(access.to_le_bytes());
        list.extend(*account);
    }
    // The descriptor has revision 1 and `SE_SELF_RELATIVE | SE_DACL_PRESENT`; then the offsets of
    // the owner, the group, the missing audit list and the access control list.
    let mut bytes = vec![1, 0, 4, 0x80, 20, 0, 0, 0, 36, 0, 0, 0, 0, 0, 0, 0, 48, 0, 0, 0];
    bytes.extend([ADMINISTRATORS, SYSTEM].concat());
    // The list has the revision 2.
    bytes.extend([[2, 0], length(8 + list.len()), length(entries.len()), [0, 0]].concat());
    bytes.extend(list);
    bytes
}

fn length(bytes: usize) -> [u8; 2] {
    u16::try_from(bytes).expect("the lists are short").to_le_bytes()
}
