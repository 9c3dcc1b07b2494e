//! The queue with an output that a test can block and break.

use std::sync::mpsc;
use std::time::Instant;

use super::*;

/// Longer than a slow machine needs for any step.
const LIMIT: Duration = Duration::from_secs(120);

#[derive(Clone, Default)]
struct Output(Arc<(Mutex<OutputState>, Condvar)>);

#[derive(Default)]
struct OutputState {
    text: String,
    mode: Mode,
    blocked_writes: usize,
    failed_writes: usize,
}

#[derive(Clone, Copy, PartialEq, Eq, Default)]
enum Mode {
    #[default]
    Works,
    Blocks,
    Fails,
    /// Accepts three bytes and then fails.
    FailsWithinLine,
}

impl Output {
    fn set(&self, mode: Mode) {
        self.0.0.lock().unwrap().mode = mode;
        self.0.1.notify_all();
    }

    fn wait_for(&self, condition: impl Fn(&OutputState) -> bool) {
        let state = self.0.0.lock().unwrap();
        let wait = self.0.1.wait_timeout_while(state, LIMIT, |state| !condition(state));
        assert!(!wait.unwrap().1.timed_out());
    }

    fn text(&self) -> String {
        self.0.0.lock().unwrap().text.clone()
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut state = self.0.0.lock().unwrap();
        if state.mode == Mode::Blocks {
            state.blocked_writes += 1;
            self.0.1.notify_all();
            state = self.0.1.wait_while(state, |s| s.mode == Mode::Blocks).unwrap();
        }
        let accepted = match state.mode {
            Mode::Works | Mode::Blocks => bytes.len(),
            Mode::Fails => {
                state.failed_writes += 1;
                self.0.1.notify_all();
                return Err(io::ErrorKind::BrokenPipe.into());
            }
            Mode::FailsWithinLine => {
                state.mode = Mode::Fails;
                3
            }
        };
        state.text += std::str::from_utf8(&bytes[..accepted]).unwrap();
        self.0.1.notify_all();
        Ok(accepted)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn start(output: &Output) -> (Arc<LogQueue>, LogFlush) {
    let report = |missing| format!("missing {missing}\n").into_bytes();
    let (queue, mut flush) = LogQueue::start(output.clone(), Box::new(report)).unwrap();
    flush.limit = LIMIT;
    (queue, flush)
}

fn log(queue: &LogQueue, line: &str) {
    let mut queue = queue;
    queue.write_all(line.as_bytes()).unwrap();
}

/// Starts with an output that blocks in the write of a first line.
fn start_blocked() -> (Output, Arc<LogQueue>, LogFlush) {
    let output = Output::default();
    output.set(Mode::Blocks);
    let (queue, flush) = start(&output);
    log(&queue, "first\n");
    output.wait_for(|state| state.blocked_writes == 1);
    (output, queue, flush)
}

#[test]
fn lines_are_written_in_order_and_flushed_at_the_end() {
    let output = Output::default();
    let (queue, flush) = start(&output);
    let lines: Vec<String> = (0..1000).map(|n| format!("line {n}\n")).collect();
    for line in &lines {
        log(&queue, line);
    }
    drop(flush);
    assert_eq!(output.text(), lines.concat());
}

#[test]
fn a_blocked_output_limits_the_queue_and_missing_lines_are_reported_in_their_place() {
    let before = dropped_lines();
    let (output, queue, flush) = start_blocked();
    let line = "x".repeat(QUEUE_BYTES / 32 - ENTRY_BYTES - 1) + "\n";
    for _ in 0..32 + 7 {
        log(&queue, &line);
    }
    let (lines, bytes) = {
        let state = queue.lock();
        (state.lines.len(), state.bytes)
    };
    assert_eq!((lines, bytes), (32, QUEUE_BYTES));
    // Tests run in parallel, and the count is that of the process.
    assert!(dropped_lines() >= before + 7);
    output.set(Mode::Works);
    output.wait_for(|state| state.text.ends_with("missing 7\n"));
    log(&queue, "last\n");
    drop(flush);
    assert_eq!(output.text(), format!("first\n{}missing 7\nlast\n", line.repeat(32)));
}

#[test]
fn a_long_line_is_cut_off() {
    let output = Output::default();
    let (queue, flush) = start(&output);
    let longest = "x".repeat(LINE_BYTES - 1) + "\n";
    log(&queue, &longest);
    log(&queue, &format!("y{longest}"));
    drop(flush);
    let text = output.text();
    assert_eq!(text.len(), 2 * LINE_BYTES);
    assert!(text.starts_with(&longest) && text.ends_with("x [line cut off]\n"));
}

#[test]
fn lines_that_cannot_be_written_are_reported_before_the_next_one_that_can() {
    let before = dropped_lines();
    let output = Output::default();
    let (queue, flush) = start(&output);
    log(&queue, "a\n");
    output.wait_for(|state| state.text == "a\n");
    output.set(Mode::Fails);
    log(&queue, "b\n");
    log(&queue, "c\n");
    // For `c`, the report is tried first.
    output.wait_for(|state| state.failed_writes == 2);
    assert!(dropped_lines() > before);
    output.set(Mode::Works);
    log(&queue, "d\n");
    drop(flush);
    assert_eq!(output.text(), "a\nmissing 2\nd\n");
}

#[test]
fn a_line_that_was_written_in_part_is_ended() {
    let output = Output::default();
    output.set(Mode::FailsWithinLine);
    let (queue, flush) = start(&output);
    log(&queue, "partial\n");
    output.wait_for(|state| state.failed_writes == 1);
    output.set(Mode::Works);
    log(&queue, "whole\n");
    drop(flush);
    assert_eq!(output.text(), "par\nmissing 1\nwhole\n");
}

#[test]
fn the_flush_at_the_end_has_a_limit() {
    let (output, _queue, mut flush) = start_blocked();
    flush.limit = FLUSH_LIMIT;
    let started = Instant::now();
    let (done, ended) = mpsc::channel();
    std::thread::spawn(move || {
        drop(flush);
        done.send(()).unwrap();
    });
    ended.recv_timeout(LIMIT).unwrap();
    assert!(started.elapsed() >= FLUSH_LIMIT);
    assert_eq!(output.text(), "");
    output.set(Mode::Works);
    output.wait_for(|state| state.text == "first\n");
}
