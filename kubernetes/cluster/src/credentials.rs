//! What this program proves its identity with, in addition to a certificate.

use std::path::PathBuf;

use crate::ClusterError;

/// The longest token, in bytes. Tokens of service accounts have about one KiB.
const MAX_TOKEN: usize = 64 * 1024;

/// The token of a request.
pub(crate) enum Credentials {
    /// Only the certificate counts.
    None,
    /// A token that does not change.
    Token(String),
    /// A token that is read for each request, because the kubelet replaces it before it expires.
    File(PathBuf),
}

impl Credentials {
    /// The value of the header `Authorization`.
    pub(crate) fn header(&self) -> Result<Option<String>, ClusterError> {
        let token = match self {
            Credentials::None => return Ok(None),
            Credentials::Token(token) => token.clone(),
            Credentials::File(path) => {
                let failed = |source| ClusterError::Token { path: path.clone(), source };
                let bytes = documents::read_bytes(path).map_err(failed)?;
                let text = String::from_utf8(bytes).ok().filter(|text| text.len() <= MAX_TOKEN);
                text.ok_or_else(|| failed(std::io::ErrorKind::InvalidData.into()))?
            }
        };
        Ok(Some(format!("Bearer {}", token.trim())))
    }
}
