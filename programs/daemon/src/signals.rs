//! The signals of the operating system: to shut down, and to read the configuration again.

use std::io;

/// Completes with the name of the signal when this process is to shut down: SIGTERM or
/// SIGINT. The handlers are installed when this function returns.
#[cfg(unix)]
pub fn shutdown_signal() -> io::Result<impl Future<Output = &'static str>> {
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

/// Completes with the name of the event when this process is to shut down: Ctrl-C, Ctrl-Break,
/// close, shutdown, or a stop of the service. The handlers are installed when this function
/// returns.
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
pub fn shutdown_signal() -> io::Result<impl Future<Output = &'static str>> {
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

/// SIGHUP, which requests to read the configuration again. It does not exist on Windows.
pub struct ReloadSignal(#[cfg(unix)] tokio::signal::unix::Signal);

impl ReloadSignal {
    /// From now on, the signal does not terminate the process.
    #[cfg(unix)]
    pub fn listen() -> io::Result<ReloadSignal> {
        use tokio::signal::unix::{SignalKind, signal};
        signal(SignalKind::hangup()).map(ReloadSignal)
    }

    /// Does nothing, as there is no such signal.
    #[cfg(windows)]
    #[allow(clippy::unnecessary_wraps, reason = "as on Unix")]
    pub fn listen() -> io::Result<ReloadSignal> {
        Ok(ReloadSignal())
    }

    /// Completes when the signal arrives. Signals that arrive at the same time may count as one.
    #[cfg(unix)]
    pub async fn received(&mut self) {
        if self.0.recv().await.is_none() {
            std::future::pending::<()>().await;
        }
    }

    /// Never completes, as there is no such signal.
    #[cfg(windows)]
    pub async fn received(&mut self) {
        std::future::pending::<()>().await;
    }
}

#[cfg(windows)]
static SERVICE_STOP: tokio::sync::Notify = tokio::sync::Notify::const_new();

/// Completes the shutdown signal, also one that is created later: the service manager stops this
/// process.
#[cfg(windows)]
pub fn request_service_stop() {
    SERVICE_STOP.notify_one();
}
