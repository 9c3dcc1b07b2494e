//! `directx-visible command`: what a manifest must say so that a container starts the program of its
//! image with this program.
//!
//! The API server does not know an image's ENTRYPOINT and CMD, and a pod's `command` replaces both.
//! The words of an image do not mean the same in a pod:
//!
//! - With `ArgsEscaped`, containerd takes the first word of an image as the raw start of the command
//!   line, and escapes the others. It escapes every word of a pod.
//! - The kubelet replaces `$(NAME)` and `$$` in the words of a pod.

use std::fs;
use std::io::{self, IsTerminal as _, Read as _};
use std::path::{Path, PathBuf};

use gpu_probe::failure::{Failure, USAGE, print};
use host::printable::{is_unsafe, printable};
use serde::Deserialize;
use serde_json::Value;

use crate::command_line::COMMAND_LINE;
use crate::exit_codes::OTHER;

/// The commands that print the configuration of an image.
const PRINT_IT: &str = "write what one of these prints: crane config --platform windows/amd64 IMAGE, \
                        skopeo --override-os windows inspect --config --raw docker://IMAGE, \
                        docker image inspect IMAGE";

/// The kinds of objects that have pods, with their versions and the paths of the pods.
const KINDS: [(&str, &str, &[&str]); 7] = [
    ("Pod", "v1", &["spec"]),
    ("Deployment", "apps/v1", TEMPLATE),
    ("DaemonSet", "apps/v1", TEMPLATE),
    ("StatefulSet", "apps/v1", TEMPLATE),
    ("ReplicaSet", "apps/v1", TEMPLATE),
    ("Job", "batch/v1", TEMPLATE),
    ("CronJob", "batch/v1", &["spec", "jobTemplate", "spec", "template", "spec"]),
];

const TEMPLATE: &[&str] = &["spec", "template", "spec"];

/// What is printed.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Options {
    /// Whether the program must not run unfiltered.
    pub(crate) is_required: bool,
    /// Whether the container has `args`, which replace the image's CMD.
    pub(crate) has_args: bool,
    /// The container that a patch is printed for.
    pub(crate) patched: Option<Container>,
    /// The file with the image's configuration, in place of standard input.
    pub(crate) file: Option<PathBuf>,
}

/// A container in a manifest.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Container {
    /// An index of [`KINDS`].
    kind: usize,
    object: String,
    name: String,
}

impl Container {
    /// Reads `KIND/NAME/CONTAINER`.
    pub(crate) fn parse(text: &str) -> Result<Container, Failure> {
        let parts: Vec<&str> = text.split('/').collect();
        let kind = KINDS.iter().position(|(kind, ..)| kind.eq_ignore_ascii_case(parts[0]));
        match (parts.as_slice(), kind) {
            ([_, object, name], Some(kind)) if !object.is_empty() && !name.is_empty() => {
                Ok(Container { kind, object: (*object).to_owned(), name: (*name).to_owned() })
            }
            _ => {
                let kinds = KINDS.map(|(kind, ..)| kind).join(", ");
                let message = format!("--patch has `{}`", printable(text));
                let hint = format!(
                    "write KIND/NAME/CONTAINER, as in Deployment/app/server; the kinds are {kinds}"
                );
                Err(Failure::new(USAGE, message, hint))
            }
        }
    }
}

/// Prints what the manifest needs for the image.
pub(crate) fn command(options: &Options) -> Result<u32, Failure> {
    let bytes = read(options.file.as_deref())?;
    print(&text(&bytes, options)?)?;
    Ok(0)
}

fn read(file: Option<&Path>) -> Result<Vec<u8>, Failure> {
    if let Some(file) = file {
        return fs::read(file).map_err(|error| {
            let message = format!("cannot read {}: {error}", file.display());
            Failure::new(OTHER, message, "name a file with the configuration of an image")
        });
    }
    if io::stdin().is_terminal() {
        return Err(Failure::new(USAGE, "no configuration of an image given", PRINT_IT));
    }
    let mut bytes = Vec::new();
    io::stdin().read_to_end(&mut bytes).map_err(|error| failure(&error.to_string()))?;
    Ok(bytes)
}

/// The text for the manifest of an image whose configuration is `bytes`.
fn text(bytes: &[u8], options: &Options) -> Result<String, Failure> {
    let words = Words::new(&Config::parse(bytes)?, options)?;
    Ok(match &options.patched {
        Some(container) => words.patch(container),
        None => words.yaml(""),
    })
}

/// An image as its configuration in a registry describes it, or as `docker inspect` does.
#[derive(Deserialize)]
struct Image {
    #[serde(alias = "Os")]
    os: Option<String>,
    #[serde(alias = "Config")]
    config: Option<Config>,
}

/// What a container of the image starts.
#[derive(Deserialize, Default)]
#[serde(rename_all = "PascalCase")]
struct Config {
    entrypoint: Option<Vec<String>>,
    cmd: Option<Vec<String>>,
    args_escaped: Option<bool>,
}

