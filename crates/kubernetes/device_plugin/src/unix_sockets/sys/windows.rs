//! The Windows implementation: `AF_UNIX` sockets that `socket2` opens and tokio handles as TCP.
//!
//! tokio's `TcpStream` does not depend on the address family: it registers the handle with AFD, the
//! socket poll interface of Windows, and then calls `recv`, `send` and `shutdown`. Four things
//! differ from TCP and are handled here:
//!
//! * `accept` of a `TcpListener` parses the peer's address as an IP address and fails for any
//!   other address. So the listening socket is a `TcpStream` for tokio too. tokio waits until it is
//!   readable (AFD reports a pending connection as readable), and `socket2` accepts.
//! * `connect` is the blocking call, on a thread for blocking calls, one at a time for each path. A
//!   local connect completes immediately, unless the process that listens does not accept. Go
//!   programs such as the kubelet connect the same way.
//! * A socket has no mode. What a mode of 0600 means on Unix is set as the access control list of
//!   its file.
//! * Windows versions without `AF_UNIX` return `WSAEAFNOSUPPORT`, which gets an error text here.
//!
//! [`bind_to`], [`listen`], [`accept`] and [`connect_blocking`] take the address family from the address.

mod file;

use std::io;
use std::path::Path;
use std::sync::LazyLock;

use socket2::{Domain, SockAddr, SockRef, Socket, Type};
use tokio::io::Interest;
use tokio::net::TcpStream;

use crate::unix_sockets::one_per_path::OnePerPath;
use crate::unix_sockets::socket_file::remove_on_failure;

pub use crate::unix_sockets::access_rights::is_trusted;
pub(crate) use crate::unix_sockets::access_rights::{
    create_folder_for_owner, open_lock, restrict_to_owner,
};
pub(crate) use file::identity;

pub(crate) type Stream = TcpStream;

/// How many connections can wait for `accept`. The kubelet opens only a few.
const BACKLOG: i32 = 128;

/// `WSAEAFNOSUPPORT` of `winsock2.h`.
const WSAEAFNOSUPPORT: i32 = 10047;

const UNSUPPORTED: &str = "this host does not support AF_UNIX sockets (Windows 10 version 1803, \
    Windows Server 2019 or newer is needed)";

/// A listening socket. For tokio it is a stream that becomes readable when a connection is pending.
/// Nothing is read from it.
#[derive(Debug)]
pub(crate) struct Listener(TcpStream);

pub(crate) fn is_supported() -> bool {
    open(Domain::UNIX).is_ok()
}

/// Binds, restricts the access to the file, then listens. Before that, every connection is refused.
pub(crate) fn bind(path: &Path) -> io::Result<(Listener, io::Result<()>)> {
    let socket = bind_to(&SockAddr::unix(path)?)?;
    let restricted = restrict_to_owner(path);
    remove_on_failure(path, listen(socket)).map(|listener| (listener, restricted))
}

pub(crate) async fn accept(listener: &Listener) -> io::Result<Stream> {
    let (socket, _) =
        listener.0.async_io(Interest::READABLE, || SockRef::from(&listener.0).accept()).await?;
    register(socket)
}

pub(crate) async fn connect(path: &Path) -> io::Result<Stream> {
    static CONNECTS: LazyLock<OnePerPath> = LazyLock::new(OnePerPath::default);
    let address = SockAddr::unix(path)?;
    register(CONNECTS.run(path, move || connect_blocking(&address)).await??)
}

fn bind_to(address: &SockAddr) -> io::Result<Socket> {
    let socket = open(address.domain())?;
    socket.bind(address)?;
    Ok(socket)
}

fn listen(socket: Socket) -> io::Result<Listener> {
    socket.listen(BACKLOG)?;
    register(socket).map(Listener)
}

fn connect_blocking(address: &SockAddr) -> io::Result<Socket> {
    let socket = open(address.domain())?;
    socket.connect(address)?;
    Ok(socket)
}

fn open(domain: Domain) -> io::Result<Socket> {
    Socket::new(domain, Type::STREAM, None).map_err(|error| match error.raw_os_error() {
        Some(WSAEAFNOSUPPORT) => io::Error::new(io::ErrorKind::Unsupported, UNSUPPORTED),
        _ => error,
    })
}

/// Registers `socket` with the current tokio runtime.
fn register(socket: Socket) -> io::Result<TcpStream> {
    socket.set_nonblocking(true)?;
    TcpStream::from_std(socket.into())
}

