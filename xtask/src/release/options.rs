//! The arguments of `cargo xtask release`.

use std::ffi::OsString;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};

use crate::workspace;

/// The registry and the path that the manifests in `deploy` name.
const REGISTRY: &str = "ghcr.io/directx-device-plugin";

/// What is to be done.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Options {
    pub(super) mode: Mode,
    /// The folder for the files of the release.
    pub(super) output: PathBuf,
    /// Where the image and the chart are pushed, such as `ghcr.io/owner`.
    pub(super) registry: String,
    pub(super) transport: Transport,
}

/// Whether something is published.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// Build everything and publish nothing.
    DryRun,
    Publish,
}

/// How to connect to the registry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Transport {
    Https,
    /// For registries on this machine.
    PlainHttp,
}

impl Options {
    /// Reads `arguments`. `version` is part of the default output folder.
    pub(super) fn parse(arguments: &[OsString], version: &str) -> Result<Options> {
        let (mut output, mut registry) = (None, None);
        let (mut mode, mut transport) = (Mode::Publish, Transport::Https);
        let mut words = arguments.iter();
        while let Some(word) = words.next() {
            let name = word.to_str().unwrap_or_default();
            let mut value = || words.next().with_context(|| format!("{name} needs a value"));
            match name {
                "--dry-run" => mode = Mode::DryRun,
                "--plain-http" => transport = Transport::PlainHttp,
                "--output" => set(name, &mut output, PathBuf::from(value()?))?,
                "--registry" => set(name, &mut registry, registry_path(value()?)?)?,
                _ => bail!(
                    "unexpected argument `{}`\nhint: `cargo xtask release --help` lists the options",
                    word.display()
                ),
            }
        }
        if mode == Mode::DryRun && (registry.is_some() || transport == Transport::PlainHttp) {
            let option = if registry.is_some() { "--registry" } else { "--plain-http" };
            bail!("{option} cannot be combined with --dry-run, which pushes nothing");
        }
        let output =
            output.unwrap_or_else(|| workspace::target_dir().join(format!("release-{version}")));
        Ok(Options {
            mode,
            output: std::path::absolute(output).context("invalid output folder")?,
            registry: registry.unwrap_or_else(|| REGISTRY.to_owned()),
            transport,
        })
    }
}

/// A registry with a path and without a tag. The image module checks the characters.
fn registry_path(value: &OsString) -> Result<String> {
    let text = value.to_str().unwrap_or_default();
    let (host, path) = text.split_once('/').unwrap_or((text, ""));
    if host.is_empty() || path.is_empty() || path.contains([':', '@']) || text.ends_with('/') {
        bail!(
            "invalid registry `{}`\nhint: name a registry and a path, such as `{REGISTRY}`",
            value.display()
        );
    }
    Ok(text.to_owned())
}

fn set<T>(name: &str, place: &mut Option<T>, value: T) -> Result<()> {
    if place.replace(value).is_some() {
        bail!("{name} is given twice");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(words: &[&str]) -> Result<Options> {
        let arguments: Vec<OsString> = words.iter().map(OsString::from).collect();
        Options::parse(&arguments, "1.2.3")
    }

    fn error(words: &[&str]) -> String {
        options(words).unwrap_err().to_string()
    }

    #[test]
    fn the_default_publishes_to_the_registry_of_the_manifests() {
        let options = options(&[]).unwrap();
        assert_eq!((options.mode, options.transport), (Mode::Publish, Transport::Https));
        assert_eq!(options.registry, REGISTRY);
        assert!(options.output.ends_with("release-1.2.3"), "{:?}", options.output);
    }

    #[test]
    fn options_are_read() {
        assert_eq!(options(&["--dry-run"]).unwrap().mode, Mode::DryRun);
        let found = options(&["--registry", "127.0.0.1:5000/a/b", "--plain-http"]).unwrap();
        assert_eq!(found.registry, "127.0.0.1:5000/a/b");
        assert_eq!(found.transport, Transport::PlainHttp);
        assert!(options(&["--output", "x"]).unwrap().output.is_absolute());
    }

    #[test]
    fn invalid_arguments_are_named_with_a_hint() {
        assert!(error(&["--fast"]).starts_with("unexpected argument `--fast`\nhint: "));
        assert_eq!(error(&["--output"]), "--output needs a value");
        assert_eq!(error(&["--output", "a", "--output", "b"]), "--output is given twice");
        for registry in
            ["", "ghcr.io", "ghcr.io/", "/a", "ghcr.io/a:1", "ghcr.io/a@x", "ghcr.io/a/"]
        {
            let found = error(&["--registry", registry]);
            assert!(
                found.starts_with(&format!("invalid registry `{registry}`\nhint: ")),
                "{found}"
            );
        }
        let found = error(&["--dry-run", "--registry", "ghcr.io/a"]);
        assert_eq!(found, "--registry cannot be combined with --dry-run, which pushes nothing");
        assert!(error(&["--dry-run", "--plain-http"]).starts_with("--plain-http cannot be"));
    }
}
