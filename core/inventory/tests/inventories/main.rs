//! Inventory files, through the public functions.

mod format;
mod recorded_hosts;
mod round_trip;
