//! Logs, to standard error.

use std::io::IsTerminal;

use clap::{Args, ValueEnum};
use tracing_subscriber::filter::LevelFilter;

/// The options of every command that concern logs. They come after the command's own in
/// its help.
#[derive(Args, Debug, Clone)]
pub(crate) struct LogArguments {
    /// Log format
    #[arg(long, global = true, value_enum, value_name = "FORMAT", display_order = 1000)]
    #[arg(default_value_t = LogFormat::Text)]
    pub(crate) log_format: LogFormat,
    /// Minimum log level [default: info for serve, warn for other commands]
    #[arg(long, global = true, value_enum, value_name = "LEVEL", display_order = 1001)]
    pub(crate) log_level: Option<LogLevel>,
}

/// The id of the argument `--log-level`.
pub(crate) const LOG_LEVEL: &str = "log_level";

/// The format of log lines.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum LogFormat {
    /// Human-readable
    Text,
    /// One JSON object per line
    Json,
}

/// The minimum level of log lines.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum LogLevel {
    /// Errors only
    Error,
    /// Also conditions that an administrator should act on
    Warn,
    /// Also the steps of the daemon's life cycle
    Info,
    /// Also every call
    Debug,
    /// Everything
    Trace,
}

/// Starts logging as the options say, with the command's `default_level`.
pub(crate) fn start(arguments: &LogArguments, default_level: LogLevel) {
    let level = match arguments.log_level.unwrap_or(default_level) {
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
    // A subscriber that a test set earlier in this process stays.
    let _ = match arguments.log_format {
        LogFormat::Text => lines.try_init(),
        LogFormat::Json => lines.json().flatten_event(true).with_ansi(false).try_init(),
    };
}
