//! Video encoders of the vendors, through the interfaces of their drivers.

pub(super) mod amf;
pub(super) mod nvenc;
pub(super) mod qsv;

mod structure;
