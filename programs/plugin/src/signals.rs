//! The requests to end that an operating system sends.

use std::io;

/// Completes when this process is asked to end: SIGTERM or SIGINT, or their Windows
/// counterparts (Ctrl-C, Ctrl-Break, close, log-off, shutdown; containerd stops a
/// Windows container with `CTRL_SHUTDOWN_EVENT`). The handlers stand when this returns.
#[cfg(unix)]
pub(crate) fn end_requested() -> io::Result<impl Future<Output = &'static str>> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => "SIGTERM",
            _ = interrupt.recv() => "SIGINT",
        }
    })
}

/// Completes when this process is asked to end: SIGTERM or SIGINT, or their Windows
/// counterparts (Ctrl-C, Ctrl-Break, close, log-off, shutdown; containerd stops a
/// Windows container with `CTRL_SHUTDOWN_EVENT`). The handlers stand when this returns.
#[cfg(windows)]
pub(crate) fn end_requested() -> io::Result<impl Future<Output = &'static str>> {
    use tokio::signal::windows;
    let mut c = windows::ctrl_c()?;
    let mut pause = windows::ctrl_break()?;
    let mut close = windows::ctrl_close()?;
    let mut logoff = windows::ctrl_logoff()?;
    let mut shutdown = windows::ctrl_shutdown()?;
    Ok(async move {
        tokio::select! {
            _ = c.recv() => "Ctrl-C",
            _ = pause.recv() => "Ctrl-Break",
            _ = close.recv() => "close",
            _ = logoff.recv() => "log-off",
            _ = shutdown.recv() => "shutdown",
        }
    })
}
