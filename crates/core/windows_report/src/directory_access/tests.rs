//! Access control lists as Windows makes them, and broken ones.

use proptest::prelude::*;

use super::*;

const SYSTEM: &[u32] = &[5, 18];
const ADMINISTRATORS: &[u32] = &[5, 32, 544];
const USERS: &[u32] = &[5, 32, 545];
const EVERYBODY: &[u32] = &[1, 0];
const CREATOR_OWNER: &[u32] = &[3, 0];
const AUTHENTICATED_USERS: &[u32] = &[5, 11];
const ALICE: &[u32] = &[5, 21, 1, 2, 3, 1001];

/// What `icacls` shows as F, M, RX and W.
const FULL: u32 = 0x001F_01FF;
const MODIFY: u32 = 0x0013_01BF;
const READ: u32 = 0x0012_00A9;
const WRITE: u32 = 0x0010_0116;

/// The bytes of a SID: its authority and its parts.
fn sid_bytes(numbers: &[u32]) -> Vec<u8> {
    let authority = numbers[0].to_be_bytes();
    let parts = &numbers[1..];
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

/// The right 4 appends to a file and creates folders in a folder; 0x100 changes attributes, which
/// can turn only a folder into a link. 0x10 changes extended attributes, which does neither.
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
        let _ = writers(&owner, Some(&list), true);
        let _ = writers(&sid_bytes(SYSTEM), Some(&list), false);
    }
}

