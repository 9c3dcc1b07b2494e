//! Threads that run calls which may hang.
//!
//! Wine loses the exit status of a process if one of its threads ends at the same moment, so a
//! program must not exit while a thread that has finished its work is still about to end.

use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Waits for a thread that has sent its result and is about to end. A panic is returned as the
/// thread's result.
pub fn join_before_exit<T>(thread: JoinHandle<T>) -> thread::Result<T> {
    thread.join()
}

/// Runs `call` on a thread of its own and returns its result, or nothing if it takes longer than
/// `limit` or if no thread can be started. A call that hangs keeps its thread until the process
/// exits.
pub fn call_within<T: Send + 'static>(
    limit: Duration,
    call: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    let (send, receive) = mpsc::channel();
    // Sending fails if the limit has passed.
    let thread = thread::Builder::new().spawn(move || _ = send.send(call())).ok()?;
    let result = receive.recv_timeout(limit).ok()?;
    let _ = join_before_exit(thread);
    Some(result)
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    #[test]
    fn a_call_that_returns_in_time_has_a_result() {
        assert_eq!(call_within(Duration::from_mins(1), || 7), Some(7));
    }

    #[test]
    fn a_call_that_hangs_is_given_up() {
        let limit = Duration::from_millis(50);
        let started = Instant::now();
        let result = call_within::<()>(limit, || {
            loop {
                thread::park();
            }
        });
        assert_eq!(result, None);
        assert!(started.elapsed() >= limit);
    }

    #[test]
    fn a_call_that_panics_has_no_result() {
        assert_eq!(call_within(Duration::from_mins(1), || -> u8 { panic!("on purpose") }), None);
    }
}
