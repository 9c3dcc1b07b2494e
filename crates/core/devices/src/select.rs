//! Selection: which adapters are devices, with their health and their runtime files.

pub(crate) mod device;
pub(crate) mod filter;
pub(crate) mod not_advertised;
pub(crate) mod runtime_files;
pub(crate) mod selection;
