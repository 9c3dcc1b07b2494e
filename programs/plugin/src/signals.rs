//! The shutdown signals of the operating system.

use std::io;

/// Completes with the name of the signal when this process is to shut down: SIGTERM or
/// SIGINT. The handlers are installed when this function returns.
#[cfg(unix)]
pub(crate) fn shutdown_signal() -> io::Result<impl Future<Output = &'static str>> {
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

/// Completes with the name of the event when this process is to shut down: Ctrl-C,
/// Ctrl-Break, close, log-off or shutdown (containerd stops a Windows container with
/// `CTRL_SHUTDOWN_EVENT`). The handlers are installed when this function returns.
#[cfg(windows)]
pub(crate) fn shutdown_signal() -> io::Result<impl Future<Output = &'static str>> {
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
