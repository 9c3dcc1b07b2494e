//! The list of the crates in the programs (SBOM), in the format of `CycloneDX` 1.5
//! (<https://cyclonedx.org/docs/1.5/json/>).
//!
//! GitHub's action attests it, and refuses a list without `serialNumber`.

use std::collections::BTreeSet;

use anyhow::Result;
use serde_json::json;

use super::notices::crates;
use crate::image::{Source, digest};

/// The list for the programs of packages, which are built for targets.
pub(super) fn text(programs: &[(&[&str], &str)], source: &Source) -> Result<String> {
    let mut all = BTreeSet::new();
    for (packages, target) in programs {
        all.extend(crates(packages, target)?);
    }
    let components = all.iter().map(|package| {
        let url = format!("pkg:cargo/{}@{}", package.name, package.version);
        json!({
            "type": "library",
            "bom-ref": url,
            "name": package.name,
            "version": package.version,
            // An older form of the same expression.
            "licenses": [{"expression": package.license.replace('/', " OR ")}],
            "purl": url,
        })
    });
    let components = json!(components.collect::<Vec<_>>());
    let document = json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "serialNumber": serial_number(&components.to_string()),
        "version": 1,
        "metadata": {
            "timestamp": source.date(),
            "component": {
                "type": "application",
                "name": "directx-device-plugin",
                "version": source.version,
            },
        },
        "components": components,
    });
    Ok(format!("{document:#}\n"))
}

/// A number that equal lists share, as a UUID of version 8 (RFC 9562).
fn serial_number(list: &str) -> String {
    let digest = digest(list.as_bytes());
    let hash = digest.trim_start_matches("sha256:");
    let [time, version, variant] = [&hash[8..12], &hash[13..16], &hash[17..20]];
    format!("urn:uuid:{}-{time}-8{version}-8{variant}-{}", &hash[..8], &hash[20..32])
}
