//! What Windows keeps for others: registry values, device properties, kernel paths.
//!
//! Only a driver's installer writes these, and nobody checks what. The modules are
//! `win32`'s own, taken by their files: on other systems that crate leaves them out.

#![no_main]
#![allow(dead_code, reason = "the modules offer more than is called here")]

#[path = "../../../windows/win32/src/copy_to_vm.rs"]
mod copy_to_vm;
#[path = "../../../windows/win32/src/property.rs"]
mod property;
#[path = "../../../windows/win32/src/store_path.rs"]
mod store_path;
#[path = "../../../windows/win32/src/text.rs"]
mod text;

use copy_to_vm::RawValue;
use devices::{CopyToVmKey, CopyToVmKind, CopyToVmValue};
use libfuzzer_sys::fuzz_target;
use property::Property;

fuzz_target!(|data: &[u8]| {
    let Some((kind, bytes)) = data.split_first() else { return };
    texts(bytes);
    properties(*kind, bytes);
    registry(*kind, bytes);
    paths(&text::single_for_display(bytes));
});

fn texts(bytes: &[u8]) {
    let shown = text::single_for_display(bytes);
    assert!(!shown.contains('\0'));
    if let Ok(text) = text::single(bytes) {
        assert_eq!(text, shown);
    }
    if let Ok(list) = text::list(bytes) {
        assert!(list.iter().all(|text| !text.is_empty() && !text.contains('\0')));
        assert_eq!(list.first().map_or("", String::as_str), shown);
    }
    assert!(!text::utf8_for_display(bytes).contains('\0'));
}

fn properties(kind: u8, bytes: &[u8]) {
    let kinds = [0x07, 0x08, 0x09, 0x10, 0x12, 0x2012, u32::from(kind)];
    let kind = kinds[usize::from(kind) % kinds.len()];
    let property = Property { kind, data: bytes.to_vec() };
    let told = [
        property.text().is_ok(),
        property.texts().is_ok(),
        property.number().is_ok(),
        property.luid().is_ok(),
    ];
    assert!(told.iter().filter(|told| **told).count() <= 1, "two types at once: {property:?}");
}

fn registry(kind: u8, bytes: &[u8]) {
    let key = CopyToVmKey { kind: CopyToVmKind::Overwrite, subkey: None };
    let raw: Vec<RawValue> = bytes
        .chunks(16)
        .enumerate()
        .map(|(n, data)| RawValue {
            name: n.to_string(),
            kind: if n % 3 == 2 { kind.into() } else { [1, 7][n % 2] },
            data: data.to_vec(),
        })
        .collect();
    let count = raw.len();
    let mut unread = Vec::new();
    let values = copy_to_vm::values(&key, raw, &mut unread);
    assert_eq!(values.len() + unread.len(), count, "a value is neither read nor told");
    for value in values.values() {
        let texts = match value {
            CopyToVmValue::Single(text) => std::slice::from_ref(text),
            CopyToVmValue::Multi(texts) => texts,
        };
        assert!(texts.iter().all(|text| !text.contains('\0')));
    }
}

fn paths(path: &str) {
    let absolute = store_path::absolute(path, r"C:\Windows");
    assert!(!absolute.ends_with('\\'));
    if let Some(folder) = store_path::parent(path) {
        assert!(path.starts_with(folder) && folder.len() > 2);
    }
    let names = [path.to_owned()];
    assert_eq!(store_path::folder_of_user_mode_drivers(&names), store_path::parent(path));
}
