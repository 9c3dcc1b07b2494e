//! Pushes an image and its referrers with skopeo.
//!
//! Everything is pushed by its digest first, and the tag is set last. Whoever pulls the tag
//! therefore gets either the earlier image or the complete new one, also if the push fails.

use std::path::Path;
use std::process::{Command, Output};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use super::digest::Digest;
use super::options::{ExistingTag, PushOptions, Transport};
use super::reference::Reference;
use crate::process;

/// How long one call of skopeo may take: a layer is a few megabytes.
const TIME_LIMIT: Duration = Duration::from_secs(300);

/// What is pushed. The layouts lie in one folder.
pub(super) struct Content<'a> {
    pub(super) folder: &'a Path,
    /// The folder name of the image's layout.
    pub(super) image: &'a str,
    pub(super) tag: &'a str,
    pub(super) digest: &'a str,
    /// The folder name of the referrers' layout.
    pub(super) referrers: &'a str,
    /// The names of the artifacts in it, with their digests.
    pub(super) artifacts: &'a [(&'static str, String)],
    pub(super) index_tag: &'a str,
}

/// Fails unless skopeo is installed.
pub(super) fn require_skopeo() -> Result<()> {
    if process::stdout(Command::new("skopeo").arg("--version")).is_none() {
        bail!(
            "skopeo is not installed; it pushes images\nhint: install it; in Debian the package is `skopeo`"
        );
    }
    Ok(())
}

/// Pushes `content` as `options` says, and returns the complete name of the image.
pub(super) fn push(content: &Content<'_>, options: &PushOptions) -> Result<String> {
    let target = Reference { tag: Some(content.tag.to_owned()), ..options.target.clone() };
    let skopeo = Skopeo { folder: content.folder, options };
    if options.existing == ExistingTag::Keep {
        skopeo.check_tag(&target, content.digest)?;
    }
    let repository = Reference { tag: None, ..target.clone() };
    let by_digest = |digest: &str| format!("{repository}@{digest}");
    skopeo.copy(&[], content.image, content.tag, &by_digest(content.digest))?;
    for (name, digest) in content.artifacts {
        skopeo.copy(&[], content.referrers, name, &by_digest(digest))?;
    }
    let index = Reference { tag: Some(content.index_tag.to_owned()), ..target.clone() };
    skopeo.copy_index(content.referrers, content.index_tag, &index.to_string())?;
    skopeo.copy(&[], content.image, content.tag, &target.to_string())?;
    Ok(format!("{target}@{}", content.digest))
}

struct Skopeo<'a> {
    folder: &'a Path,
    options: &'a PushOptions,
}

impl Skopeo<'_> {
    /// Fails if the tag names an image with another digest.
    fn check_tag(&self, target: &Reference, digest: &str) -> Result<()> {
        let mut inspect = self.command(&["inspect", "--raw"]);
        inspect.args(self.tls_option("--tls-verify")).arg(format!("docker://{target}"));
        let output = process::output_within(TIME_LIMIT, &mut inspect)?;
        if !output.status.success() {
            let message = message(&output);
            if is_not_found(&message) {
                return Ok(());
            }
            return Err(self.failure(&message)).with_context(|| format!("cannot read {target}"));
        }
        let found = Digest::of(&output.stdout).to_string();
        if found != digest {
            bail!(
                "{target} exists with the digest {found}; this image has {digest}\nhint: use another tag, or --replace"
            );
        }
        Ok(())
    }

    /// Copies the manifest `name` of the layout `layout` to `target`, with what it needs.
    fn copy(&self, arguments: &[&str], layout: &str, name: &str, target: &str) -> Result<()> {
        // Without the option, skopeo may compress layers again, with another digest.
        let mut copy = self.command(&["copy", "--quiet", "--preserve-digests"]);
        copy.args(arguments).args(self.tls_option("--dest-tls-verify"));
        copy.arg(format!("oci:{layout}:{name}")).arg(format!("docker://{target}"));
        let output = process::output_within(TIME_LIMIT, &mut copy)?;
        if !output.status.success() {
            let error = self.failure(&message(&output));
            return Err(error).with_context(|| format!("cannot push {target}"));
        }
        Ok(())
    }

    /// Copies the list of referrers. skopeo before 1.14 writes an index anew and leaves out
    /// the types of the artifacts, so it cannot keep the digest.
    fn copy_index(&self, layout: &str, name: &str, target: &str) -> Result<()> {
        let copy = |arguments: &[&str]| self.copy(arguments, layout, name, target);
        let Err(error) = copy(&["--all"]) else { return Ok(()) };
        if !format!("{error:#}").contains("we cannot modify it") {
            return Err(error);
        }
        eprintln!(
            "warning: this skopeo leaves out the types of the artifacts in {target}\nhint: use skopeo 1.14 or newer"
        );
        let mut command = self.command(&["copy", "--quiet", "--all"]);
        command.args(self.tls_option("--dest-tls-verify"));
        command.arg(format!("oci:{layout}:{name}")).arg(format!("docker://{target}"));
        let output = process::output_within(TIME_LIMIT, &mut command)?;
        if output.status.success() {
            return Ok(());
        }
        Err(self.failure(&message(&output))).with_context(|| format!("cannot push {target}"))
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut skopeo = Command::new("skopeo");
        // A policy restricts which images are trusted; these were built just now. The paths
        // of layouts are relative, because skopeo splits them at a colon.
        skopeo.current_dir(self.folder).args(["--insecure-policy", "--override-os", "windows"]);
        skopeo.args(["--override-arch", "amd64"]).args(arguments);
        skopeo
    }

    fn tls_option(&self, name: &str) -> Option<String> {
        let is_plain = self.options.transport == Transport::PlainHttp;
        is_plain.then(|| format!("{name}=false"))
    }

    /// The error for what skopeo printed, with a hint where the reason is known.
    fn failure(&self, message: &str) -> anyhow::Error {
        let registry = &self.options.target.registry;
        let hint = if is_denied(message) {
            format!("\nhint: log in with `skopeo login {registry}` as a user who may push")
        } else if message.contains("server gave HTTP response to HTTPS client") {
            "\nhint: --plain-http connects without TLS".to_owned()
        } else {
            "\nhint: nothing was tagged; run the same command again to continue".to_owned()
        };
        anyhow::anyhow!("{message}{hint}")
    }
}

