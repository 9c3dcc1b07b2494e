//! For programs that follow a host and a configuration until they are shut down.
//!
//! Every part of a host may hang, so each is read on a separate thread. A log that nothing reads does
//! not stop its program.

pub mod adapter_reader;
pub mod arguments;
pub mod background_query;
pub mod change_log;
pub mod config_reload;
pub mod config_source;
mod config_watch;
pub mod event_loop;
pub mod gpu_uuids;
pub mod hcs_schemas;
pub mod host_access;
pub mod latest_answer;
mod log_file;
mod log_line;
pub mod log_output;
pub mod logging;
pub mod read_schedule;
pub mod signals;
#[cfg(any(test, feature = "test_log"))]
#[allow(clippy::unwrap_used, reason = "a test that cannot set up should panic")]
pub mod test_log;
