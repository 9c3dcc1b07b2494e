//! One resource: its socket, and its registration with the kubelet.
//!
//! Three facts about kubelets shape it (`devicemanager/plugin/v1beta1/handler.go`,
//! releases 1.26 to 1.37):
//! - A registration lasts exactly as long as the `ListAndWatch` stream that the kubelet opened
//!   for it. When the stream ends, for any reason, the kubelet forgets the plugin.
//! - Up to 1.36, when a stream ends, the kubelet also removes whatever is registered under the
//!   same name by then. So the streams of an old socket end *before* a new socket is registered.
//! - From 1.37 on, the kubelet refuses a socket that is still connected. So a socket that may
//!   have been registered is never registered again.
//!
//! Only the daemon that has the locks of the resource registers it.

mod checks;
pub(crate) mod reason;

use std::convert::Infallible;
use std::io::ErrorKind;
use std::panic::resume_unwind;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use backon::ExponentialBackoff;
use tokio::sync::watch;
use tokio::task::{JoinError, JoinSet};
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_util::sync::{CancellationToken, DropGuard};

use self::reason::NewSocketReason;
use crate::names::KUBELET_SOCKET;
use crate::node::{Node, SocketFile};
use crate::readiness::ResourceReadiness;
use crate::registration::{RegisterError, register};
use crate::resource::Resource;
use crate::retry::{FailureKind, LogLimiter, REFUSED_DELAY, delays};
use crate::server;
use crate::service::{KubeletStream, Service};
use crate::status::Phase;
use crate::text::{error_chain, printable};
use crate::transport::{Identity, Transport};

/// How often the sockets and the locks are checked while the resource is registered. No
/// notification for a deleted file works the same way on all operating systems.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// How often the sockets and the locks are checked while the resource is not registered. At this
/// interval, the resource is registered within 0.3 seconds after a kubelet starts.
const UNSETTLED_CHECK_INTERVAL: Duration = Duration::from_millis(250);

/// How long a kubelet may take between accepting a registration and calling `ListAndWatch`.
/// It takes milliseconds, unless the kubelet lost the registration.
const STREAM_LIMIT: Duration = Duration::from_secs(5);

/// How long to wait after a kubelet closed a connection before registering again. The kubelet
/// handles the disconnect right after it closes the connection, and then removes whatever is
/// registered under the name of the resource.
const DISCONNECT_DELAY: Duration = Duration::from_millis(50);

/// How long a stream must have lived for its end to count as a new event, and not as one more
/// failure in a row. When two plugins register the same resource, the kubelet ends the stream of
/// one each time that the other registers, so both streams are short.
const STABLE_AFTER: Duration = Duration::from_mins(1);

/// After so many short streams in a row, the log warns that another plugin may register the
/// resource.
const SUSPICIOUS_ENDS: u32 = 5;

/// The hint of that warning.
const OTHER_PLUGIN_HINT: &str =
    "run only one device plugin for the resource, and read the kubelet's log";

/// What an administrator can do if a socket's directory does not exist.
const MISSING_DIRECTORY: &str = "start kubelet, which creates its device plugin directory, and \
    check that the plugin is configured with the same directory";

/// Serves a resource and keeps it registered until `close` is cancelled. Returns its name when the
/// kubelet has handled the end.
pub(crate) async fn keep_registered<T: Transport>(
    node: Arc<Node<T>>,
    resource: Arc<dyn Resource>,
    close: CancellationToken,
) -> String {
    let mut resource = RegisteredResource::new(node, resource);
    close.run_until_cancelled(resource.serve()).await;
    resource.end().await;
    resource.resource.name().to_owned()
}

