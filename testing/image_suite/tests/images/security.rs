//! Who may use the files of an image.

use std::fmt::Write;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::image::{Builder, PLUGIN};

#[test]
fn users_can_read_and_execute_but_not_create_or_write() {
    let builder = Builder::new();
    builder.build(1, &[]);
    for entry in builder.layout(PLUGIN).entries() {
        let Some(descriptor) = entry.attributes.get("MSWINDOWS.rawsd") else {
            // A hard link has the descriptor of its target.
            assert!(entry.link.is_some(), "{} has no descriptor", entry.path);
            continue;
        };
        let expected = if entry.header.entry_type().is_dir() {
            "O:BAG:SYD:(A;OICI;FA;;;BA)(A;OICI;FA;;;SY)(A;OICI;0x1200a9;;;BU)"
        } else {
            "O:BAG:SYD:(A;;FA;;;BA)(A;;FA;;;SY)(A;;0x1200a9;;;BU)"
        };
        assert_eq!(sddl(&STANDARD.decode(descriptor).unwrap()), expected, "{}", entry.path);
    }
}

/// A self-relative security descriptor (MS-DTYP, section 2.4.6) in the form of Windows.
fn sddl(bytes: &[u8]) -> String {
    let number = |at: usize, length: usize| {
        let bytes = bytes[at..at + length].iter().rev();
        bytes.fold(0, |sum, byte| sum << 8 | usize::from(*byte))
    };
    let account = |at: usize| {
        assert_eq!((number(at, 1), number(at + 7, 1)), (1, 5), "the authority is Windows");
        let parts = (0..number(at + 1, 1)).map(|part| number(at + 8 + 4 * part, 4));
        match parts.collect::<Vec<_>>()[..] {
            [18] => "SY",
            [32, 544] => "BA",
            [32, 545] => "BU",
            ref other => panic!("unknown account {other:?}"),
        }
    };
    // The descriptor is self-relative, with an access list, and without an audit list.
    assert_eq!((number(0, 1), number(2, 2), number(12, 4)), (1, 0x8004, 0));
    let mut text = format!("O:{}G:{}D:", account(number(4, 4)), account(number(8, 4)));
    let list = number(16, 4);
    assert_eq!((number(list, 2), number(list + 2, 2)), (2, bytes.len() - list));
    let mut at = list + 8;
    for _ in 0..number(list + 4, 2) {
        assert_eq!(number(at, 1), 0, "the entry allows");
        let flags = ["OI", "CI", "NP", "IO"].into_iter().enumerate();
        let flags = flags.filter(|(bit, _)| number(at + 1, 1) >> bit & 1 == 1);
        let flags: String = flags.map(|(_, flag)| flag).collect();
        let access = match number(at + 4, 4) {
            0x1f_01ff => "FA".to_owned(),
            other => format!("{other:#x}"),
        };
        write!(text, "(A;{flags};{access};;;{})", account(at + 8)).unwrap();
        at += number(at + 2, 2);
    }
    assert_eq!(at, bytes.len());
    text
}
