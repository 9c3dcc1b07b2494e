//! The format of log lines.
//!
//! Fields may hold text from elsewhere: IDs from clients, messages of a kubelet, names from
//! an inventory. Each value is made printable and its length is limited, so that one line
//! stays one line of reasonable length, in both formats. Lines that repeat too often are
//! left out; see [`crate::log_pacing`].

use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use devices::printable::printable_display;
use serde_json::{Map, Value};
use tracing::callsite::Identifier;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::fmt::FmtContext;
use tracing_subscriber::fmt::format::{Format, FormatEvent, FormatFields, Writer};
use tracing_subscriber::fmt::time::{FormatTime, SystemTime};
use tracing_subscriber::registry::LookupSpan;

use crate::log_pacing::{Missing, Pacing};

/// The name of the field that holds the text of an event.
const MESSAGE: &str = "message";

/// Formats events as lines.
pub(crate) struct LogLines {
    syntax: Syntax,
    started: Instant,
    pacing: Mutex<Pacing<Identifier>>,
}

/// How a line is written.
pub(crate) enum Syntax {
    /// As `tracing-subscriber` does by default.
    Text,
    /// One JSON object: `timestamp`, `level`, the fields, and `target`.
    Json,
}

impl LogLines {
    pub(crate) fn new(syntax: Syntax) -> Self {
        LogLines { syntax, started: Instant::now(), pacing: Mutex::new(Pacing::new()) }
    }

    /// The lines that are missing before the line of `event`; `None` if it is suppressed.
    fn admit(&self, event: &Event<'_>) -> Option<Vec<Missing>> {
        let metadata = event.metadata();
        // Whoever asks for the other levels wants every line.
        if *metadata.level() > Level::INFO {
            return Some(Vec::new());
        }
        let mut pacing = self.pacing.lock().unwrap_or_else(PoisonError::into_inner);
        pacing.admit(metadata.callsite(), self.started.elapsed(), || message(event))
    }

    fn report(&self, writer: &mut Writer<'_>, target: &str, missing: Missing) -> fmt::Result {
        const TEXT: &str = "log lines suppressed";
        let Missing { count, message } = missing;
        match self.syntax {
            Syntax::Text => {
                SystemTime.format_time(writer)?;
                writeln!(writer, "  WARN {target}: {TEXT} count={count} text={message:?}")
            }
            Syntax::Json => {
                let mut fields = JsonFields::default();
                fields.add(MESSAGE, TEXT);
                fields.add("count", count);
                fields.add("text", message);
                fields.write(writer, Level::WARN, target)
            }
        }
    }
}

impl<S, N> FormatEvent<S, N> for LogLines
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        // Nothing is written for an empty line.
        let Some(missing) = self.admit(event) else { return Ok(()) };
        let metadata = event.metadata();
        for missing in missing {
            self.report(&mut writer, metadata.target(), missing)?;
        }
        match self.syntax {
            Syntax::Text => {
                let ansi = writer.has_ansi_escapes();
                Format::default().with_ansi(ansi).format_event(context, writer, event)
            }
            Syntax::Json => {
                let mut fields = JsonFields::default();
                event.record(&mut fields);
                fields.write(&mut writer, *metadata.level(), metadata.target())
            }
        }
    }
}

/// Writes one field of a line of text: the message as it is, others as `name=value`.
pub(crate) fn write_field(
    writer: &mut Writer<'_>,
    field: &Field,
    value: &dyn fmt::Debug,
) -> fmt::Result {
    let value = printable_display(format_args!("{value:?}"));
    match field.name() {
        MESSAGE => writer.write_str(&value),
        name if writer.has_ansi_escapes() => {
            write!(writer, "\x1b[3m{name}\x1b[0m\x1b[2m=\x1b[0m{value}")
        }
        name => write!(writer, "{name}={value}"),
    }
}

/// The message of an event, as printable text.
fn message(event: &Event<'_>) -> String {
    let mut fields = JsonFields::default();
    event.record(&mut fields);
    fields.0.get(MESSAGE).and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// The fields of an event as JSON values.
#[derive(Default)]
struct JsonFields(Map<String, Value>);

impl JsonFields {
    fn add(&mut self, name: &str, value: impl Into<Value>) {
        self.0.insert(name.to_owned(), value.into());
    }

    fn write(mut self, writer: &mut Writer<'_>, level: Level, target: &str) -> fmt::Result {
        let mut timestamp = String::new();
        SystemTime.format_time(&mut Writer::new(&mut timestamp))?;
        self.add("timestamp", timestamp);
        self.add("level", level.as_str());
        self.add("target", target);
        writeln!(writer, "{}", Value::Object(self.0))
    }
}

impl Visit for JsonFields {
    fn record_f64(&mut self, field: &Field, value: f64) {
        self.add(field.name(), value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.add(field.name(), value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.add(field.name(), value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.add(field.name(), value);
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.add(field.name(), printable_display(value));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.add(field.name(), printable_display(format_args!("{value:?}")));
    }
}

#[cfg(test)]
mod tests;
