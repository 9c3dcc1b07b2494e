//! An inventory file as a source of adapters.
//!
//! [`InventorySource`] implements [`AdapterSource`](devices::AdapterSource) on any operating
//! system: each snapshot reads the file again, and the operating system reports changes of
//! the file, of symbolic links on the way to it, and of its folders. A file that is written
//! in place is read after it has stopped changing; one that is renamed into place, at once.

mod source;

pub use source::InventorySource;