impl Config {
    fn parse(bytes: &[u8]) -> Result<Config, Failure> {
        let text = decoded(bytes).ok_or_else(|| failure("it is not UTF-8"))?;
        if text.trim().is_empty() {
            return Err(failure("it is empty"));
        }
        let mut value: Value =
            serde_json::from_str(&text).map_err(|error| failure(&error.to_string()))?;
        // `docker inspect` prints a list of what its arguments name.
        if let Value::Array(images) = &mut value {
            let count = images.len();
            value = images.pop().filter(|_| count == 1).ok_or_else(|| {
                let message = format!("the configuration describes {count} images");
                Failure::new(OTHER, message, "write that of one image")
            })?;
        }
        let image: Image =
            serde_json::from_value(value).map_err(|error| failure(&error.to_string()))?;
        let Some(os) = image.os else {
            return Err(failure("it has no `os`"));
        };
        if os != "windows" {
            let message = format!("the image is for `{}`, not for windows", printable(&os));
            return Err(Failure::new(OTHER, message, PRINT_IT));
        }
        image
            .config
            .ok_or_else(|| failure("it has no `config`, the object with ENTRYPOINT and CMD"))
    }
}

/// The text of a file. Windows PowerShell 5.1 writes UTF-16 with `>`.
fn decoded(bytes: &[u8]) -> Option<String> {
    match bytes {
        [0xFF, 0xFE, rest @ ..] if rest.len() % 2 == 0 => {
            let units = rest.chunks_exact(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]]));
            String::from_utf16(&units.collect::<Vec<_>>()).ok()
        }
        _ => {
            let text = str::from_utf8(bytes).ok()?;
            Some(text.strip_prefix('\u{FEFF}').unwrap_or(text).to_owned())
        }
    }
}

fn failure(what: &str) -> Failure {
    let message = format!("cannot use the configuration of the image: {what}");
    Failure::new(OTHER, message, PRINT_IT)
}

/// The words of a container, before they are escaped for the kubelet.
struct Words {
    command: Vec<String>,
    args: Vec<String>,
}

impl Words {
    fn new(image: &Config, options: &Options) -> Result<Words, Failure> {
        let entrypoint = image.entrypoint.as_deref().unwrap_or_default();
        let cmd = image.cmd.as_deref().unwrap_or_default();
        if entrypoint.is_empty() && cmd.is_empty() && !options.has_args {
            let hint = "write the program into the manifest, as in \
                        command: [\"directx-visible\", \"--\", \"C:\\\\app\\\\server.exe\"]";
            return Err(Failure::new(OTHER, "the image has neither ENTRYPOINT nor CMD", hint));
        }
        let cmd = if options.has_args { &[] } else { cmd };
        let mut command = vec!["directx-visible"];
        if options.is_required {
            command.push("--require");
        }
        let mut args = Vec::new();
        match (image.args_escaped, entrypoint, cmd) {
            (Some(true), [line, rest @ ..], _) => {
                command.extend([COMMAND_LINE, line, "--"]);
                command.extend(rest.iter().map(String::as_str));
                args.extend(cmd.iter().map(String::as_str));
            }
            // The `args` of a pod replace the line.
            (Some(true), [], [line, rest @ ..]) => {
                args.extend([COMMAND_LINE, line, "--"]);
                args.extend(rest.iter().map(String::as_str));
            }
            _ => {
                command.push("--");
                command.extend(entrypoint.iter().map(String::as_str));
                args.extend(cmd.iter().map(String::as_str));
            }
        }
        let owned = |words: Vec<&str>| words.into_iter().map(str::to_owned).collect();
        Ok(Words { command: owned(command), args: owned(args) })
    }

    /// The fields of the container, with `indent` before each line.
    fn yaml(&self, indent: &str) -> String {
        let fields = [("command", &self.command), ("args", &self.args)];
        let lines = fields.into_iter().filter(|(_, words)| !words.is_empty());
        let lines = lines.map(|(field, words)| {
            let words: Vec<String> =
                words.iter().map(|word| quoted(&word.replace('$', "$$"))).collect();
            format!("{indent}{field}: [{}]\n", words.join(", "))
        });
        lines.collect()
    }

    /// A strategic merge patch.
    fn patch(&self, container: &Container) -> String {
        let (kind, version, path) = KINDS[container.kind];
        let object = quoted(&container.object);
        let name = quoted(&container.name);
        let indent = "  ".repeat(path.len());
        let path: String = path
            .iter()
            .enumerate()
            .map(|(depth, field)| "  ".repeat(depth) + field + ":\n")
            .collect();
        let fields = self.yaml(&format!("{indent}  "));
        format!(
            "apiVersion: {version}\nkind: {kind}\nmetadata:\n  name: {object}\n{path}\
             {indent}containers:\n{indent}- name: {name}\n{fields}"
        )
    }
}

/// A word as a double-quoted string of YAML with only printable characters.
fn quoted(word: &str) -> String {
    // YAML has the escape sequences of JSON, except for pairs of surrogates.
    let text = Value::from(word).to_string();
    let characters = text.chars().map(|c| match u32::from(c) {
        code if !is_unsafe(c) && !matches!(code, 0xFFFE | 0xFFFF) => c.to_string(),
        code @ ..=0xFFFF => format!("\\u{code:04x}"),
        code => format!("\\U{code:08x}"),
    });
    characters.collect()
}

#[cfg(test)]
mod tests;
