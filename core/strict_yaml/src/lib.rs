//! YAML and JSON documents read strictly, every error naming file, line and key.
//!
//! In comes a document's bytes and the name to call it by; out comes a tree whose
//! accessors either give the type asked for or a [`ReadError`] such as
//! `host.yaml:12: adapters[0].luid: expected a signed 64-bit number, found the text "abc"`.
//! What other readers let pass is refused here: duplicate and unknown keys, a
//! second document, tags, a number in quotes where a number is wanted.
//!
//! ```
//! use strict_yaml::{Document, KeyCase};
//!
//! let document = Document::parse("pets.yaml", "name: Rex\nlegs: 4\n")?;
//! let mut pet = document.root().mapping(KeyCase::Exact)?;
//! let name = pet.require("name")?.text()?;
//! let legs = pet.take("legs").map(|n| n.integer(0..=8)).transpose()?;
//! pet.finish()?; // refuses every key that was not asked for
//! assert_eq!((name, legs), ("Rex", Some(4)));
//! # Ok::<(), strict_yaml::ReadError>(())
//! ```
//!
//! Text fields take a plain number by its spelling (`build: 10.0.20348.1547`,
//! `displayVersion: 1809`), since people forget the quotes; `true`, `null` and
//! nothing at all are no text. A JSON document is any that begins with `{` or `[`
//! and is valid JSON; everything else is YAML 1.2.

mod closest;
mod decode;
mod document;
mod error;
mod json;
mod mapping;
mod number;
mod tree;
mod yaml;

pub use closest::closest;
pub use decode::{decode, read_bytes};
pub use document::{Document, Kind, Node};
pub use error::{Place, ReadError};
pub use mapping::{KeyCase, Mapping};
pub use number::Integer;
pub use tree::{MAX_BYTES, MAX_DEPTH, MAX_NODES};
