//! Text: names that Windows compares without case, paths, numbers, and what is safe to print.

pub(crate) mod case_folding;
pub(crate) mod error_chain;
pub mod file_values;
pub(crate) mod parse;
pub(crate) mod paths;
pub mod printable;
pub(crate) mod text_newtype;
