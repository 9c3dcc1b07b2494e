//! A Kubernetes object where a file is expected that one of its keys may contain.

use host::printable::printable;
use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::values::Entries;
use crate::{ReadError, document};

/// The keys by which an object is recognized.
#[derive(Deserialize)]
struct KubernetesObject {
    #[serde(rename = "apiVersion")]
    _api_version: IgnoredAny,
    kind: String,
    data: Option<Entries<String, IgnoredAny>>,
}

/// How many keys of an object an error names.
const MOST_KEYS: usize = 5;

/// The section of a `ConfigMap` that has files.
#[derive(Deserialize)]
struct DataSection {
    data: Entries<String, String>,
}

/// The error about a file that is a whole Kubernetes object, such as a `ConfigMap`, or its section
/// `data`, and not `what`: a configuration or an inventory.
pub(crate) fn recognize(
    error: &ReadError,
    name: &str,
    bytes: &[u8],
    what: &str,
) -> Option<ReadError> {
    let unknown = error.unknown_key().filter(|_| error.path.is_empty())?;
    let object: Option<KubernetesObject> = document::parse(name, bytes).ok();
    if object.is_none() && unknown != "apiVersion" {
        let keys = keys_of_data(unknown, name, bytes)?;
        let hint = save_text(&keys.iter().collect::<Vec<_>>(), what);
        let what =
            format!("{}: this is the section `data` of a ConfigMap, not the {what}", error.what);
        return Some(ReadError { what, ..error.clone() }.with_hint(hint));
    }
    let data = object.iter().filter_map(|object| object.data.as_ref());
    let keys: Vec<&String> = data.flat_map(|data| data.0.keys()).collect();
    let hint = save_text(&keys, what);
    let kind = object.map(|object| format!(" ({})", printable(&object.kind))).unwrap_or_default();
    let what = format!("{}: this is a Kubernetes object{kind}, not the {what}", error.what);
    Some(ReadError { what, ..error.clone() }.with_hint(hint))
}

/// The keys of a section `data`, with its name or without, in which `unknown` is a key.
fn keys_of_data(unknown: &str, name: &str, bytes: &[u8]) -> Option<Vec<String>> {
    let section = document::parse::<DataSection>(name, bytes).ok();
    let entries = match section.filter(|_| ["data", "metadata"].contains(&unknown)) {
        Some(section) => section.data,
        // The text of a file has several lines.
        None => document::parse::<Entries<String, String>>(name, bytes)
            .ok()
            .filter(|entries| entries.0.get(unknown).is_some_and(|text| text.contains('\n')))?,
    };
    Some(entries.0.into_keys().collect())
}

/// What to do with a `ConfigMap` that has these keys.
fn save_text(keys: &[&String], what: &str) -> String {
    match keys {
        [] => format!(
            "the {what} is the text of one key of a ConfigMap: mount the ConfigMap and name the \
             file of its key, or save the text below `data.<key>` as the file"
        ),
        [key] => {
            let key = printable(key);
            format!(
                "mount the object and name the file of its key, `{key}`, or save the text below \
                 `data.{key}` as the file"
            )
        }
        several => {
            let some = several.iter().take(MOST_KEYS).map(|key| format!("`{}`", printable(key)));
            let some = some.collect::<Vec<_>>().join(", ");
            format!(
                "mount the object and name the file of one of its keys, such as {some}, or save \
                 the text below `data.<key>` as the file"
            )
        }
    }
}
