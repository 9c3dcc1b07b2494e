//! An inventory file as a source of adapters.
//!
//! [`InventorySource`] implements [`AdapterSource`](devices::AdapterSource) on any operating
//! system: each snapshot reads the file again, and the operating system reports changes of
//! the file, of symbolic links on the way to it, and of its folders.

mod source;
mod symlinks;
mod watch;

pub use source::InventorySource;
