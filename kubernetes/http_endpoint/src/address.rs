//! The address to listen on.

use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::str::FromStr;

use socket2::{Domain, Protocol, Socket, Type};

/// How many connections the operating system holds until they are accepted.
const BACKLOG: i32 = 64;

/// An address and a port to listen on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ListenAddress {
    /// One address.
    One(SocketAddr),
    /// Every address of the host, IPv4 and IPv6.
    Every {
        /// The port.
        port: u16,
    },
}

/// Why a text is not a [`ListenAddress`].
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "expected an IP address and a port, such as `127.0.0.1:9400` or `[::1]:9400`, or `:9400` for \
     every address of the host"
)]
pub struct ListenAddressError;

impl FromStr for ListenAddress {
    type Err = ListenAddressError;

    fn from_str(text: &str) -> Result<Self, ListenAddressError> {
        if let Some(port) = text.strip_prefix(':') {
            // `u16::from_str` accepts a sign.
            let digits = !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit());
            let port = digits.then(|| port.parse().ok()).flatten().ok_or(ListenAddressError)?;
            return Ok(ListenAddress::Every { port });
        }
        text.parse().map(ListenAddress::One).map_err(|_| ListenAddressError)
    }
}

impl fmt::Display for ListenAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ListenAddress::One(address) => address.fmt(f),
            ListenAddress::Every { port } => write!(f, ":{port}"),
        }
    }
}

impl ListenAddress {
    /// Listens on the address.
    ///
    /// # Errors
    /// The port is in use, or the host does not have the address.
    pub fn bind(self) -> io::Result<TcpListener> {
        match self {
            ListenAddress::One(address) => bind(address, None),
            ListenAddress::Every { port } => {
                let every = |ip| SocketAddr::new(ip, port);
                let both = bind(every(IpAddr::V6(Ipv6Addr::UNSPECIFIED)), Some(false));
                match both {
                    Err(error) if !is_in_use(&error) => {
                        // A host without IPv6.
                        bind(every(IpAddr::V4(Ipv4Addr::UNSPECIFIED)), None)
                    }
                    both => both,
                }
            }
        }
    }
}

fn is_in_use(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::AddrInUse | io::ErrorKind::PermissionDenied)
}

fn bind(address: SocketAddr, only_v6: Option<bool>) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    if let Some(only_v6) = only_v6 {
        socket.set_only_v6(only_v6)?;
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
    fn addresses_are_parsed() {
        let parse = |text: &str| text.parse::<ListenAddress>();
        assert_eq!(parse(":9400"), Ok(ListenAddress::Every { port: 9400 }));
        for text in ["127.0.0.1:0", "[::1]:9400", ":0", "0.0.0.0:65535"] {
            assert_eq!(parse(text).unwrap().to_string(), text);
        }
        for text in ["", ":", "9400", ":+1", ":65536", "localhost:9400", "127.0.0.1", "::1:9400:"] {
            assert_eq!(parse(text), Err(ListenAddressError), "{text}");
        }
    }

    #[test]
    fn a_port_in_use_is_an_error() {
        let first = "127.0.0.1:0".parse::<ListenAddress>().unwrap().bind().unwrap();
        let taken = ListenAddress::One(first.local_addr().unwrap());
        assert_eq!(taken.bind().unwrap_err().kind(), io::ErrorKind::AddrInUse);
    }

    #[test]
    fn every_address_includes_ipv4() {
        let listener = ListenAddress::Every { port: 0 }.bind().unwrap();
        let port = listener.local_addr().unwrap().port();
        std::net::TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap();
    }
}
