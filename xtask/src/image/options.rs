//! The arguments of `cargo xtask image`.

use std::ffi::OsString;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};

use super::example::{EXAMPLES, Example};
use super::reference::{Reference, check_tag};
use crate::workspace;

/// What is to be built, and what is to be done with it.
pub(super) struct Options {
    pub(super) kind: ImageKind,
    /// The folder for the layouts.
    pub(super) output: PathBuf,
    pub(super) tag: String,
    /// A folder of built programs; `None` to build them.
    pub(super) programs: Option<PathBuf>,
    pub(super) push: Option<PushOptions>,
}

pub(super) enum ImageKind {
    /// The device plugin in a `HostProcess` image.
    Plugin,
    /// An example on a Windows image.
    Example(&'static Example, BaseOptions),
}

/// The files that describe a base image.
pub(super) struct BaseOptions {
    pub(super) manifest: PathBuf,
    pub(super) config: PathBuf,
    /// The image's name, such as `mcr.microsoft.com/windows/server:ltsc2022`.
    pub(super) name: Option<String>,
}

pub(super) struct PushOptions {
    pub(super) target: Reference,
    pub(super) existing: ExistingTag,
    pub(super) transport: Transport,
}

/// What to do if the tag names another image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ExistingTag {
    Keep,
    Replace,
}

/// How to connect to the registry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Transport {
    Https,
    /// For registries on this machine.
    PlainHttp,
}

/// The arguments before they are checked together.
#[derive(Default)]
struct Arguments {
    output: Option<PathBuf>,
    tag: Option<String>,
    programs: Option<PathBuf>,
    example: Option<String>,
    base_manifest: Option<PathBuf>,
    base_config: Option<PathBuf>,
    base_name: Option<String>,
    push: Option<String>,
    replace: bool,
    plain_http: bool,
}

impl Options {
    /// Reads `arguments`. `version` is the tag if there is none.
    pub(super) fn parse(arguments: &[OsString], version: &str) -> Result<Options> {
        let arguments = Arguments::parse(arguments)?;
        let push = arguments.push()?;
        let target_tag = push.as_ref().and_then(|push| push.target.tag.clone());
        let tag = match (arguments.tag.clone(), target_tag) {
            (Some(tag), Some(other)) if tag != other => {
                bail!("--tag is `{tag}` and --push names the tag `{other}`\nhint: name one tag")
            }
            (tag, target_tag) => tag.or(target_tag).unwrap_or_else(|| version.to_owned()),
        };
        check_tag(&tag)?;
        let kind = arguments.kind()?;
        let output = arguments.output.unwrap_or_else(|| workspace::target_dir().join("images"));
        Ok(Options { kind, output, tag, programs: arguments.programs, push })
    }
}

impl Arguments {
    fn parse(arguments: &[OsString]) -> Result<Arguments> {
        let mut found = Arguments::default();
        let mut words = arguments.iter();
        while let Some(word) = words.next() {
            let name = word.to_str().unwrap_or_default();
            let mut value = || words.next().with_context(|| format!("{name} needs a value"));
            match name {
                "--output" => set(name, &mut found.output, value()?.into())?,
                "--tag" => set(name, &mut found.tag, text(name, value()?)?)?,
                "--programs" => set(name, &mut found.programs, value()?.into())?,
                "--example" => set(name, &mut found.example, text(name, value()?)?)?,
                "--base-manifest" => set(name, &mut found.base_manifest, value()?.into())?,
                "--base-config" => set(name, &mut found.base_config, value()?.into())?,
                "--base-name" => set(name, &mut found.base_name, text(name, value()?)?)?,
                "--push" => set(name, &mut found.push, text(name, value()?)?)?,
                "--replace" => found.replace = true,
                "--plain-http" => found.plain_http = true,
                _ => bail!(
                    "unexpected argument `{}`\nhint: `cargo xtask image --help` lists the options",
                    word.display()
                ),
            }
        }
        Ok(found)
    }

    fn push(&self) -> Result<Option<PushOptions>> {
        let Some(target) = &self.push else {
            for (option, is_set) in [("--replace", self.replace), ("--plain-http", self.plain_http)]
            {
                if is_set {
                    bail!("{option} needs --push");
                }
            }
            return Ok(None);
        };
        Ok(Some(PushOptions {
            target: target.parse()?,
            existing: if self.replace { ExistingTag::Replace } else { ExistingTag::Keep },
            transport: if self.plain_http { Transport::PlainHttp } else { Transport::Https },
        }))
    }