struct RegisteredResource<T: Transport> {
    node: Arc<Node<T>>,
    resource: Arc<dyn Resource>,
    /// The state of the registration, which is published after each change.
    state: ResourceReadiness,
    /// The lock of the resource's name. The resource has it only with all other locks that it needs.
    lock: Option<T::Lock>,
    socket: Option<Socket<T>>,
    /// The servers of the socket, and of earlier sockets whose connections have not ended yet.
    servers: JoinSet<()>,
    /// Tasks that remove the sockets that other processes left behind.
    sweeps: JoinSet<()>,
    /// The socket of the kubelet that was sent the last `Register` call, until it disappears.
    kubelet: Option<Identity>,
    /// Whether a kubelet has registered the present socket, or may do so because the answer to
    /// its `Register` call has not arrived.
    kubelet_may_hold_stream: bool,
    /// When the kubelet that was sent the last `Register` call may be sent another one.
    retry_at: Instant,
    /// When the kubelet has handled the end of another daemon that had a lock of the resource. No
    /// kubelet is sent a `Register` call before.
    handover_ends: Instant,
    delays: ExponentialBackoff,
    /// How many streams of the same kubelet in a row ended early.
    short_streams: u32,
    /// The time since when no kubelet was found.
    absent_since: Option<Instant>,
    log_limiter: LogLimiter,
}

/// A bound socket. Dropping it ends its streams, then its calls, then its connections.
struct Socket<T: Transport> {
    file: Arc<SocketFile<T>>,
    reason: NewSocketReason,
    service: Service,
    /// Whether a `Register` call with this socket failed although the kubelet may have registered
    /// it. Such a socket is never registered again.
    may_be_registered: bool,
    _close: DropGuard,
}

impl<T: Transport> Drop for Socket<T> {
    fn drop(&mut self) {
        // Some hosts remove the file only when the server has ended and drops it too.
        self.file.remove();
    }
}

impl<T: Transport> RegisteredResource<T> {
    fn new(node: Arc<Node<T>>, resource: Arc<dyn Resource>) -> Self {
        let now = Instant::now();
        RegisteredResource {
            node,
            state: ResourceReadiness::starting(resource.name()),
            resource,
            lock: None,
            socket: None,
            servers: JoinSet::new(),
            sweeps: JoinSet::new(),
            kubelet: None,
            kubelet_may_hold_stream: false,
            retry_at: now,
            handover_ends: now,
            delays: delays(),
            short_streams: 0,
            absent_since: None,
            log_limiter: LogLimiter::default(),
        }
    }

    async fn serve(&mut self) -> Infallible {
        let mut reason = NewSocketReason::Startup;
        loop {
            let stream = self.bind(reason).await;
            reason = match self.follow(stream).await {
                Err(reason) => reason,
                Ok(never) => return never,
            };
        }
    }

    /// Ends the socket and waits until its connections have ended.
    async fn end(&mut self) {
        self.socket = None;
        self.set_phase(Phase::Starting, None);
        while let Some(ended) = self.servers.join_next().await {
            check_task(ended);
        }
        sleep(DISCONNECT_DELAY).await;
    }

    /// Binds a socket that replaces the present one, which stays until that succeeds.
    async fn bind(&mut self, reason: NewSocketReason) -> watch::Receiver<KubeletStream> {
        loop {
            match self.try_bind() {
                Ok((file, listener)) => return self.serve_on(file, listener, reason),
                Err(text) if !self.has_stream() => self.wait_for_kubelet(Some(text)),
                Err(_) => {}
            }
            sleep(UNSETTLED_CHECK_INTERVAL).await;
        }
    }

    /// Binds a socket for the streams of the present one, whose file is gone. A socket that cannot
    /// be bound is bound by a later check.
    fn bind_beside_stream(&mut self) {
        let Some(service) = self.socket.as_ref().map(|socket| socket.service.clone()) else {
            return;
        };
        if let Ok((file, listener)) = self.try_bind() {
            let file = self.listen(file, listener, service, NewSocketReason::SocketLost);
            if let Some(socket) = &mut self.socket {
                socket.file = file;
            }
        }
    }

