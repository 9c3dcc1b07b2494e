//! Access control lists as Windows makes them, and broken ones.

use proptest::prelude::*;

use super::*;

const SYSTEM: &[u32] = &[5, 18];
const ADMINISTRATORS: &[u32] = &[5, 32, 544];
const USERS: &[u32] = &[5, 32, 545];
const EVERYBODY: &[u32] = &[1, 0];
const CREATOR_OWNER: &[u32] = &[3, 0];
const ALICE: &[u32] = &[5, 21, 1, 2, 3, 1001];

/// What `icacls` shows as F, M, RX and W.
const FULL: u32 = 0x001F_01FF;
const MODIFY: u32 = 0x0013_01BF;
const READ: u32 = 0x0012_00A9;
const WRITE: u32 = 0x0010_0116;

/// The bytes of a SID: its authority and its parts.
fn sid_bytes(numbers: &[u32]) -> Vec<u8> {
    let (authority, parts) = (numbers[0].to_be_bytes(), &numbers[1..]);
    let mut bytes = vec![1, u8::try_from(parts.len()).unwrap(), 0, 0];
    bytes.extend(authority);
    bytes.extend(parts.iter().flat_map(|part| part.to_le_bytes()));
    bytes
}

/// The bytes of an entry: its kind, its flags, its rights and its account.
fn entry(kind: u8, flags: u8, mask: u32, account: &[u32]) -> Vec<u8> {
    let account = sid_bytes(account);
    let size = u16::try_from(8 + account.len()).unwrap();
    [&[kind, flags][..], &size.to_le_bytes(), &mask.to_le_bytes(), &account].concat()
}

fn allow(mask: u32, account: &[u32]) -> Vec<u8> {
    entry(ACCESS_ALLOWED_ACE_TYPE, 0x3, mask, account)
}

fn acl(entries: &[Vec<u8>]) -> Vec<u8> {
    let body = entries.concat();
    let size = u16::try_from(8 + body.len()).unwrap().to_le_bytes();
    let count = u16::try_from(entries.len()).unwrap().to_le_bytes();
    [&[2, 0][..], &size, &count, &[0, 0], &body].concat()
}

/// The accounts and rights of a directory of the administrators, one per line.
fn found(entries: &[Vec<u8>]) -> Vec<String> {
    let writers = writers(&sid_bytes(ADMINISTRATORS), Some(&acl(entries)), false).unwrap();
    writers.iter().map(|w| format!("{}: {}", w.account, w.rights.join(", "))).collect()
}

#[test]
fn windows_and_administrators_may_change_everything() {
    let installer: &[u32] =
        &[5, 80, 956_008_885, 3_418_522_649, 1_831_038_044, 1_853_292_631, 2_271_478_464];
    let entries = [SYSTEM, ADMINISTRATORS, installer, &[3, 4]].map(|account| allow(FULL, account));
    assert_eq!(found(&entries), [""; 0]);
}

/// What a folder inherits from drive C of Windows Server: Users may read and add folders and files.
#[test]
fn a_folder_below_drive_c_is_open_to_users() {
    let entries = [
        allow(FULL, SYSTEM),
        allow(FULL, ADMINISTRATORS),
        allow(READ, USERS),
        allow(0x4, USERS),
        allow(0x2, USERS),
        entry(ACCESS_ALLOWED_ACE_TYPE, 0xB, GENERIC_ALL, CREATOR_OWNER),
    ];
    assert_eq!(found(&entries), ["Users (S-1-5-32-545): create files"]);
}

#[test]
fn each_right_that_matters_is_named_once() {
    let all = "create files, delete files of others, delete it, change the access rights";
    for mask in [FULL, GENERIC_ALL] {
        let entries = [allow(mask, ALICE), allow(mask, ALICE)];
        assert_eq!(found(&entries), [format!("S-1-5-21-1-2-3-1001: {all}")]);
    }
    for (mask, rights) in [
        (MODIFY, "create files, delete it"),
        (WRITE, "create files"),
        (GENERIC_WRITE, "create files"),
        (FILE_DELETE_CHILD, "delete files of others"),
        (DELETE, "delete it"),
        (WRITE_OWNER, CHANGE_RIGHTS),
    ] {
        assert_eq!(found(&[allow(mask, EVERYBODY)]), [format!("Everyone (S-1-1-0): {rights}")]);
    }
    assert_eq!(found(&[allow(READ, EVERYBODY), allow(0x2000_0000, EVERYBODY)]), [""; 0]);
}

/// The right 4 appends to a file and creates folders in a folder; 0x100 changes attributes, which can
/// turn only a folder into a link. 0x10 changes extended attributes, which does neither.
#[test]
fn the_rights_that_matter_for_a_file_differ_from_those_for_a_folder() {
    for (right, may_change_file, may_change_folder) in
        [(0x2, true, true), (0x4, true, false), (0x10, false, false), (0x100, false, true)]
    {
        let list = acl(&[allow(right, USERS)]);
        let may_change = |is_file| {
            !writers(&sid_bytes(ADMINISTRATORS), Some(&list), is_file).unwrap().is_empty()
        };
        let found = (may_change(true), may_change(false));
        assert_eq!(found, (may_change_file, may_change_folder), "{right:#x}");
    }
}

#[test]
fn entries_for_files_only_do_not_count() {
    let inherited = entry(ACCESS_ALLOWED_ACE_TYPE, 0x3 | INHERIT_ONLY_ACE, FULL, USERS);
    assert_eq!(found(&[inherited]), [""; 0]);
}