    fn kind(&self) -> Result<ImageKind> {
        let Some(name) = &self.example else {
            if self.base_manifest.is_some()
                || self.base_config.is_some()
                || self.base_name.is_some()
            {
                bail!(
                    "the base image is of use only with --example: the plugin's image has no base"
                );
            }
            return Ok(ImageKind::Plugin);
        };
        let Some(example) = EXAMPLES.iter().find(|example| example.name == *name) else {
            let names: Vec<&str> = EXAMPLES.iter().map(|example| example.name).collect();
            bail!("unknown example `{name}`\nhint: the examples are {}", names.join(", "));
        };
        let (Some(manifest), Some(config)) = (&self.base_manifest, &self.base_config) else {
            bail!(
                "unknown base image: --example needs --base-manifest and --base-config\nhint: \
                 docs/images.md shows how to get both files"
            );
        };
        let base = BaseOptions {
            manifest: manifest.clone(),
            config: config.clone(),
            name: self.base_name.clone(),
        };
        Ok(ImageKind::Example(example, base))
    }
}

fn set<T>(name: &str, place: &mut Option<T>, value: T) -> Result<()> {
    if place.replace(value).is_some() {
        bail!("{name} is given twice");
    }
    Ok(())
}

fn text(name: &str, value: &OsString) -> Result<String> {
    let text = value.to_str().map(str::to_owned);
    text.with_context(|| format!("the value of {name} is not UTF-8: `{}`", value.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(words: &[&str]) -> Result<Options> {
        let arguments: Vec<OsString> = words.iter().map(OsString::from).collect();
        Options::parse(&arguments, "1.2.3")
    }

    fn error(words: &[&str]) -> String {
        options(words).err().unwrap().to_string()
    }

    #[test]
    fn without_arguments_the_plugin_is_built_with_its_version_as_the_tag() {
        let options = options(&[]).unwrap();
        assert!(matches!(options.kind, ImageKind::Plugin));
        assert_eq!(options.tag, "1.2.3");
        assert!(options.push.is_none() && options.programs.is_none());
        assert!(options.output.ends_with("images"));
    }

    #[test]
    fn the_tag_may_be_part_of_the_target() {
        let tag = |words: &[&str]| options(words).unwrap().tag;
        assert_eq!(tag(&["--push", "ghcr.io/a/b:2.0"]), "2.0");
        assert_eq!(tag(&["--push", "ghcr.io/a/b", "--tag", "3.0"]), "3.0");
        assert_eq!(tag(&["--push", "ghcr.io/a/b"]), "1.2.3");
        let found = error(&["--push", "ghcr.io/a/b:2.0", "--tag", "3.0"]);
        assert!(found.starts_with("--tag is `3.0` and --push names the tag `2.0`"), "{found}");
    }

    #[test]
    fn push_options() {
        let push = |words: &[&str]| {
            let push = options(&[&["--push", "localhost:5000/a"], words].concat()).unwrap().push;
            push.map(|push| (push.existing, push.transport)).unwrap()
        };
        assert_eq!(push(&[]), (ExistingTag::Keep, Transport::Https));
        let expected = (ExistingTag::Replace, Transport::PlainHttp);
        assert_eq!(push(&["--replace", "--plain-http"]), expected);
        assert_eq!(error(&["--replace"]), "--replace needs --push");
        assert_eq!(error(&["--plain-http"]), "--plain-http needs --push");
    }

    #[test]
    fn an_example_needs_a_base_image() {
        let found = error(&["--example", "device-discovery", "--base-manifest", "m"]);
        assert!(found.starts_with("unknown base image: "), "{found}");
        let words = ["--example", "device-discovery", "--base-manifest", "m", "--base-config", "c"];
        assert!(matches!(options(&words).unwrap().kind, ImageKind::Example(_, _)));
        assert!(error(&["--example", "x"]).starts_with("unknown example `x`\nhint: the examples"));
        assert!(error(&["--base-name", "x"]).contains("only with --example"));
    }

    #[test]
    fn invalid_arguments_are_named() {
        assert!(error(&["--fast"]).starts_with("unexpected argument `--fast`\nhint: "));
        assert_eq!(error(&["--tag"]), "--tag needs a value");
        assert_eq!(error(&["--tag", "a", "--tag", "b"]), "--tag is given twice");
        assert!(error(&["--tag", "a b"]).starts_with("invalid tag `a b`"));
    }
}