    /// Binds a socket with a new name. The error is a text for administrators, and is logged.
    fn try_bind(&mut self) -> Result<(SocketFile<T>, T::Listener), String> {
        let path = self.node.new_path(&self.resource.socket_prefix());
        self.node.bind(path.clone()).map_err(|error| {
            let directory = self.node.directory.display();
            let text = format!("cannot create a plugin socket in `{directory}`: {error}");
            if self.log_limiter.should_log(FailureKind::Bind(error.kind()), Instant::now()) {
                let hint = (error.kind() == ErrorKind::NotFound).then_some(MISSING_DIRECTORY);
                let resource = self.resource.name();
                let socket = path.display();
                tracing::warn!(resource, %socket, %error, hint, "cannot listen on plugin socket");
            }
            text
        })
    }

    fn serve_on(
        &mut self,
        file: SocketFile<T>,
        listener: T::Listener,
        reason: NewSocketReason,
    ) -> watch::Receiver<KubeletStream> {
        let close = CancellationToken::new();
        let (stream, followed) = watch::channel(KubeletStream::Unexpected);
        let service = Service {
            resource: Arc::clone(&self.resource),
            close: close.clone(),
            stream,
            readiness: self.node.readiness.subscribe(),
        };
        let file = self.listen(file, listener, service.clone(), reason);
        self.socket = Some(Socket {
            file,
            reason,
            service,
            may_be_registered: false,
            _close: close.drop_guard(),
        });
        self.kubelet_may_hold_stream = false;
        self.wait_for_kubelet(None);
        followed
    }

    /// Serves a bound socket until the service is closed.
    fn listen(
        &mut self,
        file: SocketFile<T>,
        listener: T::Listener,
        service: Service,
        reason: NewSocketReason,
    ) -> Arc<SocketFile<T>> {
        let resource = self.resource.name();
        let socket = file.path().display();
        let text = reason.as_str();
        if matches!(reason, NewSocketReason::RegistrationFailed | NewSocketReason::NoStream) {
            // The level is DEBUG, because the line repeats with every retry, and the failure itself
            // was logged.
            tracing::debug!(resource, %socket, reason = text, "listening on plugin socket");
        } else {
            tracing::info!(resource, %socket, reason = text, "listening on plugin socket");
        }
        let file = Arc::new(file);
        let serving = server::serve(listener, service);
        let served = Arc::clone(&file);
        self.servers.spawn(async move {
            serving.await;
            drop(served);
        });
        file
    }

    /// Registers the socket and follows the kubelet's stream. Returns why the resource needs a new
    /// socket.
    async fn follow(
        &mut self,
        mut stream: watch::Receiver<KubeletStream>,
    ) -> Result<Infallible, NewSocketReason> {
        loop {
            let is_registered = tokio::select! {
                biased;
                // An earlier `Register` call timed out, and the kubelet completed it later.
                () = stream_is_at_least(&mut stream, KubeletStream::Open) => true,
                kubelet = self.registration_due() => self.register(kubelet?).await?,
            };
            if is_registered {
                return self.follow_stream(stream).await;
            }
        }
    }

    /// Waits until a kubelet may be sent a `Register` call. Returns the kubelet's socket.
    async fn registration_due(&mut self) -> Result<Identity, NewSocketReason> {
        loop {
            let found = self.check()?;
            let now = Instant::now();
            if let Some(kubelet) = found
                && self.lock.is_some()
                && now >= self.handover_ends
            {
                let is_retry = self.kubelet.is_some_and(|known| known.is_same_file(&kubelet));
                // The same kubelet must first handle the ends of the earlier streams.
                let may_retry = now >= self.retry_at && self.servers.len() == 1;
                if !is_retry || may_retry {
                    return Ok(kubelet);
                }
            }
            self.next_check().await;
        }
    }

