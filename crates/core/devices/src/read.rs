//! What a host reports, without decisions, and the interface through which it is read.

pub(crate) mod adapter;
pub(crate) mod copy_to_vm;
pub(crate) mod cordon;
pub(crate) mod driver_date;
pub(crate) mod driver_store_folder;
pub(crate) mod host;
pub(crate) mod node_software;
pub(crate) mod nvidia;
pub(crate) mod replica_id;
pub(crate) mod source;
pub(crate) mod telemetry;
