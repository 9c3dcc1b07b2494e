//! The format of log lines.
//!
//! Fields may hold text from elsewhere: IDs from clients, messages of a kubelet, names from
//! an inventory. Each value is made printable and its length is limited, so that one line
//! stays one line of reasonable length, in both formats.

use std::collections::HashSet;
use std::fmt;
use std::sync::{Mutex, PoisonError};

use command_line::verdict::{BAD, GOOD, UNKNOWN, WARNING};
use host::printable::printable_display;
use serde_json::{Map, Value};
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::fmt::FmtContext;
use tracing_subscriber::fmt::format::{FormatEvent, FormatFields, Writer};
use tracing_subscriber::fmt::time::{FormatTime, SystemTime};
use tracing_subscriber::registry::LookupSpan;

/// The name of the field that holds the text of an event.
const MESSAGE: &str = "message";

/// Formats an event as a message of a command: `warning: text name=value`. A warning or an error is
/// written only once.
#[derive(Default)]
pub(crate) struct Messages(Mutex<HashSet<String>>);

impl<S, N> FormatEvent<S, N> for Messages
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
        let mut text = String::new();
        context.field_format().format_fields(Writer::new(&mut text), event)?;
        let (style, name) = match *event.metadata().level() {
            Level::ERROR => (BAD, "error"),
            Level::WARN => (WARNING, "warning"),
            Level::INFO => (GOOD, "info"),
            Level::DEBUG => (UNKNOWN, "debug"),
            Level::TRACE => (UNKNOWN, "trace"),
        };
        let is_warning = *event.metadata().level() <= Level::WARN;
        let mut written = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if is_warning && !written.insert(text.clone()) {
            return Ok(());
        }
        if writer.has_ansi_escapes() {
            writeln!(writer, "{style}{name}{style:#}: {text}")
        } else {
            writeln!(writer, "{name}: {text}")
        }
    }
}

/// Formats an event as one JSON object: `timestamp`, `level`, the fields, and `target`.
pub(crate) struct JsonLines;

impl<S, N> FormatEvent<S, N> for JsonLines
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        _context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let mut fields = JsonFields::default();
        event.record(&mut fields);
        let mut timestamp = String::new();
        SystemTime.format_time(&mut Writer::new(&mut timestamp))?;
        fields.add("timestamp", timestamp);
        fields.add("level", event.metadata().level().as_str());
        fields.add("target", event.metadata().target());
        writeln!(writer, "{}", Value::Object(fields.0))
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

/// The fields of an event as JSON values.
#[derive(Default)]
struct JsonFields(Map<String, Value>);

impl JsonFields {
    fn add(&mut self, name: &str, value: impl Into<Value>) {
        self.0.insert(name.to_owned(), value.into());
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
