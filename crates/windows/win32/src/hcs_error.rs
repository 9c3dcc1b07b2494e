/// The reason why the schema versions are unknown.
#[derive(Debug, thiserror::Error)]
pub enum HcsError {
    /// This Windows has no Host Compute Service, or its feature is not installed.
    #[error("this host has no Host Compute Service (vmcompute.dll)")]
    Missing(#[source] std::io::Error),
    /// The service rejected the query, or it is not running.
    #[error("the Host Compute Service does not report its schema versions")]
    Refused(#[source] std::io::Error),
    /// The service did not respond in time.
    #[error("the Host Compute Service does not respond within {} s", .0.as_secs())]
    NoAnswer(std::time::Duration),
    /// The response contains no schema versions.
    #[error("the Host Compute Service returned `{0}`, which contains no schema versions")]
    Unreadable(String),
}
