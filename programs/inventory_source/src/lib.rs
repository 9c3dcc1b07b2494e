//! Files that are followed while they change, and an inventory file as a source of adapters.

mod file_poll;
mod source;

pub use file_poll::{FilePoll, INTERVAL};
pub use source::InventorySource;
