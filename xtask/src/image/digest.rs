//! Digests of OCI documents and blobs.

use sha2::{Digest, Sha256};

/// A digest as OCI documents write it, such as `sha256:e3b0c442…`.
pub(crate) fn digest(bytes: &[u8]) -> String {
    let hash = Sha256::digest(bytes);
    hash.iter().fold("sha256:".to_owned(), |text, byte| format!("{text}{byte:02x}"))
}

/// The path of a blob in a layout.
pub(super) fn blob(digest: &str) -> String {
    format!("blobs/{}", digest.replace(':', "/"))
}
