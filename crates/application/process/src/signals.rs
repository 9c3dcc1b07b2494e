//! The signals of the operating system: to shut down, and to read the configuration again.

use std::io;

use crate::ProcessError;

/// Completes with the name of the signal when this process is to shut down. The handlers are
/// installed when this function returns.
///
/// SIGHUP, which Windows does not have, makes a process that can `reload` its configuration do so,
/// and shuts down any other.
pub fn shutdown_signal(
    reload: Option<fn()>,
) -> Result<impl Future<Output = &'static str>, ProcessError> {
    signal(reload)
        .map_err(|source| ProcessError::System { what: "listen for shutdown signals", source })
}

/// Completes with SIGTERM, SIGINT or SIGHUP.
#[cfg(unix)]
fn signal(reload: Option<fn()>) -> io::Result<impl Future<Output = &'static str>> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut hangup = signal(SignalKind::hangup())?;
    Ok(async move {
        loop {
            tokio::select! {
                _ = terminate.recv() => return "SIGTERM",
                _ = interrupt.recv() => return "SIGINT",
                _ = hangup.recv() => {
                    let Some(reload) = reload else { return "SIGHUP" };
                    tracing::info!(signal = "SIGHUP", "reading the configuration again");
                    reload();
                }
            }
        }
    })
}

/// Completes with Ctrl-C, Ctrl-Break, close, shutdown, or a stop of the service.
///
/// - containerd stops a `HostProcess` container with a thread at `CtrlRoutine` of kernel32.dll in
///   each of its processes (`internal/jobcontainers` of hcsshim), which calls the handlers with
///   `CTRL_SHUTDOWN_EVENT`. Windows itself does not send this event to processes that have loaded
///   gdi32.dll or user32.dll (`SetConsoleCtrlHandler` of the console API), and the D3DKMT functions
///   are in gdi32.dll. So a shutdown of Windows ends a process that is not a service without a
///   notice.
/// - There is no handler for `CTRL_LOGOFF_EVENT`: services and other processes of session 0
///   receive it when any user logs off, and must keep running (`HandlerRoutine`; the option `-Xrs`
///   of Java exists for this).
#[cfg(windows)]
fn signal(_reload: Option<fn()>) -> io::Result<impl Future<Output = &'static str>> {
    use tokio::signal::windows;
    let mut c = windows::ctrl_c()?;
    let mut pause = windows::ctrl_break()?;
    let mut close = windows::ctrl_close()?;
    let mut shutdown = windows::ctrl_shutdown()?;
    Ok(async move {
        tokio::select! {
            _ = c.recv() => "Ctrl-C",
            _ = pause.recv() => "Ctrl-Break",
            _ = close.recv() => "close",
            _ = shutdown.recv() => "shutdown",
            () = SERVICE_STOP.notified() => "service stop",
        }
    })
}

#[cfg(windows)]
static SERVICE_STOP: tokio::sync::Notify = tokio::sync::Notify::const_new();

/// Completes the shutdown signal, also one that is created later: the service manager stops this
/// process.
#[cfg(windows)]
pub fn request_service_stop() {
    SERVICE_STOP.notify_one();
}
