//! Recorded inventories as files, through the published functions alone.

mod format;
mod recorded_hosts;
mod recorded_source;
mod round_trip;
