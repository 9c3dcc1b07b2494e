//! Data from Windows: registry values, device properties, kernel paths, specifications of
//! containers.
//!
//! Driver installers and containerd write these, and Windows does not validate them.

use host::{CopyToVmKey, CopyToVmKind, CopyToVmValue};
use windows_report::copy_to_vm::{self, RawValue};
use windows_report::property::Property;
use windows_report::{container_specification, store_path, text};

/// Checks one input.
pub fn check(data: &[u8]) {
    let Some((kind, bytes)) = data.split_first() else { return };
    check_texts(bytes);
    check_properties(*kind, bytes);
    check_registry(*kind, bytes);
    check_paths(&text::single_for_display(bytes));
    check_containers(bytes);
}

fn check_containers(bytes: &[u8]) {
    if let Ok(Some(name)) = container_specification::parse(bytes) {
        let length = name.namespace.len() + name.pod.len() + name.container.len();
        assert!(length <= bytes.len());
    }
}

fn check_texts(bytes: &[u8]) {
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

fn check_properties(kind: u8, bytes: &[u8]) {
    let kinds = [0x07, 0x08, 0x09, 0x10, 0x12, 0x2012, u32::from(kind)];
    let kind = kinds[usize::from(kind) % kinds.len()];
    let property = Property { kind, data: bytes.to_vec() };
    let readable = [
        property.text().is_ok(),
        property.texts().is_ok(),
        property.number().is_ok(),
        property.luid().is_ok(),
    ];
    assert!(
        readable.iter().filter(|readable| **readable).count() <= 1,
        "readable as several types: {property:?}"
    );
}

fn check_registry(kind: u8, bytes: &[u8]) {
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
    assert_eq!(values.len() + unread.len(), count, "a value is neither read nor reported");
    for value in values.values() {
        let texts = match value {
            CopyToVmValue::Single(text) => std::slice::from_ref(text),
            CopyToVmValue::Multi(texts) => texts,
        };
        assert!(texts.iter().all(|text| !text.contains('\0')));
    }
}

fn check_paths(path: &str) {
    let absolute = store_path::absolute(path, r"C:\Windows");
    assert!(!absolute.ends_with('\\'));
    if let Some(folder) = store_path::parent(path) {
        assert!(path.starts_with(folder) && folder.len() > 2);
    }
    let names = [path.to_owned()];
    assert_eq!(store_path::folder_of_user_mode_drivers(&names), store_path::parent(path));
}