#[cfg(test)]
mod tests {
    //! Runs the functions that `AF_UNIX` uses with IPv4 addresses, because Wine does not support
    //! `AF_UNIX`.

    use std::net::{Ipv4Addr, SocketAddr};
    use std::time::Duration;

    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    /// Long enough for a slow machine, and short enough to end a test that hangs.
    const DEADLINE: Duration = Duration::from_mins(2);

    fn any_port() -> SockAddr {
        SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into()
    }

    fn listener() -> (Listener, SockAddr) {
        let listener = listen(bind_to(&any_port()).unwrap()).unwrap();
        let address = SockRef::from(&listener.0).local_addr().unwrap();
        (listener, address)
    }

    async fn connect_to(address: SockAddr) -> io::Result<Stream> {
        register(tokio::task::spawn_blocking(move || connect_blocking(&address)).await??)
    }

    fn run<T>(test: impl Future<Output = T>) -> T {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async { tokio::time::timeout(DEADLINE, test).await }).unwrap()
    }

    #[test]
    fn transfers_bytes_in_both_directions_and_half_close_ends_one() {
        run(async {
            let (listener, address) = listener();
            let server = async {
                let mut stream = accept(&listener).await.unwrap();
                let mut request = Vec::new();
                stream.read_to_end(&mut request).await.unwrap();
                stream.write_all(&request).await.unwrap();
            };
            let client = async {
                let mut stream = connect_to(address).await.unwrap();
                let sent: Vec<u8> = (0..300_000u32).map(|i| i.to_le_bytes()[0]).collect();
                stream.write_all(&sent).await.unwrap();
                stream.shutdown().await.unwrap();
                let mut received = Vec::new();
                stream.read_to_end(&mut received).await.unwrap();
                assert_eq!(received, sent);
            };
            tokio::join!(server, client);
        });
    }

    #[test]
    fn accept_wakes_once_for_each_connection() {
        run(async {
            let (listener, address) = listener();
            for round in 0..20u8 {
                let waiting = accept(&listener);
                let arriving = async {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                    connect_to(address.clone()).await.unwrap()
                };
                let (accepted, mut client) = tokio::join!(waiting, arriving);
                client.write_all(&[round]).await.unwrap();
                assert_eq!(accepted.unwrap().read_u8().await.unwrap(), round);
            }
        });
    }

    #[test]
    fn accepts_all_connections_that_were_queued() {
        run(async {
            let (listener, address) = listener();
            let mut clients = Vec::new();
            for _ in 0..30 {
                clients.push(connect_to(address.clone()).await.unwrap());
            }
            for _ in 0..30 {
                accept(&listener).await.unwrap();
            }
        });
    }

    #[test]
    fn a_canceled_accept_loses_no_connection() {
        run(async {
            let (listener, address) = listener();
            let soon = Duration::from_millis(5);
            assert!(tokio::time::timeout(soon, accept(&listener)).await.is_err());
            let _client = connect_to(address).await.unwrap();
            accept(&listener).await.unwrap();
        });
    }

    #[test]
    fn refuses_connections_without_a_listener() {
        run(async {
            // The socket stays bound, so that no other program gets the port.
            let bound = bind_to(&any_port()).unwrap();
            let address = bound.local_addr().unwrap();
            let error = connect_to(address).await.unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
        });
    }

    /// The file is a plain one, because the address of the socket is not a path.
    #[test]
    fn a_socket_that_cannot_listen_leaves_no_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.sock");
        let datagrams = || {
            let socket = Socket::new(Domain::IPV4, Type::DGRAM, None).unwrap();
            socket.bind(&any_port()).unwrap();
            socket
        };
        run(async {
            std::fs::write(&path, "").unwrap();
            remove_on_failure(&path, listen(datagrams())).unwrap_err();
            assert!(!path.exists());
        });
    }

    #[test]
    fn reports_a_host_without_af_unix() {
        run(async {
            let path = std::env::temp_dir().join(format!("sockets-{}.sock", std::process::id()));
            if is_supported() {
                let (listener, restricted) = bind(&path).unwrap();
                restricted.unwrap();
                let (accepted, connected) = tokio::join!(accept(&listener), connect(&path));
                accepted.and(connected).unwrap();
                std::fs::remove_file(&path).unwrap();
            } else {
                for error in [bind(&path).unwrap_err(), connect(&path).await.unwrap_err()] {
                    assert_eq!(error.kind(), io::ErrorKind::Unsupported);
                    assert!(error.to_string().contains("does not support AF_UNIX"), "{error}");
                }
            }
        });
    }
}
