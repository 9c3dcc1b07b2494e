//! Reads the log of the daemon, or makes it fail.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::process::{ChildStderr, Stdio};
use std::sync::mpsc;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use anyhow::{Context, Result};

/// What happens to the log.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum LogOutput {
    /// The log is read.
    Read,
    /// The log is not read until the attack is over.
    Stalled,
    /// Every write fails, because the disk is full.
    Full,
}

/// What was read.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct LogFigures {
    pub(crate) lines: u32,
    /// The length of the longest line in bytes.
    pub(crate) longest: usize,
    /// The first line with a character that can change a terminal or the order of text.
    pub(crate) unprintable: Option<String>,
}

/// A log that is being read.
pub(crate) struct LogReader {
    figures: Arc<Mutex<LogFigures>>,
    /// Dropping it makes a stalled reader start.
    stalled: Option<mpsc::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl LogOutput {
    /// The standard error for the daemon.
    pub(crate) fn stdio(self) -> Result<Stdio> {
        Ok(match self {
            LogOutput::Read | LogOutput::Stalled => Stdio::piped(),
            LogOutput::Full => {
                let full = File::options().write(true).open("/dev/full");
                full.context("cannot open `/dev/full`")?.into()
            }
        })
    }

    /// Starts to read. A thread reads until the daemon ends.
    pub(crate) fn read(self, log: Option<ChildStderr>) -> LogReader {
        let figures = Arc::default();
        let (mut stalled, mut thread) = (None, None);
        if let Some(log) = log {
            let (sender, receiver) = mpsc::channel::<()>();
            stalled = (self == LogOutput::Stalled).then_some(sender);
            let figures = Arc::clone(&figures);
            // The thread ends with the daemon, which each trial ends.
            thread = Some(thread::spawn(move || {
                let _ = receiver.recv();
                read_lines(log, &figures);
            }));
        }
        LogReader { figures, stalled, thread }
    }
}

impl LogReader {
    /// Ends the stall.
    pub(crate) fn resume(&mut self) {
        self.stalled = None;
    }

    /// Waits until everything is read. The daemon must have been stopped.
    pub(crate) fn finish(&mut self) {
        self.resume();
        if let Some(thread) = self.thread.take() {
            thread.join().expect("the reader does not panic");
        }
    }

    /// What was read so far.
    pub(crate) fn figures(&self) -> LogFigures {
        self.figures.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

fn read_lines(log: ChildStderr, figures: &Mutex<LogFigures>) {
    let mut log = BufReader::new(log);
    let mut line = Vec::new();
    while log.read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
        figures.lock().unwrap_or_else(PoisonError::into_inner).add(&line);
        line.clear();
    }
}

impl LogFigures {
    fn add(&mut self, line: &[u8]) {
        let text = String::from_utf8_lossy(line.strip_suffix(b"\n").unwrap_or(line));
        self.lines += 1;
        self.longest = self.longest.max(line.len());
        if self.unprintable.is_none() && text.chars().any(is_unprintable) {
            self.unprintable = Some(text.chars().take(200).collect::<String>());
        }
    }
}

/// Control characters, line separators and the controls of the Unicode bidirectional algorithm
/// (UAX #9).
pub(crate) fn is_unprintable(character: char) -> bool {
    let is_bidi = matches!(character,
        '\u{061C}' | '\u{200E}' | '\u{200F}' | '\u{2028}'..='\u{202E}' | '\u{2066}'..='\u{2069}');
    character.is_control() || is_bidi
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_lines_with_control_characters() {
        let mut figures = LogFigures::default();
        figures.add(b"INFO registered socket=a\\nb\n");
        assert_eq!(figures, LogFigures { lines: 1, longest: 28, unprintable: None });
        for bad in ["\u{1b}[31mred", "a\0b", "a\rb", "a\u{202e}b"] {
            let mut figures = LogFigures::default();
            figures.add(bad.as_bytes());
            assert_eq!(figures.unprintable.as_deref(), Some(bad));
        }
    }
}
