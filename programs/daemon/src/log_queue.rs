//! The log lines of the daemon: a bounded queue, and the thread that writes it.
//!
//! A write to a pipe blocks while the pipe is full, for example while containerd is down and
//! nothing reads the logs of its containers. A write fails if the reader is gone or the disk is
//! full. Neither may stop the daemon, so threads that log only add to the queue. A line that does
//! not fit or cannot be written is dropped and counted, and a log line reports the count where
//! the lines are missing.
//!
//! `tracing-appender` has such a queue too. It limits the number of lines and not their size, and
//! does not count the lines that it fails to write.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// The largest size of the queue in bytes. The memory of the daemon must not grow while nothing
/// reads its log.
const QUEUE_BYTES: usize = 1024 * 1024;

/// What a queued line takes in addition to its text: its entry, and what the allocator adds.
const ENTRY_BYTES: usize = 64;

/// The largest size of a line in bytes; the rest is cut off. containerd splits longer lines than
/// 16 KiB.
const LINE_BYTES: usize = 64 * 1024;

/// The end of a line that was cut off.
const CUT: &[u8] = b" [line cut off]\n";

/// How long the end of the program waits until the queue is written. See `kubelet::run` for the
/// time that the rest of the shutdown may take.
const FLUSH_LIMIT: Duration = Duration::from_secs(1);

/// The writer thread needs little more than one line.
const STACK_BYTES: usize = 256 * 1024;

/// Dropped lines of this process.
static DROPPED: AtomicU64 = AtomicU64::new(0);

/// How many log lines this process has dropped so far.
pub fn dropped_lines() -> u64 {
    DROPPED.load(Ordering::Relaxed)
}

/// Returns the line that reports how many lines are missing.
pub type DropReport = Box<dyn Fn(u64) -> Vec<u8> + Send>;

/// Log lines that wait for the writer thread. Each call of `write` adds one line.
#[derive(Default)]
pub struct LogQueue {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    lines: VecDeque<QueuedLine>,
    bytes: usize,
    /// How many lines are missing after the last line of the queue.
    missing: u64,
    phase: Phase,
}

struct QueuedLine {
    text: Box<[u8]>,
    /// How many lines are missing directly before this one.
    missing_before: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Default)]
enum Phase {
    #[default]
    Open,
    /// The program ends: the writer thread writes what is queued and ends.
    Closing,
    /// The writer thread has ended.
    Closed,
}

/// What the writer thread writes next.
struct Next {
    missing: u64,
    /// `None` if lines are missing and none followed.
    line: Option<Box<[u8]>>,
}

/// Closes the queue when dropped, and waits for a limited time until it is written.
pub struct LogFlush {
    queue: Arc<LogQueue>,
    /// `None` after it was joined.
    writer: Option<JoinHandle<()>>,
    limit: Duration,
}

impl LogQueue {
    /// Starts the thread that writes the queue to `out`.
    ///
    /// # Errors
    /// The operating system cannot start a thread.
    pub fn start(
        out: impl Write + Send + 'static,
        report: DropReport,
    ) -> io::Result<(Arc<LogQueue>, LogFlush)> {
        let queue = Arc::<LogQueue>::default();
        let written = Arc::clone(&queue);
        let writer = thread::Builder::new()
            .name("log writer".to_owned())
            .stack_size(STACK_BYTES)
            .spawn(move || write_queue(&written, &mut LineWriter::new(out), &report))?;
        let flush =
            LogFlush { queue: Arc::clone(&queue), writer: Some(writer), limit: FLUSH_LIMIT };
        Ok((queue, flush))
    }

    fn add(&self, line: &[u8]) {
        let text = limited(line);
        let size = text.len() + ENTRY_BYTES;
        let mut state = self.lock();
        if state.bytes + size > QUEUE_BYTES {
            state.missing += 1;
            DROPPED.fetch_add(1, Ordering::Relaxed);
        } else {
            let missing_before = std::mem::take(&mut state.missing);
            state.bytes += size;
            state.lines.push_back(QueuedLine { text, missing_before });
        }
        drop(state);
        self.changed.notify_all();
    }

    /// Waits for something to write. `None` when the queue is closing and empty.
    fn next(&self) -> Option<Next> {
        let idle = |s: &mut State| s.lines.is_empty() && s.missing == 0 && s.phase == Phase::Open;
        let state = self.changed.wait_while(self.lock(), idle);
        let mut state = state.unwrap_or_else(PoisonError::into_inner);
        if let Some(QueuedLine { text, missing_before }) = state.lines.pop_front() {
            state.bytes -= text.len() + ENTRY_BYTES;
            return Some(Next { missing: missing_before, line: Some(text) });
        }
        match std::mem::take(&mut state.missing) {
            0 => None,
            missing => Some(Next { missing, line: None }),
        }
    }

    fn set_phase(&self, phase: Phase) {
        self.lock().phase = phase;
        self.changed.notify_all();
    }

    /// No code that holds the lock can leave the state inconsistent.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// `line`, cut off at [`LINE_BYTES`].
fn limited(line: &[u8]) -> Box<[u8]> {
    if line.len() <= LINE_BYTES {
        return line.into();
    }
    // A cut within a character is harmless: readers of logs replace invalid UTF-8.
    [&line[..LINE_BYTES - CUT.len()], CUT].concat().into()
}

impl Write for &LogQueue {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.add(line);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for LogFlush {
    fn drop(&mut self) {
        self.queue.set_phase(Phase::Closing);
        let writing = |state: &mut State| state.phase != Phase::Closed;
        let queue = &self.queue;
        // Lines that are not written in time are lost.
        let waited = queue.changed.wait_timeout_while(queue.lock(), self.limit, writing);
        let closed = waited.is_ok_and(|(state, _)| state.phase == Phase::Closed);
        if closed && let Some(writer) = self.writer.take() {
            // The process exits next. Wine loses the exit status if a thread ends at that moment.
            let _ = writer.join();
        }
    }
}

fn write_queue(queue: &LogQueue, out: &mut LineWriter<impl Write>, report: &DropReport) {
    let mut missing = 0;
    while let Some(next) = queue.next() {
        missing += next.missing;
        if missing > 0 && out.write_line(&report(missing)).is_ok() {
            missing = 0;
        }
        let Some(line) = next.line else { continue };
        // Where the report cannot be written, the line cannot be written either.
        if missing > 0 || out.write_line(&line).is_err() {
            missing += 1;
            DROPPED.fetch_add(1, Ordering::Relaxed);
        }
    }
    if missing > 0 {
        // Ignored: no output is left for the error.
        let _ = out.write_line(&report(missing));
    }
    queue.set_phase(Phase::Closed);
}

/// Writes whole lines. A line that was written in part is ended before the next one.
struct LineWriter<W> {
    out: W,
    position: Position,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Position {
    StartOfLine,
    WithinLine,
}

impl<W: Write> LineWriter<W> {
    fn new(out: W) -> Self {
        LineWriter { out, position: Position::StartOfLine }
    }

    fn write_line(&mut self, line: &[u8]) -> io::Result<()> {
        if self.position == Position::WithinLine {
            self.out.write_all(b"\n")?;
            self.position = Position::StartOfLine;
        }
        let mut rest = line;
        while !rest.is_empty() {
            match self.out.write(rest) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => {
                    rest = &rest[written..];
                    self.position = Position::WithinLine;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.position = Position::StartOfLine;
        self.out.flush()
    }
}

#[cfg(test)]
mod tests;
