//! Writes a program's messages to standard error.

use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use win32::threads::call_within;

/// How long the message may take. The reader of a pipe may have stopped reading, or a log writer
/// may block in a write to the same pipe, and a program that has failed must exit.
const LIMIT: Duration = Duration::from_millis(500);

/// Writes `text` to standard error. Errors are ignored: if standard error is closed, only the exit
/// status reports the failure. A terminal has no time limit, because users pause its output.
pub(crate) fn print(text: &str) {
    if io::stderr().is_terminal() {
        let _ = io::stderr().write_all(text.as_bytes());
    } else {
        write_within(LIMIT, io::stderr, text);
    }
}

/// Writes `text` on a separate thread and waits at most `limit` for it. After the limit, the text
/// is lost.
fn write_within<W: Write + 'static>(limit: Duration, out: fn() -> W, text: &str) {
    let message = text.to_owned();
    let _ = call_within(limit, move || out().write_all(message.as_bytes()));
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::thread;
    use std::time::Instant;

    use super::*;

    static WRITTEN: Mutex<Vec<u8>> = Mutex::new(Vec::new());

    struct Recorder;

    impl Write for Recorder {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            WRITTEN.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// A full pipe that nobody reads.
    struct FullPipe;

    impl Write for FullPipe {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            loop {
                thread::park();
            }
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn returns_when_the_text_is_written() {
        write_within(Duration::from_mins(1), || Recorder, "error: x\n");
        assert_eq!(*WRITTEN.lock().unwrap(), b"error: x\n");
    }

    #[test]
    fn gives_up_on_a_full_pipe() {
        let started = Instant::now();
        write_within(Duration::from_millis(50), || FullPipe, "error: x\n");
        assert!(started.elapsed() >= Duration::from_millis(50));
    }
}
