//! A log that a test reads.

use std::io::Write;
use std::sync::{Arc, Mutex, OnceLock};

use tracing::Dispatch;
use tracing::subscriber::{DefaultGuard, NoSubscriber};

/// The lines that this thread logs while the value exists.
pub struct Log {
    lines: Lines,
    _guard: DefaultGuard,
}

#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl Log {
    /// Begins to collect.
    #[must_use]
    pub fn start() -> Log {
        keep_lines_on();
        let lines = Lines::default();
        let writer = lines.clone();
        let subscriber =
            tracing_subscriber::fmt().with_ansi(false).with_writer(move || writer.clone());
        Log { lines, _guard: tracing::subscriber::set_default(subscriber.finish()) }
    }

    /// What was logged so far.
    ///
    /// # Panics
    /// A line is not UTF-8.
    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8(self.lines.0.lock().unwrap().clone()).unwrap()
    }
}

/// Lets every thread log to its own subscriber. While there is only one subscriber, a line that
/// another thread logs first is off for every thread if that other thread has no subscriber.
pub(crate) fn keep_lines_on() {
    static SECOND: OnceLock<Dispatch> = OnceLock::new();
    SECOND.get_or_init(|| Dispatch::new(NoSubscriber::default()));
}

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
