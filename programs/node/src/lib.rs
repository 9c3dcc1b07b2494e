//! What the programs of a node share.

pub mod cli;
#[cfg(feature = "daemon")]
pub mod daemon;
pub mod file_poll;
pub mod inventory_source;
