//! The kubelet's `Registration` service and its connections to plugins:
//! `pkg/kubelet/cm/devicemanager/plugin/v1beta1/{server,handler,client}.go`.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use device_plugin::connection::{self, ClosableIo};
use device_plugin::v1beta1::registration_server::{Registration, RegistrationServer};
use device_plugin::v1beta1::{Empty, RegisterRequest};
use device_plugin::{Listener, Transport, is_extended_resource_name};
use futures_util::stream;
use tokio::sync::oneshot;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tonic::transport::{Channel, Server};
use tonic::{Request, Response, Status};

use crate::manager::{PluginClient, PluginEndpoint};
use crate::options::{RegisterFault, Release, StreamFault};
use crate::process::KubeletProcess;

/// How long a plugin may take to accept a connection (`dial`).
const DIAL_LIMIT: Duration = Duration::from_secs(10);

/// The delay before the first retry of a connection: the default of grpc-go.
const REDIAL: Duration = Duration::from_secs(1);

/// The delay of [`RegisterFault::RefuseAfterDial`], in which the stream is opened.
const REFUSAL_DELAY: Duration = Duration::from_millis(50);

/// How often [`StreamFault::NeverRead`] is checked again.
const NEVER_READ_CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// Serves plugins until the future is dropped.
pub(crate) async fn serve<T: Transport>(listener: T::Listener, process: Arc<KubeletProcess<T>>) {
    let close = process.close.clone();
    let connections = stream::unfold(listener, |mut listener| async {
        let accepted = listener.accept().await;
        Some((accepted.map(|io| ClosableIo::new(io, &close)), listener))
    });
    let service = RegistrationServer::new(Registrar(process));
    // The server ends only if accepting fails, which the tests notice.
    let _ = Server::builder().serve_with_incoming(service, connections).await;
}

/// The `Registration` service that a kubelet serves on `kubelet.sock`.
struct Registrar<T: Transport>(Arc<KubeletProcess<T>>);

#[tonic::async_trait]
impl<T: Transport> Registration for Registrar<T> {
    async fn register(&self, request: Request<RegisterRequest>) -> Result<Response<Empty>, Status> {
        let request = request.into_inner();
        let process = &self.0;
        let fault = process.faults().register;
        match &fault {
            RegisterFault::Refuse(message) => return Err(Status::unknown(message)),
            RegisterFault::Hang => std::future::pending().await,
            _ => {}
        }
        // grpc-go sends errors without a code as `Unknown`.
        check(&request).map_err(Status::unknown)?;
        process.count_registration(&request.resource_name);
        let socket = process.directory.join(&request.endpoint);
        connect_client(process, request.resource_name, socket).await.map_err(Status::unknown)?;
        match fault {
            RegisterFault::AnswerLate(delay) => sleep(delay).await,
            RegisterFault::RefuseAfterDial(message) => {
                sleep(REFUSAL_DELAY).await;
                return Err(Status::unknown(message));
            }
            _ => {}
        }
        Ok(Response::new(Empty {}))
    }
}

fn check(request: &RegisterRequest) -> Result<(), String> {
    let RegisterRequest { version, resource_name, .. } = request;
    if version != "v1beta1" {
        return Err(format!(
            "requested API version {version:?} is not supported by kubelet. Supported version is \
             [\"v1beta1\"]"
        ));
    }
    if !is_extended_resource_name(resource_name) {
        return Err(format!("the ResourceName {resource_name:?} is invalid"));
    }
    Ok(())
}

/// `connectClient`. The work runs in a separate task: before 1.36 it continues after the plugin
/// cancels its call; since 1.36 it ends with the call.
async fn connect_client<T: Transport>(
    process: &Arc<KubeletProcess<T>>,
    resource: String,
    socket: PathBuf,
) -> Result<(), String> {
    let (answer, answered) = oneshot::channel();
    process.spawn(connect_and_run(Arc::clone(process), resource, socket, answer));
    answered.await.unwrap_or_else(|_| Err("kubelet stopped".to_owned()))
}

