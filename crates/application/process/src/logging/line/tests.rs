//! Lines with text from elsewhere.

use std::io::Write;
use std::sync::{Arc, Mutex};

use tracing_subscriber::fmt::MakeWriter;

use super::*;
use crate::logging::{Lines, LogLevel, subscriber};

/// A log that a test reads.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for Log {
    type Writer = Log;

    fn make_writer(&self) -> Log {
        self.clone()
    }
}

/// What `log` writes.
fn logged(lines: Lines, colors: bool, log: impl FnOnce()) -> String {
    crate::logging::test_log::keep_lines_on();
    let out = Log::default();
    let subscriber = subscriber(lines, LogLevel::Debug, colors, out.clone());
    tracing::subscriber::with_default(subscriber, log);
    String::from_utf8(out.0.lock().unwrap().clone()).unwrap()
}

/// Every control and bidirectional character, and a long tail.
fn hostile() -> String {
    let all = ('\0'..='\u{ffff}').chain(['\u{e0041}']);
    all.filter(|c| host::printable::is_unsafe(*c))
        .chain(std::iter::repeat_n('x', 100_000))
        .collect()
}

#[test]
fn foreign_text_cannot_leave_its_field() {
    for lines in [Lines::Messages, Lines::Text, Lines::Json] {
        let text = logged(lines, false, || {
            let value = hostile();
            tracing::warn!(%value, ?value, text = value.as_str(), "{value}");
        });
        let line = text.strip_suffix('\n').unwrap();
        assert!(!line.chars().any(host::printable::is_unsafe), "{line:?}");
        assert!(line.len() < 8 * host::printable::VALUE_LIMIT, "{} bytes", line.len());
    }
}

#[test]
fn both_formats_have_the_fields_of_the_event() {
    let log =
        || tracing::info!(count = 3, ratio = 0.5, on = true, name = "a b", path = %"c", "done");
    let text = logged(Lines::Text, false, log);
    let fields =
        r#" INFO process::logging::line::tests: done count=3 ratio=0.5 on=true name="a b" path=c"#;
    assert!(text.trim_end().ends_with(fields), "{text}");
    let colored = logged(Lines::Text, true, log);
    assert!(colored.contains("\x1b[3mcount\x1b[0m"), "{colored:?}");
    let json: Value = serde_json::from_str(&logged(Lines::Json, false, log)).unwrap();
    let time = &json["timestamp"];
    assert!(time.as_str().unwrap().ends_with('Z'), "{json}");
    let expected = serde_json::json!({
        "timestamp": time, "level": "INFO", "target": "process::logging::line::tests",
        "message": "done", "count": 3, "ratio": 0.5, "on": true, "name": "a b", "path": "c",
    });
    assert_eq!(json, expected);
}

#[test]
fn a_command_writes_each_warning_once_without_the_time() {
    let text = logged(Lines::Messages, false, || {
        for n in [1, 2, 1] {
            tracing::warn!(n, "a key has no effect");
            tracing::info!(n, "read");
        }
        tracing::error!("cannot continue");
    });
    assert_eq!(
        text,
        "warning: a key has no effect n=1\ninfo: read n=1\nwarning: a key has no effect n=2\n\
         info: read n=2\ninfo: read n=1\nerror: cannot continue\n"
    );
    let colored = logged(Lines::Messages, true, || tracing::warn!("a key has no effect"));
    assert_eq!(colored, "\u{1b}[33mwarning\u{1b}[0m: a key has no effect\n");
}