/// What skopeo printed last, without its log prefix.
fn message(output: &Output) -> String {
    let text = process::last_lines(&output.stderr, 1);
    let text = text.split_once("msg=").map_or(text.as_str(), |(_, message)| message);
    let text = text.trim_matches('"').replace("\\n", " ").replace("\\\"", "\"");
    let text = text.trim_end_matches([',', ' ']);
    if text.is_empty() { format!("skopeo failed with {}", output.status) } else { text.to_owned() }
}

/// Whether the registry has no such image. The codes are those of the distribution
/// specification; some registries answer only with the status.
fn is_not_found(message: &str) -> bool {
    let message = message.to_lowercase();
    ["manifest unknown", "name unknown", "not found", "not known to registry", "statuscode: 404"]
        .iter()
        .any(|text| message.contains(text))
}

fn is_denied(message: &str) -> bool {
    let message = message.to_lowercase();
    ["unauthorized", "authentication required", "denied", "forbidden"]
        .iter()
        .any(|text| message.contains(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(message: &str) -> String {
        let target = "ghcr.io/a/b".parse().unwrap();
        let (existing, transport) = (ExistingTag::Keep, Transport::Https);
        let options = PushOptions { target, existing, transport };
        Skopeo { folder: Path::new("."), options: &options }.failure(message).to_string()
    }

    #[test]
    fn a_missing_login_is_explained() {
        let found = failure("writing blob: unauthorized: authentication required");
        assert!(
            found.ends_with("\nhint: log in with `skopeo login ghcr.io` as a user who may push")
        );
        let found = failure("denied: requested access to the resource is denied");
        assert!(found.contains("skopeo login"), "{found}");
    }

    #[test]
    fn other_failures_say_that_nothing_was_tagged() {
        assert!(failure("received unexpected HTTP status: 500").contains("nothing was tagged"));
        let found = failure("http: server gave HTTP response to HTTPS client");
        assert!(found.ends_with("\nhint: --plain-http connects without TLS"), "{found}");
    }

    #[cfg(unix)]
    #[test]
    fn the_message_is_that_of_the_last_line() {
        use std::os::unix::process::ExitStatusExt;

        let message = |stderr: &str| {
            let status = std::process::ExitStatus::from_raw(256);
            message(&Output { status, stdout: Vec::new(), stderr: stderr.into() })
        };
        let line = "time=\"2026-01-01T00:00:00Z\" level=fatal msg=\"reading \\\"x\\\": EOF\"\n";
        assert_eq!(message(&format!("a\n{line}")), "reading \"x\": EOF");
        let line = "level=fatal msg=\"reading x: StatusCode: 500, \\n\"\n";
        assert_eq!(message(line), "reading x: StatusCode: 500");
        assert_eq!(message(""), "skopeo failed with exit status: 1");
    }

    #[test]
    fn registries_report_missing_images_differently() {
        for text in [
            "reading manifest 1 in localhost/a: manifest unknown",
            "name unknown: repository name not known to registry",
            "reading manifest 1 in localhost/a: StatusCode: 404, ",
        ] {
            assert!(is_not_found(text), "{text}");
        }
        assert!(!is_not_found("unauthorized: authentication required"));
    }
}