#[test]
fn what_is_denied_first_is_not_granted() {
    let deny = |account| entry(ACCESS_DENIED_ACE_TYPE, 0, FULL, account);
    for account in [USERS, EVERYBODY] {
        assert_eq!(found(&[deny(account), allow(MODIFY, USERS)]), [""; 0]);
    }
    assert_eq!(found(&[deny(ALICE), allow(MODIFY, USERS)]).len(), 1);
    assert_eq!(found(&[allow(MODIFY, USERS), deny(USERS)]).len(), 1);
}

#[test]
fn a_condition_is_ignored_and_other_kinds_grant_nothing() {
    let conditional = entry(ACCESS_ALLOWED_CALLBACK_ACE_TYPE, 0, MODIFY, USERS);
    let with_condition = {
        let mut bytes = conditional;
        bytes.extend(b"artx");
        let size = u16::try_from(bytes.len()).unwrap().to_le_bytes();
        bytes[2..4].copy_from_slice(&size);
        bytes
    };
    let audit = vec![2, 0, 4, 0];
    assert_eq!(found(&[audit, with_condition]).len(), 1);
}

#[test]
fn without_a_list_everyone_may_do_everything() {
    let writers = writers(&sid_bytes(SYSTEM), None, false).unwrap();
    assert_eq!((writers.len(), writers[0].rights.len()), (1, 4));
    assert_eq!(writers[0].account.as_str(), EVERYONE);
}

#[test]
fn an_owner_may_change_the_rights() {
    let list = acl(&[allow(MODIFY, ALICE)]);
    let writers = writers(&sid_bytes(ALICE), Some(&list), false).unwrap();
    let rights = vec![CHANGE_RIGHTS, "create files", "delete it"];
    let account = Sid("S-1-5-21-1-2-3-1001".to_owned());
    assert_eq!(writers, [Writer { account, rights, is_owner: true }]);
}

#[test]
fn a_list_that_is_cut_is_an_error() {
    let owner = sid_bytes(SYSTEM);
    let list = acl(&[allow(FULL, SYSTEM), allow(MODIFY, USERS)]);
    for end in 0..list.len() {
        assert_eq!(writers(&owner, Some(&list[..end]), false), None, "{end}");
    }
    let endless = acl(&[entry(ACCESS_ALLOWED_ACE_TYPE, 0, FULL, USERS), vec![2, 0, 0, 0]]);
    assert_eq!(writers(&owner, Some(&endless), false), None);
    assert_eq!(writers(&[1], None, false), None);
}

proptest! {
    #[test]
    fn any_bytes_end(owner: Vec<u8>, list: Vec<u8>) {
        let _ = writers(&owner, Some(&list), false);
        let _ = writers(&sid_bytes(SYSTEM), Some(&list), false);
    }
}

#[test]
fn a_file_is_trusted_only_if_nobody_else_may_change_or_replace_it() {
    let (admin, users, alice) =
        (allow(FULL, ADMINISTRATORS), allow(MODIFY, USERS), sid_bytes(ALICE));
    // What Windows Server gives Users in each folder below the root of the system drive.
    let create = entry(ACCESS_ALLOWED_ACE_TYPE, 0x2, 0x6, USERS);
    let by = |owner: &[u8], entries: &[&Vec<u8>]| {
        let entries: Vec<Vec<u8>> = entries.iter().map(|entry| (*entry).clone()).collect();
        writers(owner, Some(&acl(&entries)), false)
    };
    let administrators = sid_bytes(ADMINISTRATORS);
    let reason = |of_file, of_folder, of_parent, own: &[u32]| {
        let own = sid(&sid_bytes(own));
        let found = distrust_of(Path::new("/etc/plugin/wddm.yaml"), own.as_ref(), |path| {
            let found: &Option<Vec<Writer>> = match path.to_str() {
                Some("/etc/plugin/wddm.yaml") => of_file,
                Some("/etc/plugin") => of_folder,
                Some("/etc") => of_parent,
                _ => return Ok(Vec::new()),
            };
            found.clone().ok_or_else(|| io::ErrorKind::NotFound.into())
        });
        match found {
            Ok(text) => text.map(|text| text.split(';').next().unwrap_or_default().to_owned()),
            Err(error) => Some(error.kind().to_string()),
        }
    };
    let safe = by(&administrators, &[&admin]);
    let everything = by(&administrators, &[&admin, &allow(FULL, USERS)]);
    let (listed, theirs) = (by(&administrators, &[&users]), by(&alice, &[&admin]));
    let creating = by(&administrators, &[&admin, &create]);
    assert_eq!(reason(&safe, &safe, &safe, SYSTEM), None);
    assert_eq!(reason(&safe, &safe, &creating, SYSTEM), None, "nothing there can be replaced");
    let users_may = |path: &str| Some(format!("Users (S-1-5-32-545) may change `{path}`"));
    assert_eq!(reason(&listed, &safe, &safe, SYSTEM), users_may("/etc/plugin/wddm.yaml"));
    assert_eq!(reason(&safe, &creating, &safe, SYSTEM), users_may("/etc/plugin"));
    assert_eq!(reason(&safe, &safe, &everything, SYSTEM), users_may("/etc"));
    let owner = Some("S-1-5-21-1-2-3-1001 may change `/etc`".to_owned());
    assert_eq!(reason(&safe, &safe, &theirs, SYSTEM), owner);
    assert_eq!(reason(&theirs, &theirs, &theirs, ALICE), None, "the account of the process");
    let missing = None;
    let not_found = Some(io::ErrorKind::NotFound.to_string());
    assert_eq!(reason(&missing, &listed, &listed, SYSTEM), not_found);
    let unknown = reason(&safe, &safe, &missing, SYSTEM).unwrap();
    assert!(unknown.starts_with("cannot find out who may change `/etc`"), "{unknown}");
}
