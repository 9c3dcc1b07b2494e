//! The schema versions that the Host Compute Service supports, in its JSON response.

use host::HcsSchema;

/// Parses `{"Properties":[{"SupportedSchemaVersions":[{"Major":2,"Minor":5}]}]}`.
/// `None` for any other text.
#[must_use]
pub fn parse(answer: &str) -> Option<Vec<HcsSchema>> {
    let document: serde_json::Value = serde_json::from_str(answer).ok()?;
    let versions = document.pointer("/Properties/0/SupportedSchemaVersions")?;
    versions.as_array()?.iter().map(schema).collect()
}

fn schema(version: &serde_json::Value) -> Option<HcsSchema> {
    Some(HcsSchema { major: part(version, "Major")?, minor: part(version, "Minor")? })
}

fn part(version: &serde_json::Value, name: &str) -> Option<u32> {
    u32::try_from(version.get(name)?.as_u64()?).ok()
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
    fn other_responses_are_refused() {
        for answer in [
            "",
            "{}",
            r#"{"Properties":[]}"#,
            r#"{"Properties":[{"SupportedSchemaVersions":[{"Major":2}]}]}"#,
            r#"{"Properties":[{"SupportedSchemaVersions":[{"Major":-2,"Minor":0}]}]}"#,
            r#"{"Properties":[{"SupportedSchemaVersions":2}]}"#,
        ] {
            assert_eq!(parse(answer), None, "{answer}");
        }
    }
}
