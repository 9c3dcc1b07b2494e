//! TLS to the API server: the server must have a certificate of the cluster's authority.

use std::io;
use std::sync::Arc;

use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use crate::server::Access;

/// How this program connects.
///
/// # Errors
/// The authorities or the program's own certificate cannot be used.
pub(crate) fn connector(access: &Access) -> io::Result<TlsConnector> {
    let mut roots = RootCertStore::empty();
    let (added, _unusable) = roots.add_parsable_certificates(access.authorities.iter().cloned());
    if added == 0 {
        return Err(io::Error::other("the certificate authority has no usable certificate"));
    }
    let provider = Arc::new(ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?
        .with_root_certificates(roots);
    let config = match &access.client {
        None => config.with_no_client_auth(),
        Some(client) => config
            .with_client_auth_cert(client.chain.clone(), client.key.clone_key())
            .map_err(io::Error::other)?,
    };
    Ok(TlsConnector::from(Arc::new(config)))
}
