//! What a platform provides for OpenGL.

use crate::library::Loaded;
use crate::outcome::Fault;

/// The library of a platform, its version, and the contexts that it could create.
pub(super) struct Opened<Context> {
    pub(super) library: Loaded,
    pub(super) version: Option<String>,
    pub(super) contexts: Vec<Result<Context, Fault>>,
}
