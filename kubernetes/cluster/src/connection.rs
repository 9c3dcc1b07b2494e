//! One HTTP/1.1 connection to the API server. It has no task of its own: whoever waits for an
//! answer also runs the connection.

use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use socket2::{SockRef, TcpKeepalive};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;

use crate::server::Server;

/// After which silence the operating system asks whether the other side still exists. Load
/// balancers drop connections that are silent for minutes, without a notice.
const KEEP_ALIVE: Duration = Duration::from_secs(30);

type Driver = Pin<Box<dyn Future<Output = hyper::Result<()>> + Send>>;

/// How a connection is protected.
pub(crate) enum Security {
    /// By TLS.
    Tls(TlsConnector),
    /// Not at all: a server of a test.
    #[cfg(test)]
    None,
    /// There is no network: a server in the memory of a test.
    #[cfg(any(test, feature = "test_server"))]
    Memory(MemoryConnect),
}

/// Connects to a server in the memory of a test.
#[cfg(any(test, feature = "test_server"))]
pub(crate) type MemoryConnect =
    std::sync::Arc<dyn Fn() -> io::Result<tokio::io::DuplexStream> + Send + Sync>;

/// A connection.
pub(crate) struct Connection {
    sender: SendRequest<Full<Bytes>>,
    /// Reads and writes; `None` once the connection has ended.
    driver: Option<Driver>,
}

impl Connection {
    /// Connects to `server`, which must prove its identity.
    pub(crate) async fn open(server: &Server, security: &Security) -> io::Result<Connection> {
        #[cfg(any(test, feature = "test_server"))]
        if let Security::Memory(connect) = security {
            return Connection::over(connect()?).await;
        }
        let stream = TcpStream::connect((server.host.as_str(), server.port)).await?;
        stream.set_nodelay(true)?;
        let keep_alive = TcpKeepalive::new().with_time(KEEP_ALIVE).with_interval(KEEP_ALIVE);
        SockRef::from(&stream).set_tcp_keepalive(&keep_alive)?;
        let name = ServerName::try_from(server.certified_name.clone()).map_err(io::Error::other)?;
        match security {
            Security::Tls(tls) => Connection::over(tls.connect(name, stream).await?).await,
            #[cfg(test)]
            Security::None => Connection::over(stream).await,
            #[cfg(any(test, feature = "test_server"))]
            Security::Memory(_) => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    async fn over(
        stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    ) -> io::Result<Connection> {
        let (sender, driver) = handshake(TokioIo::new(stream)).await.map_err(io::Error::other)?;
        Ok(Connection { sender, driver: Some(Box::pin(driver)) })
    }

    /// Whether the connection has ended.
    pub(crate) fn has_ended(&self) -> bool {
        self.driver.is_none() || self.sender.is_closed()
    }

    /// Sends a request, and waits for the head of the answer.
    pub(crate) async fn send(
        &mut self,
        request: Request<Full<Bytes>>,
    ) -> hyper::Result<Response<Incoming>> {
        let answer = self.sender.send_request(request);
        driven(&mut self.driver, answer).await
    }

    /// The next part of an answer; `None` at its end.
    pub(crate) async fn data(&mut self, body: &mut Incoming) -> hyper::Result<Option<Bytes>> {
        loop {
            match driven(&mut self.driver, body.frame()).await {
                None => return Ok(None),
                Some(Err(error)) => return Err(error),
                Some(Ok(frame)) => {
                    if let Ok(data) = frame.into_data() {
                        return Ok(Some(data));
                    }
                }
            }
        }
    }
}

/// Runs the connection until `future` completes.
async fn driven<T>(driver: &mut Option<Driver>, future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    poll_fn(|context| {
        if let Some(running) = driver
            && running.as_mut().poll(context).is_ready()
        {
            *driver = None;
        }
        future.as_mut().poll(context)
    })
    .await
}
