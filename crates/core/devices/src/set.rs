//! The device set: what is advertised at one moment.

pub(crate) mod device_set;
