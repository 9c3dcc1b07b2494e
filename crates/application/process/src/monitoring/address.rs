//! The address of `--listen`.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};

use socket2::{Domain, Protocol, Socket, Type};

/// How many connections the operating system holds until they are accepted.
const BACKLOG: i32 = 64;

/// Why a text is not an address to listen on.
const EXPECTED: &str = "expected an IP address and a port, such as `127.0.0.1:9400` or \
    `[::1]:9400`, or `:9400` for every address of the host";

/// Parses an address. A port alone stands for every address of the host, IPv4 and IPv6, which is
/// `[::]`. Brackets are also allowed around an IPv4 address, so that a manifest can contain
/// `[$(NODE_IP)]:9400` for both kinds of addresses.
pub fn parse(text: &str) -> Result<SocketAddr, &'static str> {
    if let Some(port) = text.strip_prefix(':') {
        return format!("[::]:{port}").parse().map_err(|_| EXPECTED);
    }
    if let Some((ipv4, port)) = text.strip_prefix('[').and_then(|rest| rest.split_once("]:"))
        && ipv4.parse::<Ipv4Addr>().is_ok()
    {
        return format!("{ipv4}:{port}").parse().map_err(|_| EXPECTED);
    }
    text.parse().map_err(|_| EXPECTED)
}

/// Listens on an address.
///
/// # Errors
/// The port is in use, or the host does not have the address.
pub(super) fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    first_of(address, bind_one)
}

/// Binds this address or, for every address of a host without IPv6, every IPv4 address.
fn first_of<T>(
    address: SocketAddr,
    bind: impl Fn(SocketAddr, bool) -> io::Result<T>,
) -> io::Result<T> {
    let is_every = address.ip() == IpAddr::V6(Ipv6Addr::UNSPECIFIED);
    match bind(address, is_every) {
        Err(error) if is_every && !is_in_use(&error) => {
            bind((Ipv4Addr::UNSPECIFIED, address.port()).into(), false)
        }
        bound => bound,
    }
}

fn is_in_use(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::AddrInUse | io::ErrorKind::PermissionDenied)
}

fn bind_one(address: SocketAddr, with_ipv4: bool) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    if with_ipv4 {
        socket.set_only_v6(false)?;
    }
    // On Windows this option would let two processes share a port.
    #[cfg(unix)]
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_without_ipv6_listens_on_every_ipv4_address() {
        let bound = |address: &str, v6: io::ErrorKind| {
            first_of(address.parse().unwrap(), |address, with_ipv4| match address {
                SocketAddr::V6(_) => Err(v6.into()),
                SocketAddr::V4(_) => Ok((address.to_string(), with_ipv4)),
            })
        };
        let every = bound("[::]:9400", io::ErrorKind::Unsupported).unwrap();
        assert_eq!(every, ("0.0.0.0:9400".to_owned(), false));
        for (address, error) in [
            ("[::1]:9400", io::ErrorKind::Unsupported),
            ("[::]:9400", io::ErrorKind::AddrInUse),
            ("[::]:9400", io::ErrorKind::PermissionDenied),
        ] {
            assert_eq!(bound(address, error).unwrap_err().kind(), error, "{address}");
        }
    }

    #[test]
    fn addresses_are_parsed() {
        assert_eq!(parse(":9400"), Ok((Ipv6Addr::UNSPECIFIED, 9400).into()));
        assert_eq!(parse("[10.0.0.4]:9400"), Ok((Ipv4Addr::new(10, 0, 0, 4), 9400).into()));
        for text in ["127.0.0.1:0", "[::1]:9400", "[::]:0", "0.0.0.0:65535"] {
            assert_eq!(parse(text).unwrap().to_string(), text);
        }
        for text in [
            "",
            ":",
            "9400",
            ":+1",
            ":65536",
            "localhost:9400",
            "127.0.0.1",
            "::1:9400:",
            "[127.0.0.1]",
            "[127.0.0.1]0:1",
        ] {
            assert_eq!(parse(text), Err(EXPECTED), "{text}");
        }
    }

    #[test]
    fn a_port_in_use_is_an_error() {
        let first = bind(parse("127.0.0.1:0").unwrap()).unwrap();
        let taken = bind(first.local_addr().unwrap());
        assert_eq!(taken.unwrap_err().kind(), io::ErrorKind::AddrInUse);
    }

    #[test]
    fn every_address_includes_ipv4() {
        let listener = bind(parse(":0").unwrap()).unwrap();
        let port = listener.local_addr().unwrap().port();
        std::net::TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap();
    }
}
