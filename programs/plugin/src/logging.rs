//! Logs, to standard error.

use std::io::IsTerminal;

use tracing_subscriber::filter::LevelFilter;

use crate::flags::{LogFormat, LogLevel, Logs};

/// Starts logging as the flags say.
pub(crate) fn start(logs: &Logs) {
    let level = match logs.log_level {
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
        LogLevel::Trace => LevelFilter::TRACE,
    };
    let colour = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    let lines = tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_max_level(level)
        .with_ansi(colour);
    // A subscriber set earlier in this process stays; only tests do that.
    let _ = match logs.log_format {
        LogFormat::Text => lines.try_init(),
        LogFormat::Json => lines.json().flatten_event(true).with_ansi(false).try_init(),
    };
}