async fn connect_and_run<T: Transport>(
    process: Arc<KubeletProcess<T>>,
    resource: String,
    socket: PathBuf,
    mut answer: oneshot::Sender<Result<(), String>>,
) {
    process.add_connection(&resource, &socket);
    let connecting = async {
        if let RegisterFault::ActLate(delay) = process.faults().register {
            sleep(delay).await;
        }
        connect(&process, &resource, &socket).await
    };
    let result = if process.options.release == Release::V1_26 {
        connecting.await
    } else {
        tokio::select! {
            result = connecting => result,
            () = answer.closed() => Err("context canceled".to_owned()),
        }
    };
    // If the plugin has canceled its call, sending the answer fails, which changes nothing.
    match result {
        Ok(plugin) => {
            let run = run_client(Arc::clone(&process), resource, socket, plugin);
            process.spawn(run);
            let _ = answer.send(Ok(()));
        }
        Err(error) => {
            process.take_connection(&resource, &socket);
            let _ = answer.send(Err(error));
        }
    }
}

/// `Connect` and `PluginConnected`.
async fn connect<T: Transport>(
    process: &Arc<KubeletProcess<T>>,
    resource: &str,
    socket: &Path,
) -> Result<PluginClient, String> {
    let mut plugin = PluginClient::new(dial(process, socket).await?);
    let options = plugin
        .get_device_plugin_options(Empty {})
        .await
        .map_err(|s| format!("failed to get device plugin options: {}", grpc_error(&s)))?;
    let endpoint = PluginEndpoint {
        plugin: Some(plugin.clone()),
        options: options.into_inner(),
        socket: socket.to_owned(),
        stopped: Arc::default(),
    };
    process.with_manager(|manager| manager.plugin_connected(resource, endpoint))?;
    Ok(plugin)
}

async fn dial<T: Transport>(process: &KubeletProcess<T>, socket: &Path) -> Result<Channel, String> {
    let close = CancellationToken::new();
    let connected = async {
        loop {
            if let Ok(io) = process.host.connect(socket).await
                && let Ok(client) = connection::connect(ClosableIo::new(io, &close)).await
            {
                return client;
            }
            sleep(REDIAL).await;
        }
    };
    let client = timeout(DIAL_LIMIT, connected)
        .await
        .map_err(|_| "failed to dial device plugin: context deadline exceeded".to_owned())?;
    process.set_established(socket, close.drop_guard());
    Ok(client)
}

/// `runClient`: watches the list until the stream ends. The end disconnects the plugin that is
/// known under the resource's name by then (before 1.37), or under its name and socket.
async fn run_client<T: Transport>(
    process: Arc<KubeletProcess<T>>,
    resource: String,
    socket: PathBuf,
    mut plugin: PluginClient,
) {
    let fault = process.faults().stream;
    let end = watch_list(&process, &resource, &mut plugin, &fault).await;
    tracing::debug!(resource, end, "ListAndWatch ended unexpectedly for device plugin");
    if let Some(socket) = process.take_connection(&resource, &socket) {
        process.with_manager(|manager| manager.plugin_disconnected(&resource, &socket));
    }
}

async fn watch_list<T: Transport>(
    process: &Arc<KubeletProcess<T>>,
    resource: &str,
    plugin: &mut PluginClient,
    fault: &StreamFault,
) -> String {
    if *fault == StreamFault::NeverOpen {
        std::future::pending::<()>().await;
    }
    let mut stream = match plugin.list_and_watch(Empty {}).await {
        Ok(response) => response.into_inner(),
        Err(status) => return grpc_error(&status),
    };
    // To a plugin, a stream that is not read looks like a stream without new lists.
    while process.faults().stream == StreamFault::NeverRead {
        sleep(NEVER_READ_CHECK_INTERVAL).await;
    }
    loop {
        match stream.message().await {
            Ok(Some(list)) => {
                process.with_manager(|manager| manager.list_received(resource, list.devices));
                if let StreamFault::DropAfter(time) = fault {
                    sleep(*time).await;
                    return "dropped".to_owned();
                }
            }
            Ok(None) => return "EOF".to_owned(),
            Err(status) => return grpc_error(&status),
        }
    }
}

/// The text of a gRPC error in Go (`status.Error`).
pub(crate) fn grpc_error(status: &Status) -> String {
    let code = match status.code() {
        tonic::Code::Cancelled => "Canceled".to_owned(),
        code => format!("{code:?}"),
    };
    format!("rpc error: code = {code} desc = {}", status.message())
}
