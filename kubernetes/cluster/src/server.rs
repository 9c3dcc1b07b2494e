//! Where the API server is, and how it and this program prove who they are.

use std::fmt;
use std::path::PathBuf;

use http::Uri;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::credentials::Credentials;

/// The access to an API server.
pub struct Access {
    pub(crate) server: Server,
    /// The authorities that may certify the server.
    pub(crate) authorities: Vec<CertificateDer<'static>>,
    pub(crate) client: Option<ClientCertificate>,
    pub(crate) credentials: Credentials,
    pub(crate) namespace: String,
}

impl Access {
    /// The namespace of this program's own objects.
    #[must_use]
    pub fn namespace(&self) -> &str {
        &self.namespace
    }
}

/// A certificate of this program, and its key.
pub(crate) struct ClientCertificate {
    pub(crate) chain: Vec<CertificateDer<'static>>,
    pub(crate) key: PrivateKeyDer<'static>,
}

/// The address of an API server.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Server {
    /// A name or an address without brackets.
    pub(crate) host: String,
    pub(crate) port: u16,
    /// What precedes `/api`, without a slash at its end.
    pub(crate) prefix: String,
    /// The name that the server's certificate must have.
    pub(crate) certified_name: String,
}

impl Server {
    /// The server with the URL `text`.
    pub(crate) fn parse(text: &str) -> Option<Server> {
        let uri: Uri = text.trim().parse().ok()?;
        if uri.scheme_str() != Some("https") || uri.query().is_some() {
            return None;
        }
        let authority = uri.authority()?;
        let host = authority.host().trim_start_matches('[').trim_end_matches(']').to_owned();
        if host.is_empty() || authority.as_str().contains('@') {
            return None;
        }
        Some(Server {
            port: authority.port_u16().unwrap_or(443),
            prefix: uri.path().trim_end_matches('/').to_owned(),
            certified_name: host.clone(),
            host,
        })
    }

    /// The value of the header `Host`.
    pub(crate) fn authority(&self) -> String {
        if self.host.contains(':') {
            format!("[{}]:{}", self.host, self.port)
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }
}

impl fmt::Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "https://{}{}", self.authority(), self.prefix)
    }
}

/// There is no access to an API server.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// A file cannot be read.
    #[error("cannot read `{}`", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The kubeconfig file is not one.
    #[error(transparent)]
    Malformed(#[from] documents::ReadError),
    /// A value cannot be used.
    #[error("{place}: {what}")]
    Value {
        /// The file and the key.
        place: String,
        /// What is wrong with it.
        what: String,
        /// What to do.
        hint: &'static str,
    },
    /// This is not a pod.
    #[error("{0} is not set, so this program does not run in a pod")]
    NotInCluster(&'static str),
}

impl ConfigError {
    /// What to do.
    #[must_use]
    pub fn hint(&self) -> Option<&str> {
        match self {
            ConfigError::File { .. } => {
                Some("name an existing file with `--kubeconfig`, or mount the account of the pod")
            }
            ConfigError::Malformed(error) => error.hint(),
            ConfigError::Value { hint, .. } => Some(hint),
            ConfigError::NotInCluster(_) => Some(
                "name a kubeconfig file with `--kubeconfig FILE`, or use `--print` or `--output FILE`, \
                 which need no cluster",
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_an_https_url() {
        for (text, host, port, prefix) in [
            ("https://10.0.0.1", "10.0.0.1", 443, ""),
            ("https://api.example:6443/", "api.example", 6443, ""),
            ("https://[fd00::1]:6443", "fd00::1", 6443, ""),
            ("https://rancher/k8s/clusters/c-1/", "rancher", 443, "/k8s/clusters/c-1"),
        ] {
            let server = Server::parse(text).unwrap_or_else(|| panic!("{text}"));
            assert_eq!((&*server.host, server.port, &*server.prefix), (host, port, prefix));
        }
        for bad in ["", "10.0.0.1", "http://10.0.0.1", "https://", "https://a@b", "https://a/?b"] {
            assert_eq!(Server::parse(bad), None, "{bad}");
        }
        let six = Server::parse("https://[fd00::1]:6443").map(|server| server.to_string());
        assert_eq!(six.as_deref(), Some("https://[fd00::1]:6443"));
    }
}
