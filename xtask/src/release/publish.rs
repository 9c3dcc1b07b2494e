//! Publishes the image and the chart, and prints the commands for the rest.

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use super::chart;
use super::files::build_image;
use super::options::{Options, Transport};
use super::source::Source;
use super::summary::{NOTES, SUMS};
use crate::image::PLUGIN;
use crate::{kubernetes_suites, process};

/// Pushes the image and the chart of the release in `folder`. A push that failed can be
/// repeated: the bytes are the same.
pub(super) fn publish(folder: &Path, options: &Options, source: &Source) -> Result<()> {
    let image = format!("{}/{PLUGIN}:{}", options.registry, source.version);
    let temporary = tempfile::tempdir().context("cannot create a temporary folder")?;
    let mut arguments: Vec<OsString> = vec!["--push".into(), image.clone().into()];
    arguments.extend(plain_http(options).map(Into::into));
    build_image(temporary.path(), &arguments)?;
    let charts = format!("oci://{}/charts", options.registry);
    let mut helm = Command::new(kubernetes_suites::helm()?);
    helm.arg("push").arg(folder.join(chart::file_name(source.version))).arg(&charts);
    process::run(helm.args(plain_http(options)))?;
    println!("pushed {charts}/{PLUGIN}:{}", source.version);
    print!("{}", remaining_commands(folder, source));
    Ok(())
}

fn plain_http(options: &Options) -> Option<&'static str> {
    (options.transport == Transport::PlainHttp).then_some("--plain-http")
}

/// The commands that a person or the workflow runs next.
fn remaining_commands(folder: &Path, source: &Source) -> String {
    let (tag, folder) = (source.tag(), folder.display());
    let commit = source.commit.as_deref().unwrap_or("HEAD");
    format!(
        "Publish the rest with:\n  git tag {tag} {commit}\n  git push origin {tag}\n  cd {folder}\n  \
         gh release create {tag} --verify-tag --title {tag} --notes-file {NOTES} \
         $(cut -c67- {SUMS}) {SUMS}\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_remaining_commands_name_the_tag_and_the_files() {
        let source = Source {
            version: "1.0.0",
            commit: Some("abc".to_owned()),
            date: 0,
            notes: String::new(),
        };
        let text = remaining_commands(Path::new("/out"), &source);
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        assert_eq!(lines[1..4], ["git tag v1.0.0 abc", "git push origin v1.0.0", "cd /out"]);
        let create = "gh release create v1.0.0 --verify-tag --title v1.0.0 --notes-file \
                      release-notes.md $(cut -c67- SHA256SUMS) SHA256SUMS";
        assert_eq!(lines[4..], [create]);
    }
}