    /// Sends a `Register` call. Returns whether the kubelet has registered the socket.
    async fn register(&mut self, kubelet: Identity) -> Result<bool, NewSocketReason> {
        let Some(socket) = self.socket.as_mut().filter(|socket| !socket.may_be_registered) else {
            return Err(NewSocketReason::RegistrationFailed);
        };
        socket.service.stream.send_replace(KubeletStream::Expected);
        let name = self.resource.name().to_owned();
        let file_name = socket.file.name();
        if self.kubelet.is_none_or(|known| !known.is_same_file(&kubelet)) {
            self.delays = delays();
            self.short_streams = 0;
        }
        self.kubelet = Some(kubelet);
        self.kubelet_may_hold_stream = true;
        tracing::debug!(resource = name, socket = file_name, "registering with kubelet");
        let path = self.node.directory.join(KUBELET_SOCKET);
        let transport = self.node.transport.clone();
        let call = register(transport, path, name, file_name.clone(), self.resource.options());
        let answer = self.unless_socket_must_change(call).await?;
        let Err(error) = answer else {
            let resource = self.resource.name();
            tracing::info!(resource, socket = file_name, "registered with kubelet");
            return Ok(true);
        };
        self.registration_failed(&error);
        // A kubelet that called `ListAndWatch` has registered the plugin, whatever it answered.
        Ok(self.has_stream())
    }

    fn registration_failed(&mut self, error: &RegisterError) {
        let now = Instant::now();
        let text = error_chain(error);
        if self.log_limiter.should_log(error.kind(), now) {
            let path = self.node.directory.join(KUBELET_SOCKET);
            tracing::warn!(
                resource = self.resource.name(),
                kubelet = %path.display(),
                error = text,
                hint = error.hint(),
                "registration failed; retrying"
            );
        }
        if let Some(socket) = &mut self.socket {
            socket.may_be_registered = error.may_have_registered();
            if !error.may_still_register() {
                KubeletStream::change(
                    &socket.service.stream,
                    KubeletStream::Expected,
                    KubeletStream::Unexpected,
                );
            }
        }
        if !self.has_stream() {
            self.kubelet_may_hold_stream = false;
            self.retry_at = now + self.next_delay().min(error.longest_delay());
            self.wait_for_kubelet(Some(text));
        }
    }

    /// Follows the stream of a kubelet that has registered the socket. Returns why the resource
    /// needs a new socket.
    async fn follow_stream(
        &mut self,
        mut stream: watch::Receiver<KubeletStream>,
    ) -> Result<Infallible, NewSocketReason> {
        let registered_at = Instant::now();
        self.kubelet_may_hold_stream = true;
        if let Some(socket) = &self.socket {
            *self.state.registrations.entry(socket.reason.as_str()).or_default() += 1;
        }
        self.set_phase(Phase::Registered, None);
        let open = stream_is_at_least(&mut stream, KubeletStream::Open);
        if self.unless_socket_must_change(timeout(STREAM_LIMIT, open)).await?.is_err() {
            self.retry_at = Instant::now() + self.next_delay();
            return Err(NewSocketReason::NoStream);
        }
        let delivered = stream_is_at_least(&mut stream, KubeletStream::ListDelivered);
        self.unless_socket_must_change(delivered).await?;
        let resource = self.resource.name();
        if *stream.borrow() == KubeletStream::ListDelivered {
            tracing::info!(resource, "kubelet received the device list");
            self.log_limiter.reset();
            self.set_phase(Phase::Ready, None);
            let ended = stream_is_at_least(&mut stream, KubeletStream::Ended);
            self.unless_socket_must_change(ended).await?;
        }
        tracing::info!(resource = self.resource.name(), "kubelet closed the ListAndWatch stream");
        self.stream_ended(registered_at);
        Err(NewSocketReason::StreamEnded)
    }

    fn stream_ended(&mut self, registered_at: Instant) {
        if registered_at.elapsed() >= STABLE_AFTER {
            self.delays = delays();
            self.short_streams = 0;
        }
        self.short_streams += 1;
        if self.short_streams == SUSPICIOUS_ENDS {
            tracing::warn!(
                resource = self.resource.name(),
                streams = SUSPICIOUS_ENDS,
                other_sockets = self.other_sockets(),
                hint = OTHER_PLUGIN_HINT,
                "kubelet keeps closing the ListAndWatch stream"
            );
        }
        self.retry_at = Instant::now() + self.next_delay();
        self.wait_for_kubelet(Some("kubelet closed the ListAndWatch stream".to_owned()));
    }

