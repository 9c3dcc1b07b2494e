//! The response of the Host Compute Service to a query for its basic properties.

use devices::HcsSchema;

/// The JSON that the service returns for the query `{"PropertyTypes":["Basic"]}`.
pub(crate) fn response(schemas: &[HcsSchema]) -> String {
    let versions: Vec<String> = schemas
        .iter()
        .map(|schema| format!(r#"{{"Major":{},"Minor":{}}}"#, schema.major, schema.minor))
        .collect();
    format!(r#"{{"Properties":[{{"SupportedSchemaVersions":[{}]}}]}}"#, versions.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schemas_are_listed_in_order() {
        let schemas = ["1.0", "2.5"].map(|text| text.parse().unwrap());
        let expected = r#"{"Properties":[{"SupportedSchemaVersions":[{"Major":1,"Minor":0},{"Major":2,"Minor":5}]}]}"#;
        assert_eq!(response(&schemas), expected);
    }
}