/// Files, folders and links of a host, on which everything else belongs to the administrators.
struct Disk(Vec<(&'static str, Entry)>);

impl Disk {
    fn distrust(&self, file: &str, own: &[u32]) -> io::Result<Option<(String, String)>> {
        let own = sid(&sid_bytes(own));
        distrust_of(Path::new(file), own.as_ref(), |path| self.entry(path))
    }

    fn entry(&self, path: &Path) -> io::Result<Entry> {
        let known = self.0.iter().find(|(known, _)| Path::new(known) == path);
        match known {
            None if path.ends_with("missing") => Err(io::ErrorKind::NotFound.into()),
            known => Ok(known.map(|(_, entry)| entry.clone()).unwrap_or_default()),
        }
    }

    /// Who may change what, for a process of SYSTEM, with the separators of Unix.
    fn reason(&self, file: &str) -> Option<String> {
        let distrust = self.distrust(file, SYSTEM).unwrap();
        distrust.map(|(reason, _)| reason.replace('\\', "/"))
    }
}

/// An entry with this owner, which this account may use in this way.
fn owned(owner: &[u32], mask: u32, account: &[u32]) -> Entry {
    let list = acl(&[allow(FULL, ADMINISTRATORS), allow(mask, account)]);
    let writers = writers(&sid_bytes(owner), Some(&list), false).unwrap();
    Entry { writers, target: None }
}

fn link(target: &str, entry: Entry) -> Entry {
    Entry { target: Some(target.into()), ..entry }
}

const FILE: &str = "/etc/plugin/wddm.yaml";

#[test]
fn a_file_is_trusted_only_if_nobody_else_may_change_or_replace_it() {
    let reason = |path, entry: &Entry| Disk(vec![(path, entry.clone())]).reason(FILE);
    let users_may = |path: &str| Some(format!("Users (S-1-5-32-545) may change `{path}`"));
    assert_eq!(Disk(vec![]).reason(FILE), None);
    for path in [FILE, "/etc/plugin", "/etc", "/"] {
        assert_eq!(reason(path, &owned(ADMINISTRATORS, MODIFY, USERS)), users_may(path));
        let theirs = owned(ALICE, READ, USERS);
        let alice = format!("S-1-5-21-1-2-3-1001 may change `{path}`");
        assert_eq!(reason(path, &theirs), Some(alice));
        let of_process = Disk(vec![(path, theirs)]).distrust(FILE, ALICE).unwrap();
        assert_eq!(of_process, None, "the account of the process");
    }
    // Windows Server gives Users these rights in each folder below the root of the system drive.
    let creating = owned(ADMINISTRATORS, 0x6, USERS);
    assert_eq!(reason("/etc/plugin", &creating), users_may("/etc/plugin"));
    assert_eq!(reason("/etc", &creating), None, "nothing there can be replaced");
}

#[test]
fn only_the_rights_of_the_file_and_its_folder_can_be_restricted() {
    for (path, start) in [
        (FILE, "run `icacls \"/etc/plugin/wddm.yaml\" /inheritance:r /grant:r \"*S-1-5-18:F\""),
        (
            "/etc/plugin",
            "run `icacls \"/etc/plugin\" /inheritance:r /grant:r \"*S-1-5-18:(OI)(CI)F\"",
        ),
        ("/etc", "move the file"),
    ] {
        let disk = Disk(vec![(path, owned(ADMINISTRATORS, MODIFY, USERS))]);
        let (_, fix) = disk.distrust(FILE, SYSTEM).unwrap().unwrap();
        assert!(fix.starts_with(start), "{fix}");
    }
}

#[test]
fn a_missing_file_is_not_found_and_a_missing_folder_is_unknown() {
    let disk = Disk(vec![("/theirs", owned(ALICE, READ, USERS))]);
    let error = |file| disk.distrust(file, SYSTEM).unwrap_err();
    assert_eq!(error("/etc/missing").kind(), io::ErrorKind::NotFound);
    let unknown = error("/etc/missing/wddm.yaml").to_string();
    assert!(unknown.starts_with("cannot find out who may change `/etc/missing`"), "{unknown}");
    let folder = Some("S-1-5-21-1-2-3-1001 may change `/theirs`".to_owned());
    assert_eq!(disk.reason("/theirs/missing"), folder, "whoever creates it decides what it has");
}

/// The kubelet writes a volume in this way: each key is a link, and so is the folder that it leads
/// to.
#[test]
fn the_links_of_a_mounted_config_map_are_followed() {
    let volume = |entries: &[(&'static str, Entry)]| {
        let links = [
            (FILE, link("/etc/plugin/..data/wddm.yaml", Entry::default())),
            ("/etc/plugin/..data", link("/etc/plugin/..2026", Entry::default())),
        ];
        // The entry that comes first counts.
        Disk([entries, &links].concat())
    };
    assert_eq!(volume(&[]).reason(FILE), None);
    let theirs = owned(ADMINISTRATORS, MODIFY, USERS);
    for (path, target) in [
        (FILE, Some("/etc/plugin/..data/wddm.yaml")),
        ("/etc/plugin/..data", Some("/etc/plugin/..2026")),
        ("/etc/plugin/..2026", None),
        ("/etc/plugin/..2026/wddm.yaml", None),
    ] {
        let entry = Entry { target: target.map(PathBuf::from), ..theirs.clone() };
        let reason = format!("Users (S-1-5-32-545) may change `{path}`");
        assert_eq!(volume(&[(path, entry)]).reason(FILE), Some(reason));
    }
}

/// The folder of the link and the folder of its target both count, and so does who may let a link
/// far above the file lead elsewhere.
#[test]
fn what_is_above_a_target_and_a_link_is_checked() {
    let creating = owned(ADMINISTRATORS, 0x2, USERS);
    let theirs = owned(ALICE, READ, USERS);
    let to_data = |entry| link("/data/configuration", entry);
    let reason = |entries| Disk(entries).reason("/opt/etc/plugin/wddm.yaml");
    let safe = || ("/opt/etc", to_data(Entry::default()));
    assert_eq!(reason(vec![safe()]), None);
    assert_eq!(reason(vec![safe(), ("/data", creating.clone())]), None);
    for (path, entry) in [
        ("/data", theirs),
        ("/data/configuration/plugin", creating.clone()),
        ("/opt/etc", to_data(creating)),
    ] {
        let found = reason(vec![(path, entry), safe()]).unwrap();
        assert!(found.ends_with(&format!(" may change `{path}`")), "{found}");
    }
}

/// The folder of the feature discovery below the kubelet's folder, and the file in it.
const OWN_FILE: &str = "/var/lib/kubelet/device-plugins/directx/cordoned-devices";
const OWN_FOLDER: &str = "/var/lib/kubelet/device-plugins/directx";

/// The reason not to trust [`OWN_FILE`], for a process of SYSTEM.
fn own_distrust(entries: Vec<(&'static str, Entry)>) -> io::Result<Option<String>> {
    let own = sid(&sid_bytes(SYSTEM));
    let disk = Disk(entries);
    distrust_in_own_folder(Path::new(OWN_FILE), own.as_ref(), |path| disk.entry(path))
        .map(|reason| reason.map(|reason| reason.replace('\\', "/")))
}

/// `C:\var` of Azure's images inherits from the drive that Authenticated Users may modify it.
fn var_on_azure() -> Entry {
    let list = acl(&[
        allow(FULL, SYSTEM),
        allow(FULL, ADMINISTRATORS),
        allow(READ, USERS),
        allow(MODIFY, AUTHENTICATED_USERS),
    ]);
    let writers = writers(&sid_bytes(ADMINISTRATORS), Some(&list), false).unwrap();
    Entry { writers, target: None }
}

#[test]
fn what_is_above_a_folder_of_this_program_does_not_matter() {
    let restricted = || {
        let list = acl(&[allow(FULL, SYSTEM), allow(FULL, ADMINISTRATORS)]);
        let writers = writers(&sid_bytes(SYSTEM), Some(&list), false).unwrap();
        Entry { writers, target: None }
    };
    let entries = vec![("/var", var_on_azure()), (OWN_FOLDER, restricted())];
    assert_eq!(
        Disk(entries.clone()).reason(OWN_FILE).as_deref(),
        Some("Authenticated Users (S-1-5-11) may change `/var`")
    );
    assert_eq!(own_distrust(entries).unwrap(), None);
}

#[test]
fn a_file_in_a_folder_of_this_program_is_trusted_only_if_nobody_else_may_change_or_replace_it() {
    for path in [OWN_FILE, OWN_FOLDER] {
        let may_change = |account: &str| Some(format!("{account} may change `{path}`"));
        assert_eq!(
            own_distrust(vec![(path, var_on_azure())]).unwrap(),
            may_change("Authenticated Users (S-1-5-11)")
        );
        let theirs = owned(ALICE, READ, USERS);
        assert_eq!(own_distrust(vec![(path, theirs)]).unwrap(), may_change("S-1-5-21-1-2-3-1001"));
        let creating = owned(ADMINISTRATORS, 0x2, USERS);
        assert_eq!(
            own_distrust(vec![(path, creating)]).unwrap(),
            may_change("Users (S-1-5-32-545)")
        );
        let linked = link("/elsewhere", Entry::default());
        assert_eq!(
            own_distrust(vec![(path, linked)]).unwrap(),
            Some(format!("`{path}` is a link"))
        );
    }
}

/// The feature discovery removes the file and then its folder.
#[test]
fn a_file_that_does_not_exist_is_not_found_whatever_its_folder_is() {
    let own = sid(&sid_bytes(SYSTEM));
    for missing in [OWN_FILE, OWN_FOLDER] {
        let result = distrust_in_own_folder(Path::new(OWN_FILE), own.as_ref(), |path| {
            if path == Path::new(missing) {
                return Err(io::ErrorKind::NotFound.into());
            }
            Ok(if path == Path::new(OWN_FILE) { Entry::default() } else { var_on_azure() })
        });
        assert_eq!(result.unwrap_err().kind(), io::ErrorKind::NotFound, "{missing}");
    }
    let denied = distrust_in_own_folder(Path::new(OWN_FILE), own.as_ref(), |_| {
        Err(io::ErrorKind::PermissionDenied.into())
    });
    let text = denied.unwrap_err().to_string();
    assert!(text.starts_with("cannot find out who may change"), "{text}");
}

#[test]
fn links_that_lead_to_themselves_end() {
    let disk = Disk(vec![
        ("/a", link("/b", Entry::default())),
        ("/b", link("/a", Entry::default())),
        ("/k", link("/k/k", Entry::default())),
    ]);
    for file in ["/a", "/k"] {
        let error = disk.distrust(file, SYSTEM).unwrap_err().to_string();
        assert_eq!(error, format!("`{file}` leads through too many links"));
    }
}
