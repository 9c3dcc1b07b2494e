//! Reads of a live host, which take long or never end while a driver hangs.

use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use host::ReadStep;
use win32::threads::join_before_exit;

use crate::host_error::{HostError, NoAnswer};
use crate::stderr;

/// The limits of a read. It takes milliseconds, and seconds while a driver starts.
const LIMITS: Limits = Limits { notice: Duration::from_secs(5), end: Duration::from_secs(30) };

/// When users are told that a read takes long, and when it is given up.
#[derive(Clone, Copy)]
struct Limits {
    notice: Duration,
    end: Duration,
}

/// What the thread of a read reports.
enum Progress<T> {
    Began(String),
    Ended(T),
}

/// Called by a read at the beginning of each step, with what it does: `listing adapters`.
pub type OnStep = Arc<dyn Fn(String) + Send + Sync>;

/// The result of `read`, which runs on a separate thread and reports what it does. A line on
/// standard error names what has not been read for 5 seconds. After 30 seconds, reading fails, and
/// the thread is left behind.
pub fn read_live<T: Send + 'static>(
    read: impl FnOnce(OnStep) -> T + Send + 'static,
) -> Result<T, HostError> {
    read_within(LIMITS, read, &mut stderr::print)
}

fn read_within<T: Send + 'static>(
    limits: Limits,
    read: impl FnOnce(OnStep) -> T + Send + 'static,
    notify: &mut dyn FnMut(&str),
) -> Result<T, HostError> {
    let began = Instant::now();
    let (send, progress) = channel();
    let steps = send.clone();
    let reading = thread::Builder::new()
        .name("adapters".to_owned())
        .spawn(move || {
            // Sending fails after the limit, when nothing receives.
            let result = read(Arc::new(move |step| _ = steps.send(Progress::Began(step))));
            let _ = send.send(Progress::Ended(result));
        })
        .map_err(HostError::Thread)?;
    let mut step = ReadStep::default().to_string();
    let mut next = began + limits.notice;
    loop {
        match progress.recv_timeout(next.saturating_duration_since(Instant::now())) {
            Ok(Progress::Began(started)) => step = started,
            Ok(Progress::Ended(result)) => {
                let _ = join_before_exit(reading);
                return Ok(result);
            }
            Err(RecvTimeoutError::Disconnected) => match reading.join() {
                Err(panic) => resume_unwind(panic),
                Ok(()) => unreachable!("the thread sends its result"),
            },
            Err(RecvTimeoutError::Timeout) if began.elapsed() < limits.end => {
                let waited = limits.notice.as_secs();
                let end = limits.end.as_secs();
                notify(&format!(
                    "waiting: the graphics driver or the system has not answered for {waited} s \
                     while {step}; giving up after {end} s\n"
                ));
                next = began + limits.end;
            }
            Err(RecvTimeoutError::Timeout) => {
                return Err(NoAnswer { seconds: limits.end.as_secs(), step }.into());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::panic::catch_unwind;

    use super::*;

    const LONG: Duration = Duration::from_mins(5);

    /// The result of `read`, and the notices.
    fn outcome<T: Send + 'static>(
        limits: Limits,
        read: impl FnOnce(OnStep) -> T + Send + 'static,
    ) -> (Result<T, String>, Vec<String>) {
        let mut notices = Vec::new();
        let result = read_within(limits, read, &mut |notice| notices.push(notice.to_owned()));
        (result.map_err(|error| host::error_chain(&error)), notices)
    }

    #[test]
    fn a_host_that_answers_in_time_is_not_mentioned() {
        let limits = Limits { notice: LONG, end: 2 * LONG };
        let (result, notices) = outcome(limits, |on_step| {
            on_step(ReadStep::Adapters.to_string());
            7
        });
        assert_eq!((result, notices), (Ok(7), vec![]));
    }

    #[test]
    fn a_host_that_does_not_answer_is_named_and_then_given_up() {
        let limits = Limits { notice: Duration::from_millis(50), end: Duration::from_millis(100) };
        let (result, notices) = outcome(limits, |on_step| {
            on_step("reading adapter 7".to_owned());
            loop {
                thread::park();
            }
        });
        let error: Result<(), _> = result;
        assert_eq!(
            error.unwrap_err(),
            "cannot read the adapters of this host: no answer within 0 s while reading adapter 7"
        );
        let [notice] = notices.as_slice() else { panic!("{notices:?}") };
        assert!(notice.contains("while reading adapter 7;"), "{notice}");
    }

    #[test]
    fn a_slow_answer_counts() {
        let limits = Limits { notice: Duration::ZERO, end: LONG };
        let (result, notices) = outcome(limits, |_| thread::sleep(Duration::from_millis(20)));
        assert_eq!((result, notices.len()), (Ok(()), 1));
    }

    #[test]
    fn a_panic_of_the_thread_is_passed_on() {
        let limits = Limits { notice: LONG, end: LONG };
        let read = catch_unwind(|| outcome::<()>(limits, |_| panic!("a driver returned nonsense")));
        assert!(read.is_err());
    }
}
