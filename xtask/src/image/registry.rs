//! Registries, through skopeo, which also knows the logins of Docker and Podman.

use std::path::Path;
use std::process::{Command, Output};

use super::digest::digest;
use crate::process::stage;
use anyhow::{Context, Result, bail};

/// Whether a registry on this machine may be used without TLS.
#[derive(Clone, Copy)]
pub(super) struct Registry {
    pub(super) plain_http: bool,
}

/// `REGISTRY/REPOSITORY[:TAG]` as it is given in an option. skopeo checks the rest.
pub(super) fn with_registry(reference: &str) -> Result<String, String> {
    let (registry, _) = reference.split_once('/').unwrap_or_default();
    if registry == "localhost" || registry.contains(['.', ':']) {
        return Ok(reference.to_owned());
    }
    Err("it names no registry; an example is ghcr.io/owner/image:1.0".to_owned())
}

/// The repository of a reference, and its tag.
pub(super) fn split(reference: &str) -> (&str, Option<&str>) {
    let reference = reference.split('@').next().unwrap_or_default();
    match reference.rsplit_once(':') {
        Some((repository, tag)) if !tag.contains('/') => (repository, Some(tag)),
        _ => (reference, None),
    }
}

impl Registry {
    /// How to connect to the registry of `reference`, which may differ from the registry of
    /// `--push`. Only a registry on this machine can lack TLS.
    pub(super) fn of(reference: &str, plain_http: bool) -> Registry {
        let is_here = ["localhost", "127."].iter().any(|host| reference.starts_with(host));
        Registry { plain_http: plain_http && is_here }
    }

    /// The digest that the registry has for a tag.
    pub(super) fn digest(self, reference: &str) -> Result<Option<String>> {
        let output = self.inspect(reference, &["--raw"])?;
        let message = message(&output).to_lowercase();
        // The codes are those of the distribution specification; some registries answer only
        // with the status.
        let not_found = ["manifest unknown", "name unknown", "not found", "not known", "code: 404"];
        if !output.status.success() && not_found.iter().any(|text| message.contains(text)) {
            return Ok(None);
        }
        Ok(Some(digest(&check(output).with_context(|| format!("cannot read {reference}"))?)))
    }

    /// Copies the image `name` of the layout in `folder` to a digest and then to the tag, so a push
    /// that fails leaves the tag as it was.
    pub(super) fn push(self, folder: &Path, digest: &str, name: &str) -> Result<()> {
        stage(&format!("pushing {name}"));
        for target in [&*format!("{}@{digest}", split(name).0), name] {
            let mut copy = self.skopeo("copy", "--dest-tls-verify");
            // Without the option, skopeo may compress layers again, with another digest.
            copy.current_dir(folder).args(["--quiet", "--preserve-digests"]);
            copy.args([format!("oci:.:{name}"), format!("docker://{target}")]);
            check(copy.output()?).with_context(|| format!("cannot push {target}"))?;
        }
        Ok(())
    }

    /// The configuration of an image for Windows.
    pub(super) fn config(self, reference: &str) -> Result<Vec<u8>> {
        let output = self.inspect(reference, &["--config", "--raw"])?;
        check(output).with_context(|| format!("cannot read {reference}"))
    }

    /// Copies an image for Windows into a layout. Blobs that it has are not copied again.
    pub(super) fn pull(self, reference: &str, folder: &Path, name: &str) -> Result<()> {
        let mut copy = self.skopeo("copy", "--src-tls-verify");
        copy.current_dir(folder).arg("--quiet");
        copy.args([format!("docker://{reference}"), format!("oci:.:{name}")]);
        check(copy.output()?).with_context(|| format!("cannot copy {reference}")).map(drop)
    }

    fn inspect(self, reference: &str, options: &[&str]) -> Result<Output> {
        let mut inspect = self.skopeo("inspect", "--tls-verify");
        let output = inspect.args(options).arg(format!("docker://{reference}")).output().ok();
        output.context(
            "cannot run skopeo, which connects to registries\nhint: install it; in Debian the package is `skopeo`",
        )
    }

    fn skopeo(self, command: &str, tls_option: &str) -> Command {
        let mut skopeo = Command::new("skopeo");
        // A policy restricts which images are trusted; those that are pushed were built just now.
        // A copy may have an image of Windows, of several gigabytes.
        let timeout = if command == "copy" { "2h" } else { "5m" };
        skopeo.args(["--insecure-policy", "--command-timeout", timeout]);
        skopeo.args(["--override-os", "windows", "--override-arch", "amd64", command]);
        skopeo.args(self.plain_http.then(|| format!("{tls_option}=false")));
        skopeo
    }
}

/// What skopeo prints, or its error with a hint.
fn check(output: Output) -> Result<Vec<u8>> {
    if output.status.success() {
        return Ok(output.stdout);
    }
    let message = message(&output);
    let lower = message.to_lowercase();
    let denied = ["unauthorized", "authentication required", "denied", "forbidden"];
    let hint = if denied.iter().any(|text| lower.contains(text)) {
        "\nhint: log in with `skopeo login REGISTRY` as a user who may push"
    } else if lower.contains("server gave http response to https client") {
        "\nhint: --plain-http connects without TLS"
    } else {
        ""
    };
    bail!("{message}{hint}")
}

/// The last line that skopeo printed, without its time and level.
fn message(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stderr);
    let line = text.trim_end().lines().last().unwrap_or_default();
    let message = line.split_once("msg=").map_or(line, |(_, message)| message);
    message.trim_matches('"').replace("\\n", " ").replace("\\\"", "\"")
}
