//! The response of the Host Compute Service to a query for its basic properties.

use host::HcsSchema;

/// The JSON that the service returns for the query `{"PropertyTypes":["Basic"]}`.
pub(crate) fn response(schemas: &[HcsSchema]) -> String {
    let versions: Vec<String> = schemas
        .iter()
        .map(|schema| format!(r#"{{"Major":{},"Minor":{}}}"#, schema.major, schema.minor))
        .collect();
    format!(r#"{{"Properties":[{{"SupportedSchemaVersions":[{}]}}]}}"#, versions.join(","))
}
