//! What a registry has, read with skopeo.

use std::path::Path;
use std::process::Command;

use anyhow::Result;
use serde_json::Value;

use super::build::{Layout, run};
use crate::image::Digest;

/// The manifest that `image` names, with its digest.
pub(super) fn inspect(image: &str) -> Result<(Value, String)> {
    let mut skopeo = Command::new("skopeo");
    skopeo.args(["inspect", "--raw", "--tls-verify=false"]).arg(format!("docker://{image}"));
    let text = run(&mut skopeo)?;
    Ok((serde_json::from_str(&text)?, Digest::of(text.as_bytes()).to_string()))
}

/// Downloads `image` as a layout into `folder`.
pub(super) fn download(image: &str, folder: &Path) -> Result<Layout> {
    let mut skopeo = Command::new("skopeo");
    skopeo.args(["--insecure-policy", "--override-os", "windows", "copy"]);
    skopeo.args(["--src-tls-verify=false", &format!("docker://{image}")]);
    run(skopeo.arg(format!("oci:{}", folder.display())))?;
    Ok(Layout { folder: folder.to_owned() })
}

/// Uploads a layout as `image`.
pub(super) fn upload(layout: &Path, image: &str) -> Result<()> {
    let mut skopeo = Command::new("skopeo");
    skopeo.args(["--insecure-policy", "copy", "--dest-tls-verify=false"]);
    skopeo.arg(format!("oci:{}", layout.display())).arg(format!("docker://{image}"));
    run(&mut skopeo).map(drop)
}

/// The tags of a repository.
pub(super) fn tags(repository: &str) -> Result<Vec<String>> {
    let mut skopeo = Command::new("skopeo");
    skopeo.args(["list-tags", "--tls-verify=false", &format!("docker://{repository}")]);
    let list: Value = serde_json::from_str(&run(&mut skopeo)?)?;
    let tags = list["Tags"].as_array().cloned().unwrap_or_default();
    Ok(tags.iter().filter_map(Value::as_str).map(str::to_owned).collect())
}