    /// The delay after one more failure in a row.
    fn next_delay(&mut self) -> Duration {
        self.delays.next().unwrap_or(REFUSED_DELAY)
    }

    /// The sockets in the directory that are neither the kubelet's nor this daemon's.
    fn other_sockets(&self) -> String {
        let mut files = self.node.other_files();
        files.retain(|file| {
            file.extension().is_some_and(|extension| extension == "sock")
                && !file.ends_with(KUBELET_SOCKET)
        });
        let names = files.iter().filter_map(|file| file.file_name());
        names.map(|name| printable(&name.to_string_lossy())).collect::<Vec<_>>().join(", ")
    }

    /// Waits for `event`, or until a check finds a reason for a new socket.
    async fn unless_socket_must_change<R>(
        &mut self,
        event: impl Future<Output = R>,
    ) -> Result<R, NewSocketReason> {
        let mut event = pin!(event);
        loop {
            self.check()?;
            tokio::select! {
                biased;
                result = &mut event => return Ok(result),
                () = self.next_check() => {}
            }
        }
    }

    /// Waits until the next check or the next `Register` call is due, or until a server or a sweep
    /// has ended.
    async fn next_check(&mut self) {
        let now = Instant::now();
        let interval = match self.state.phase {
            Phase::Starting | Phase::WaitingForKubelet => UNSETTLED_CHECK_INTERVAL,
            Phase::Registered | Phase::Ready | Phase::WaitingForOtherDaemon => CHECK_INTERVAL,
        };
        let due = [self.retry_at, self.handover_ends].into_iter().filter(|at| *at > now);
        // All resources are checked at the same multiples of the interval since the start, so that
        // the process wakes up once for all of them.
        let late = (now - self.node.started).as_millis() % interval.as_millis();
        let check = now + interval - Duration::from_millis(u64::try_from(late).unwrap_or_default());
        tokio::select! {
            Some(ended) = self.servers.join_next() => {
                check_task(ended);
                self.retry_at = self.retry_at.max(Instant::now() + DISCONNECT_DELAY);
            }
            Some(ended) = self.sweeps.join_next() => check_task(ended),
            () = sleep_until(due.fold(check, Instant::min)) => {}
        }
    }

    fn has_stream(&self) -> bool {
        use KubeletStream::{ListDelivered, Open};
        let stream = self.socket.as_ref().map(|socket| *socket.service.stream.borrow());
        matches!(stream, Some(Open | ListDelivered))
    }

    /// Sets the phase of waiting for a kubelet, unless the resource waits for another daemon. The
    /// last error stays if `error` is `None`.
    fn wait_for_kubelet(&mut self, error: Option<String>) {
        if self.state.phase != Phase::WaitingForOtherDaemon {
            self.set_phase(Phase::WaitingForKubelet, error);
        }
    }

    fn set_phase(&mut self, phase: Phase, error: Option<String>) {
        if self.state.phase != phase {
            self.state.phase = phase;
            self.state.since = Instant::now();
            self.state.last_error.clear();
        }
        if let Some(error) = error {
            self.state.last_error = error;
        }
        self.publish();
    }

    fn publish(&mut self) {
        self.state.pending = self.resource.pending();
        let now = &self.state;
        self.node.readiness.send_if_modified(|readiness| {
            let before = readiness.resources.iter_mut().find(|before| before.name == now.name);
            let changed = before.filter(|before| *before != now);
            changed.map(|before| before.clone_from(now)).is_some()
        });
    }
}

/// Completes when a stream is in this state or a later one.
async fn stream_is_at_least(stream: &mut watch::Receiver<KubeletStream>, state: KubeletStream) {
    // An error means that the socket was replaced, and the future will be dropped.
    let _ = stream.wait_for(|now| *now >= state).await;
}

/// Continues the panic of a server or a sweep in the task of its resource.
fn check_task(ended: Result<(), JoinError>) {
    ended.unwrap_or_else(|error| resume_unwind(error.into_panic()));
}
