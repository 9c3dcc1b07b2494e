//! The schema versions of the Host Compute Service.
//!
//! On Windows `schemas` asks the service; its answer is read here, on any OS.

#[cfg(any(windows, test))]
use devices::HcsSchema;

/// The query that `HcsGetServiceProperties` answers with the supported schemas.
#[cfg(windows)]
pub(crate) const QUERY: &str = r#"{"PropertyTypes":["Basic"]}"#;

/// Why the schema versions are not known.
#[derive(Debug, thiserror::Error)]
pub enum HcsError {
    /// This Windows has no Host Compute Service, or its feature is not installed.
    #[error("this host has no Host Compute Service (computecore.dll and vmcompute.dll)")]
    Missing(#[source] std::io::Error),
    /// The service refused, or is not running.
    #[error("the Host Compute Service does not tell its schema versions")]
    Refused(#[source] std::io::Error),
    /// The service answered with something else.
    #[error("the Host Compute Service answered `{answer}`, which lists no schema versions")]
    Unreadable {
        /// The answer.
        answer: String,
        /// Where it stops being JSON, if it does.
        source: Option<serde_json::Error>,
    },
}

/// The schema versions that this host's service supports, in its order.
///
/// # Errors
/// No service, no right to ask it, or an answer that cannot be read.
#[cfg(windows)]
pub fn schemas() -> Result<Vec<HcsSchema>, HcsError> {
    parse(&crate::sys::hcs::service_properties()?)
}

/// Reads `{"Properties":[{"SupportedSchemaVersions":[{"Major":2,"Minor":5}]}]}`.
#[cfg(any(windows, test))]
fn parse(answer: &str) -> Result<Vec<HcsSchema>, HcsError> {
    let unreadable = |source| HcsError::Unreadable { answer: answer.to_owned(), source };
    let document: serde_json::Value =
        serde_json::from_str(answer).map_err(|e| unreadable(Some(e)))?;
    document
        .pointer("/Properties/0/SupportedSchemaVersions")
        .and_then(|versions| versions.as_array()?.iter().map(schema).collect())
        .ok_or_else(|| unreadable(None))
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
    fn schemas_are_read_in_order() {
        let answer = r#"{"Properties":[{"SupportedSchemaVersions":[{"Major":1,"Minor":0},{"Major":2,"Minor":5}]}]}"#;
        let schemas = parse(answer).unwrap();
        assert_eq!(schemas.iter().map(ToString::to_string).collect::<Vec<_>>(), ["1.0", "2.5"]);
    }

    #[test]
    fn another_answer_is_shown() {
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
