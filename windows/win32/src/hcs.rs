//! The schema versions of the Host Compute Service.
//!
//! The service exists only on Windows, and it can hang: `schemas` waits for a limited time,
//! `wait_for_schemas` without a limit. The response is parsed on any operating system.

#[cfg(any(windows, test))]
use devices::HcsSchema;

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

/// How long [`schemas`] waits. The service answers in milliseconds; if it has to be started
/// first, in a second or two.
#[cfg(windows)]
const LIMIT: std::time::Duration = std::time::Duration::from_secs(10);

/// The schema versions that the service of this host supports, in the order of the service.
/// Waits for at most ten seconds.
///
/// # Errors
/// The service is missing, denies access, does not respond, or returns an invalid response.
#[cfg(windows)]
pub fn schemas() -> Result<Vec<HcsSchema>, HcsError> {
    let (send, answer) = std::sync::mpsc::channel();
    // The caller may have ended.
    let thread = std::thread::spawn(move || _ = send.send(wait_for_schemas()));
    let schemas = answer.recv_timeout(LIMIT).map_err(|_| HcsError::NoAnswer(LIMIT))?;
    // The process may exit next. Wine loses the exit status if a thread ends at that moment.
    let _ = thread.join();
    schemas
}

/// As [`schemas`], without a time limit: it returns when the service responds, perhaps never.
///
/// # Errors
/// The service is missing, denies access, or returns an invalid response.
#[cfg(windows)]
pub fn wait_for_schemas() -> Result<Vec<HcsSchema>, HcsError> {
    parse(&crate::sys::hcs::service_properties()?)
}

/// Parses `{"Properties":[{"SupportedSchemaVersions":[{"Major":2,"Minor":5}]}]}`.
#[cfg(any(windows, test))]
fn parse(answer: &str) -> Result<Vec<HcsSchema>, HcsError> {
    let document: serde_json::Value = serde_json::from_str(answer).unwrap_or_default();
    document
        .pointer("/Properties/0/SupportedSchemaVersions")
        .and_then(|versions| versions.as_array()?.iter().map(schema).collect())
        .ok_or_else(|| HcsError::Unreadable(answer.to_owned()))
}

#[cfg(any(windows, test))]
fn schema(version: &serde_json::Value) -> Option<HcsSchema> {
    let part = |name| u32::try_from(version.get(name)?.as_u64()?).ok();
    Some(HcsSchema { major: part("Major")?, minor: part("Minor")? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schemas_are_parsed_in_order() {
        let answer = r#"{"Properties":[{"SupportedSchemaVersions":[{"Major":1,"Minor":0},{"Major":2,"Minor":5}]}]}"#;
        let schemas = parse(answer).unwrap();
        assert_eq!(schemas.iter().map(ToString::to_string).collect::<Vec<_>>(), ["1.0", "2.5"]);
    }

    #[test]
    fn the_error_shows_an_invalid_response() {
        for answer in [
            "",
            "{}",
            r#"{"Properties":[]}"#,
            r#"{"Properties":[{"SupportedSchemaVersions":[{"Major":2}]}]}"#,
            r#"{"Properties":[{"SupportedSchemaVersions":[{"Major":-2,"Minor":0}]}]}"#,
            r#"{"Properties":[{"SupportedSchemaVersions":2}]}"#,
        ] {
            let error = parse(answer).unwrap_err();
            assert!(error.to_string().contains(&format!("`{answer}`")), "{error}");
        }
    }
}
