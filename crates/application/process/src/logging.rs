//! Logs, to standard error or a file.

mod file;
mod line;
mod output;
mod repeated;
#[cfg(any(test, feature = "test_log"))]
#[allow(clippy::unwrap_used, reason = "a test that cannot set up should panic")]
pub mod test_log;

use std::io;
use std::panic::PanicHookInfo;
use std::path::PathBuf;

use anstream::{AutoStream, ColorChoice};
use clap::{Args, ValueEnum};
use tracing::Subscriber;
use tracing_subscriber::field::MakeExt;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::fmt::format::debug_fn;

use crate::ProcessError;
use crate::logging::file::LogFile;
use crate::logging::line::{JsonLines, Messages, write_field};
use crate::logging::output::{LogFlush, LogQueue};

pub use output::dropped_lines;
pub use repeated::Repeated;

/// The options of every command that concern logs. They come after the command's own in
/// its help.
#[derive(Args, Debug, Clone)]
pub struct LogArguments {
    /// Log format
    #[arg(long, global = true, value_enum, value_name = "FORMAT", display_order = 1000)]
    #[arg(default_value_t = LogFormat::Text)]
    pub log_format: LogFormat,
    /// Minimum log level [default: info for a daemon, warn for other commands]
    #[arg(long, global = true, value_enum, value_name = "LEVEL", display_order = 1001)]
    pub log_level: Option<LogLevel>,
}

/// The format of log lines.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum LogFormat {
    /// Human-readable
    Text,
    /// One JSON object per line
    Json,
}

/// The minimum level of log lines.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum LogLevel {
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

/// Where log lines go.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LogDestination {
    /// Lines go to standard error, for commands that print a result: as messages without a time,
    /// each warning once. The thread that logs waits for a slow reader, so that all lines come
    /// before the result.
    Stderr,
    /// Lines go to standard error through a queue: for the daemon, which must not wait.
    QueuedStderr,
    /// Lines go to a file through a queue.
    File(PathBuf),
}

/// Starts logging as the options say. Keep the result until the program ends: dropping it writes
/// the lines that are still queued.
///
/// # Errors
/// The log file cannot be opened, or the operating system cannot start a thread.
pub fn start(
    arguments: &LogArguments,
    destination: &LogDestination,
) -> Result<Option<LogFlush>, ProcessError> {
    // Commands that print a result log only problems.
    let (default, text) = match destination {
        LogDestination::Stderr => (LogLevel::Warn, Lines::Messages),
        LogDestination::QueuedStderr | LogDestination::File(_) => (LogLevel::Info, Lines::Text),
    };
    let level = arguments.log_level.unwrap_or(default);
    let lines = if arguments.log_format == LogFormat::Json { Lines::Json } else { text };
    match destination {
        LogDestination::Stderr => {
            set_subscriber(subscriber(lines, level, stderr_has_colors(), io::stderr));
            Ok(None)
        }
        LogDestination::QueuedStderr => {
            start_queue(lines, level, stderr_has_colors(), io::stderr()).map(Some)
        }
        LogDestination::File(path) => {
            let file = LogFile::open(path)
                .map_err(|source| ProcessError::LogFile { path: path.clone(), source })?;
            start_queue(lines, level, false, file).map(Some)
        }
    }
}

/// Whether standard error shows colors. On Windows, asking enables them for the console.
fn stderr_has_colors() -> bool {
    AutoStream::auto(io::stderr()).current_choice() == ColorChoice::AlwaysAnsi
}

fn start_queue(
    lines: Lines,
    level: LogLevel,
    colors: bool,
    out: impl io::Write + Send + 'static,
) -> Result<LogFlush, ProcessError> {
    let (queue, flush) = LogQueue::start(out)
        .map_err(|source| ProcessError::System { what: "start the log writer", source })?;
    // The default hook writes to standard error itself, and waits for a slow reader.
    std::panic::set_hook(Box::new(log_panic));
    set_subscriber(subscriber(lines, level, colors, move || queue.clone()));
    Ok(flush)
}

fn set_subscriber(subscriber: Box<dyn Subscriber + Send + Sync>) {
    // The call fails if a test has set a subscriber in this process, which then stays.
    let _ = tracing::subscriber::set_global_default(subscriber);
}

/// The form of log lines.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lines {
    /// Messages of a command, such as `warning: …`.
    Messages,
    /// Time, level, target, text and fields.
    Text,
    /// One JSON object per line.
    Json,
}

pub(crate) fn subscriber<W>(
    lines: Lines,
    level: LogLevel,
    colors: bool,
    writer: W,
) -> Box<dyn Subscriber + Send + Sync>
where
    W: for<'w> MakeWriter<'w> + Send + Sync + 'static,
{
    let level = match level {
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
        LogLevel::Trace => LevelFilter::TRACE,
    };
    let builder = tracing_subscriber::fmt()
        .with_writer(writer)
        .with_max_level(level)
        .with_ansi(colors && lines != Lines::Json)
        // Without this setting, a failed write goes to `eprintln!`, which panics when it fails too.
        .log_internal_errors(false)
        .fmt_fields(debug_fn(write_field).delimited(" "));
    match lines {
        Lines::Messages => Box::new(builder.event_format(Messages::default()).finish()),
        Lines::Text => Box::new(builder.finish()),
        Lines::Json => Box::new(builder.event_format(JsonLines).finish()),
    }
}

fn log_panic(panic: &PanicHookInfo<'_>) {
    let text = panic.payload_as_str().unwrap_or("unknown");
    let location = panic.location().map(ToString::to_string);
    tracing::error!(panic = text, location, "panicked");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::logging::test_log::Log;

    #[test]
    fn a_panic_is_one_log_line() {
        let log = Log::start();
        // The hook for panics is that of all threads: another test may panic on purpose.
        let default = std::panic::take_hook();
        std::panic::set_hook(Box::new(log_panic));
        let panicked = std::panic::catch_unwind(|| panic!("on {}", "purpose"));
        std::panic::set_hook(default);
        panicked.unwrap_err();
        let lines = log.text();
        assert_eq!(lines.lines().count(), 1, "{lines}");
        for part in ["panicked", "on purpose", "logging.rs:"] {
            assert!(lines.contains(part), "{lines}");
        }
    }
}
