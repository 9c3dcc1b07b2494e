//! The kubelet's device plugin directory and the socket in it.

use std::io::{Error, ErrorKind};
use std::time::Duration;

use win32::directory_access::writers;

use super::Table;
use crate::facts::{DirectoryAccess, KubeletSocket};
use crate::finding::Subject;

#[test]
fn the_directory_is_open_to_administrators_and_protected_from_others() {
    let mut table = Table::of(&[Subject::KubeletDirectory]);
    // A user of the host owns the directory, which has no access control list.
    let user = [1, 2, 0, 0, 0, 0, 0, 5, 21, 0, 0, 0, 7, 0, 0, 0];
    let of_user = writers(&user, None, false).unwrap();
    for (words, access) in [
        ("only Windows and administrators may write", DirectoryAccess::Writers(vec![])),
        ("a user owns it and everyone may write", DirectoryAccess::Writers(of_user)),
        (
            "its access rights cannot be read",
            DirectoryAccess::RightsUnknown(Error::other("access is denied")),
        ),
        ("it does not exist", DirectoryAccess::NotOpened(ErrorKind::NotFound.into())),
        ("it is a file", DirectoryAccess::NotOpened(ErrorKind::NotADirectory.into())),
    ] {
        table.row(words, |facts| facts.directory.as_mut().unwrap().access = access);
    }
    table.row("an inventory", |facts| facts.directory = None);
    let default = device_plugin::default_device_plugin_dir().display().to_string();
    insta::assert_snapshot!(table.text().replace(&default, "<default directory>"));
}

#[test]
fn the_kubelet_accepts_connections() {
    let mut table = Table::of(&[Subject::KubeletSocket]);
    for (words, socket) in [
        ("it accepts", KubeletSocket::Accepts),
        ("no AF_UNIX", KubeletSocket::NotSupported),
        ("no socket", KubeletSocket::Missing),
        ("access denied", KubeletSocket::Refused(ErrorKind::PermissionDenied.into())),
        ("no listener", KubeletSocket::Refused(ErrorKind::ConnectionRefused.into())),
        ("it hangs", KubeletSocket::NoAnswer(Duration::from_secs(2))),
    ] {
        table.row(words, |facts| facts.directory.as_mut().unwrap().socket = socket);
    }
    insta::assert_snapshot!(table.text());
}
