//! The Windows side: `AF_UNIX` sockets opened with `socket2` and lent to tokio as TCP.
//!
//! tokio's `TcpStream` never looks at the address family: it registers the
//! handle with AFD, Windows' socket poll, and then calls `recv`, `send` and
//! `shutdown`. Three things differ from TCP and are done here:
//!
//! * `accept` of a `TcpListener` reads the peer's address as an IP address and
//!   fails for any other. So the listening socket too is a `TcpStream` to tokio,
//!   which only waits until it is readable (AFD reports a waiting connection as
//!   that), and `socket2` accepts.
//! * `connect` is the blocking call, on a thread for such calls: a local connect is
//!   over at once, and Go programs, the kubelet among them, connect the same way.
//! * A Windows without `AF_UNIX` answers `WSAEAFNOSUPPORT`, which is said in words.
//!
//! [`listen_on`], [`accept`] and [`connect_to`] take the family from the address.

use std::io;
use std::path::Path;

use socket2::{Domain, SockAddr, SockRef, Socket, Type};
use tokio::io::Interest;
use tokio::net::TcpStream;

pub(crate) type Stream = TcpStream;

/// Connections that wait for `accept`; the kubelet opens a handful.
const BACKLOG: i32 = 128;

/// `WSAEAFNOSUPPORT` of `winsock2.h`.
const WSAEAFNOSUPPORT: i32 = 10047;

/// A listening socket. tokio knows it as a stream that becomes readable when a
/// connection waits; nothing is ever read from it.
#[derive(Debug)]
pub(crate) struct Listener(TcpStream);

pub(crate) fn is_supported() -> bool {
    open(Domain::UNIX).is_ok()
}

pub(crate) fn bind(path: &Path) -> io::Result<Listener> {
    listen_on(&SockAddr::unix(path)?)
}

pub(crate) async fn accept(listener: &Listener) -> io::Result<Stream> {
    let accept = || SockRef::from(&listener.0).accept();
    let (socket, _) = listener.0.async_io(Interest::READABLE, accept).await?;
    lend(socket)
}

pub(crate) async fn connect(path: &Path) -> io::Result<Stream> {
    connect_to(SockAddr::unix(path)?).await
}

fn listen_on(address: &SockAddr) -> io::Result<Listener> {
    let socket = open(address.domain())?;
    socket.bind(address)?;
    socket.listen(BACKLOG)?;
    lend(socket).map(Listener)
}

async fn connect_to(address: SockAddr) -> io::Result<Stream> {
    let connect = move || -> io::Result<Socket> {
        let socket = open(address.domain())?;
        socket.connect(&address)?;
        Ok(socket)
    };
    lend(tokio::task::spawn_blocking(connect).await??)
}

fn open(domain: Domain) -> io::Result<Socket> {
    Socket::new(domain, Type::STREAM, None).map_err(|error| match error.raw_os_error() {
        Some(WSAEAFNOSUPPORT) => io::Error::new(io::ErrorKind::Unsupported, Unsupported(error)),
        _ => error,
    })
}

/// Hands `socket` to the runtime this runs in.
fn lend(socket: Socket) -> io::Result<TcpStream> {
    socket.set_nonblocking(true)?;
    TcpStream::from_std(socket.into())
}

/// This Windows has no `AF_UNIX`; holds what it said.
#[derive(Debug)]
struct Unsupported(io::Error);

impl std::fmt::Display for Unsupported {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("this host has no AF_UNIX sockets (Windows has them from version 1803 on)")
    }
}

impl std::error::Error for Unsupported {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.0)
    }
}

#[cfg(test)]
mod tests {
    //! The shim over IPv4, which Wine has: the very functions that `AF_UNIX` uses,
    //! given another address.

    use std::net::{Ipv4Addr, SocketAddr};
    use std::time::Duration;

    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    /// Long enough for a slow machine, short enough to end a hang.
    const DEADLINE: Duration = Duration::from_secs(20);

    fn listen() -> (Listener, SockAddr) {
        let any_port = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let listener = listen_on(&any_port.into()).unwrap();
        let address = SockRef::from(&listener.0).local_addr().unwrap();
        (listener, address)
    }

    fn run<T>(test: impl Future<Output = T>) -> T {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async { tokio::time::timeout(DEADLINE, test).await }).unwrap()
    }

    #[test]
    fn bytes_go_both_ways_and_half_close_ends_one_direction() {
        run(async {
            let (listener, address) = listen();
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
    fn a_listener_that_waits_is_woken_once_for_each_connection() {
        run(async {
            let (listener, address) = listen();
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
    fn connections_that_queued_before_accept_are_all_accepted() {
        run(async {
            let (listener, address) = listen();
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
    fn an_accept_that_was_given_up_loses_no_connection() {
        run(async {
            let (listener, address) = listen();
            let soon = Duration::from_millis(5);
            assert!(tokio::time::timeout(soon, accept(&listener)).await.is_err());
            let _client = connect_to(address).await.unwrap();
            accept(&listener).await.unwrap();
        });
    }

    #[test]
    fn connecting_where_nobody_listens_is_refused() {
        run(async {
            let (listener, address) = listen();
            drop(listener);
            let error = connect_to(address).await.unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
        });
    }

    #[test]
    fn a_host_without_af_unix_says_so() {
        run(async {
            let path = std::env::temp_dir().join(format!("uds-{}.sock", std::process::id()));
            if is_supported() {
                let listener = bind(&path).unwrap();
                let (accepted, connected) = tokio::join!(accept(&listener), connect(&path));
                accepted.and(connected).unwrap();
                std::fs::remove_file(&path).unwrap();
            } else {
                for error in [bind(&path).unwrap_err(), connect(&path).await.unwrap_err()] {
                    assert_eq!(error.kind(), io::ErrorKind::Unsupported);
                    assert!(error.to_string().contains("no AF_UNIX"), "{error}");
                }
            }
        });
    }
}
