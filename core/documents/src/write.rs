//! Structs into YAML, laid out for people.

use serde::Serialize;

/// Why a value cannot be written as YAML.
#[derive(Debug, thiserror::Error)]
#[error("the document cannot be written as YAML")]
pub struct WriteError(#[from] serde_saphyr::SerializeError);

/// Writes a YAML document that [`crate::parse()`] reads back.
pub fn to_yaml(value: &impl Serialize) -> Result<String, WriteError> {
    let options = serde_saphyr::ser_options! { prefer_block_scalars: false };
    Ok(serde_saphyr::to_string_with_options(value, options)?)
}
