//! Writes log lines on a separate thread.
//!
//! A write to a pipe blocks while the pipe is full, for example while containerd is down and
//! nothing reads the logs of its containers. A write fails if the reader is gone or the disk is
//! full. Neither may stop a daemon, so threads that log only add to a bounded queue. A line that
//! does not fit or cannot be written is dropped and counted, and a later log line reports the
//! count.
//!
//! `tracing-appender` has such a queue too. It does not count failed writes, prints to standard
//! output when nothing reads the log, and does not wait for the end of its thread.

use std::io::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use win32::threads::join_before_exit;

/// How many lines wait at most. Their values are limited, so most have some hundred bytes.
const QUEUE_LINES: usize = 1024;

/// How long the end of the program waits until the queue is written. See
/// `device_plugin::DevicePlugin` for the time that the rest of the shutdown may take.
const FLUSH_LIMIT: Duration = Duration::from_secs(1);

/// How often the end of the program looks whether the queue is written.
const RETRY: Duration = Duration::from_millis(10);

/// Dropped lines of this process.
static DROPPED: AtomicU64 = AtomicU64::new(0);

/// How many log lines this process has dropped so far.
#[must_use]
pub fn dropped_lines() -> u64 {
    DROPPED.load(Ordering::Relaxed)
}

/// A line; `None` ends the thread.
type Message = Option<Vec<u8>>;

/// Takes log lines. Each call of `write` adds one.
#[derive(Clone)]
pub(crate) struct LogQueue(SyncSender<Message>);

/// Waits for a limited time until the queue is written, when dropped.
pub struct LogFlush {
    queue: SyncSender<Message>,
    /// The thread that writes, until this value is dropped.
    writer: Option<JoinHandle<()>>,
}

impl LogQueue {
    /// Starts the thread that writes the lines to `out`.
    ///
    /// # Errors
    /// The operating system cannot start a thread.
    pub(crate) fn start(out: impl Write + Send + 'static) -> io::Result<(LogQueue, LogFlush)> {
        let (queue, lines) = sync_channel(QUEUE_LINES);
        let writer = thread::Builder::new()
            .name("log writer".to_owned())
            .spawn(move || write_lines(&lines, out))?;
        Ok((LogQueue(queue.clone()), LogFlush { queue, writer: Some(writer) }))
    }
}

impl Write for LogQueue {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        if self.0.try_send(Some(line.to_vec())).is_err() {
            DROPPED.fetch_add(1, Ordering::Relaxed);
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for LogFlush {
    fn drop(&mut self) {
        let Some(writer) = self.writer.take() else { return };
        let end = Instant::now() + FLUSH_LIMIT;
        let mut is_ending = false;
        while !writer.is_finished() {
            if Instant::now() >= end {
                return;
            }
            // The queue may be full.
            is_ending = is_ending || self.queue.try_send(None).is_ok();
            thread::sleep(RETRY);
        }
        let _ = join_before_exit(writer);
    }
}

fn write_lines(lines: &Receiver<Message>, mut out: impl Write) {
    let mut reported = 0;
    while let Ok(Some(line)) = lines.recv() {
        let total = dropped_lines();
        if total > reported {
            let count = total - reported;
            tracing::warn!(count, total, "log lines dropped");
            reported = total;
        }
        if out.write_all(&line).and_then(|()| out.flush()).is_err() {
            DROPPED.fetch_add(1, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Sender, channel};

    use super::*;

    /// Longer than a slow machine needs for any step.
    const LIMIT: Duration = Duration::from_mins(2);

    /// An output that waits for a permission for each line.
    struct Output(Receiver<io::Result<()>>, Sender<String>);

    impl Write for Output {
        fn write(&mut self, line: &[u8]) -> io::Result<usize> {
            self.0.recv().map_err(io::Error::other)??;
            self.1.send(String::from_utf8_lossy(line).into_owned()).map_err(io::Error::other)?;
            Ok(line.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// The count is that of the process, so this is one test.
    #[test]
    fn lines_are_written_in_order_or_counted_and_the_end_has_a_limit() {
        let ((permit, permits), (send, lines)) = (channel(), channel());
        let (mut queue, flush) = LogQueue::start(Output(permits, send)).unwrap();
        let mut log = |n: usize| queue.write_all(format!("{n}").as_bytes()).unwrap();
        (0..3).for_each(&mut log);
        permit.send(Ok(())).unwrap();
        permit.send(Err(io::ErrorKind::StorageFull.into())).unwrap();
        permit.send(Ok(())).unwrap();
        let written = || lines.recv_timeout(LIMIT).unwrap();
        assert_eq!([written(), written()], ["0", "2"]);
        assert_eq!(dropped_lines(), 1, "the second failed");

        (0..QUEUE_LINES + 8).for_each(&mut log);
        // One line is being written.
        assert!((8..=9).contains(&dropped_lines()), "{}", dropped_lines());
        let started = Instant::now();
        drop(flush);
        assert!(started.elapsed() < LIMIT);
    }
}
