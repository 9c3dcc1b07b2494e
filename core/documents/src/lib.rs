//! YAML and JSON files read into typed structs, every error naming file, line and key.
//!
//! `serde-saphyr` parses (JSON is a subset of YAML 1.2), serde's derive checks the keys,
//! and the scalar types of this crate check values: they never convert silently, as a
//! plain `0x10` into the text `16`. What goes in is a file's bytes and its name; what comes
//! out is the struct, or a [`ReadError`] such as
//! `host.yaml:12: adapters[0].luid: expected a signed 64-bit number, found the text "abc"`.
//!
//! ```
//! use documents::{Text, Whole, parse};
//!
//! #[derive(serde::Deserialize)]
//! #[serde(deny_unknown_fields)]
//! struct Pet {
//!     name: Text,
//!     legs: Option<Whole<u8, 0, 8>>,
//! }
//!
//! let pet: Pet = parse("pets.yaml", b"name: Rex\nlegs: 4\n")?;
//! assert_eq!((pet.name.0.as_str(), pet.legs.map(|legs| legs.0)), ("Rex", Some(4)));
//! # Ok::<(), documents::ReadError>(())
//! ```

mod bytes;
mod closest;
mod entries;
mod error;
mod keys;
mod message;
mod node;
mod parse;
mod regular_file;
mod scalar;
mod spanned;
mod text_or_list;
mod value;
mod write;

pub use bytes::{MAX_BYTES, text};
pub use closest::closest;
pub use entries::Entries;
pub use error::{Place, ReadError};
pub use keys::AnyCase;
pub use parse::{MAX_DEPTH, MAX_VALUES, parse};
pub use regular_file::{FileKind, read_bytes, read_hint};
pub use scalar::{
    Advice, Flag, LenientFlag, LenientWhole, Names, NoAdvice, NonEmpty, OneOf, Parsed, Text, Whole,
    write_hex,
};
pub use serde_saphyr::FlowSeq;
pub use spanned::Spanned;
pub use text_or_list::{TextOrEntries, TextOrList, present};
pub use write::{WriteError, to_yaml};
