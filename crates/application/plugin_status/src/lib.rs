//! What the daemons of a node report, how other programs of the node ask them, and the file that
//! tells the daemons which devices are out of service.

pub mod answering_daemons;
pub mod cordon_file;
pub mod plugin_client;
pub mod plugin_report;
mod registration;
pub mod status;
