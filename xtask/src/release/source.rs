//! The source of a release, and what must be true of it before anything is built.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::files::manifests;
use super::options::Mode;
use crate::image::PLUGIN;
use crate::{process, workspace};

/// The source in the workspace.
pub(super) struct Source {
    /// The version of all crates.
    pub(super) version: &'static str,
    /// The commit; `None` outside a git repository.
    pub(super) commit: Option<String>,
    /// The time that every file in an archive gets: `SOURCE_DATE_EPOCH` if it is set,
    /// otherwise the time of the commit. Seconds since 1970-01-01 UTC.
    pub(super) date: u64,
    /// What the changelog says about the version.
    pub(super) notes: String,
}

impl Source {
    /// Reads and checks the workspace. A dry run warns about the state of the repository
    /// instead of refusing it.
    pub(super) fn read(mode: Mode) -> Result<Source> {
        let (root, version) = (workspace::root(), env!("CARGO_PKG_VERSION"));
        let notes = check_versions(&root, version, mode)?;
        let repository = Repository::read(&root, version);
        if let Err(error) = repository.check(version) {
            match mode {
                Mode::Publish => return Err(error),
                Mode::DryRun => eprintln!("warning: {error}"),
            }
        }
        let date = match std::env::var("SOURCE_DATE_EPOCH").ok().filter(|text| !text.is_empty()) {
            Some(text) => text.parse().with_context(|| {
                format!("invalid SOURCE_DATE_EPOCH `{text}`\nhint: set it to seconds since 1970")
            })?,
            None => repository.time.unwrap_or(0),
        };
        Ok(Source { version, commit: repository.head, date, notes })
    }

    /// The tag of the release in git.
    pub(super) fn tag(&self) -> String {
        tag(self.version)
    }
}

fn tag(version: &str) -> String {
    format!("v{version}")
}

/// Fails unless every file that names the version of the release names `version`. Returns
/// the section of the changelog.
fn check_versions(root: &Path, version: &str, mode: Mode) -> Result<String> {
    let read = |path: &Path| {
        fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
    };
    let notes = changelog_section(&read(&root.join("CHANGELOG.md"))?, version, mode)?;
    let chart = Path::new("deploy/charts").join(PLUGIN).join("Chart.yaml");
    let mut differences = chart_differences(&read(&root.join(&chart))?, version);
    for difference in &mut differences {
        difference.insert_str(0, &format!("{}: ", workspace::shown(&chart)));
    }
    for path in manifests(root)? {
        let name = workspace::shown(path.strip_prefix(root).unwrap_or(&path));
        let found = image_differences(&read(&path)?, version);
        differences.extend(found.into_iter().map(|text| format!("{name}: {text}")));
    }
    if differences.is_empty() {
        return Ok(notes);
    }
    bail!(
        "files name other versions than {version}, which Cargo.toml names:\n  {}\nhint: change \
         them, or the version in Cargo.toml",
        differences.join("\n  ")
    )
}

/// The text under the heading `## [VERSION] - DATE`. A dry run accepts a heading without
/// the date, because the day of the release is not known before.
fn changelog_section(changelog: &str, version: &str, mode: Mode) -> Result<String> {
    let start = format!("## [{version}]");
    let mut lines = changelog.lines();
    let Some(heading) = lines.find(|line| line.starts_with(&start)) else {
        bail!(
            "CHANGELOG.md has no section for {version}\nhint: rename the heading `## [Unreleased]` \
             to `{start} - YYYY-MM-DD`, and add an empty section `## [Unreleased]` above it"
        );
    };
    if mode == Mode::Publish && !is_date(heading[start.len()..].strip_prefix(" - ")) {
        bail!(
            "the section of {version} in CHANGELOG.md has no date\nhint: change the heading to \
             `{start} - YYYY-MM-DD`"
        );
    }
    let section: Vec<&str> = lines.take_while(|line| !line.starts_with("## ")).collect();
    let section = section.join("\n").trim().to_owned();
    if section.is_empty() {
        bail!("the section of {version} in CHANGELOG.md is empty\nhint: list what users notice");
    }
    Ok(format!("{section}\n"))
}

/// Whether `text` has the form of an ISO 8601 date.
fn is_date(text: Option<&str>) -> bool {
    let digits = |part: Option<&str>, count| {
        part.is_some_and(|part| part.len() == count && part.bytes().all(|b| b.is_ascii_digit()))
    };
    let mut parts = text.unwrap_or_default().splitn(3, '-');
    digits(parts.next(), 4) && digits(parts.next(), 2) && digits(parts.next(), 2)
}

fn chart_differences(chart: &str, version: &str) -> Vec<String> {
    let keys = ["version", "appVersion"];
    let value = |key: &str| {
        let prefix = format!("{key}:");
        let value = chart.lines().find_map(|line| line.strip_prefix(&prefix));
        value.map(|value| value.trim().trim_matches('"')).unwrap_or_default()
    };
    let different = keys.into_iter().filter(|key| value(key) != version);
    different.map(|key| format!("`{key}` is `{}`", value(key))).collect()
}

/// The lines of a manifest that name another tag of the plugin's image.
fn image_differences(manifest: &str, version: &str) -> Vec<String> {
    let images = manifest.lines().enumerate().filter_map(|(index, line)| {
        let image = line.trim().trim_start_matches("- ").strip_prefix("image:")?.trim();
        let name = image.rsplit('/').next()?;
        let tag = name.strip_prefix(PLUGIN)?;
        (tag != format!(":{version}"))
            .then(|| format!("line {} has the image `{image}`", index + 1))
    });
    images.collect()
}

/// The state of the git repository.
#[derive(Default)]
struct Repository {
    head: Option<String>,
    /// The time of the commit.
    time: Option<u64>,
    /// The commit that the tag of the version names, if the tag exists.
    tagged: Option<String>,
    /// What `git status --porcelain` prints.
    changes: String,
}

impl Repository {
    fn read(root: &Path, version: &str) -> Repository {
        let git = |arguments: &[&str]| {
            let mut git = Command::new("git");
            let text = process::stdout(git.current_dir(root).args(arguments))?;
            Some(text.trim_end().to_owned()).filter(|text| !text.is_empty())
        };
        let tag = format!("refs/tags/{}^{{commit}}", tag(version));
        Repository {
            head: git(&["rev-parse", "HEAD"]),
            time: git(&["log", "-1", "--format=%ct"]).and_then(|text| text.parse().ok()),
            tagged: git(&["rev-parse", "--quiet", "--verify", &tag]),
            changes: git(&["status", "--porcelain"]).unwrap_or_default(),
        }
    }

    /// Fails unless the release can be made of this commit. A workflow that a pushed tag
    /// starts finds the tag at this commit.
    fn check(&self, version: &str) -> Result<()> {
        let Some(head) = &self.head else {
            bail!("the workspace is not a git repository\nhint: clone the repository with git");
        };
        if let Some(other) = self.tagged.as_ref().filter(|tagged| *tagged != head) {
            bail!(
                "the tag `{}` exists and names the commit {other}, not {head}\nhint: change the \
                 version in Cargo.toml, or check out the tag",
                tag(version)
            );
        }
        if !self.changes.is_empty() {
            let files: Vec<&str> = self.changes.lines().take(5).collect();
            bail!(
                "the files differ from the commit:\n{}\nhint: commit or stash the changes",
                files.join("\n")
            );
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHANGELOG: &str = "# Changelog\n\n## [Unreleased]\n\n## [1.1.0] - 2026-01-31\n\n\
        ### Added\n\n- This.\n\n## [1.0.0]\n\n- That.\n\n## [0.9.0]\n";

    fn section(version: &str, mode: Mode) -> Result<String> {
        changelog_section(CHANGELOG, version, mode)
    }

    #[test]
    fn the_section_of_a_version_ends_at_the_next_one() {
        for mode in [Mode::DryRun, Mode::Publish] {
            assert_eq!(section("1.1.0", mode).unwrap(), "### Added\n\n- This.\n");
        }
        assert_eq!(section("1.0.0", Mode::DryRun).unwrap(), "- That.\n");
    }

    #[test]
    fn a_section_is_required_with_its_text_and_date() {
        let error = |version, mode| section(version, mode).unwrap_err().to_string();
        let found = error("1.1", Mode::DryRun);
        assert!(found.starts_with("CHANGELOG.md has no section for 1.1\nhint: "), "{found}");
        let found = error("1.0.0", Mode::Publish);
        assert!(
            found.contains("has no date\nhint: change the heading to `## [1.0.0] - "),
            "{found}"
        );
        let found = error("0.9.0", Mode::DryRun);
        assert!(found.starts_with("the section of 0.9.0 in CHANGELOG.md is empty\n"), "{found}");
        for text in [None, Some("2026-1-31"), Some("2026-01-31 "), Some("20260131"), Some("soon")] {
            assert!(!is_date(text), "{text:?}");
        }
    }

    /// A workspace with these versions in the chart and in the manifest.
    fn workspace(chart: &str, image: &str) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("deploy/charts").join(PLUGIN);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("Chart.yaml"), chart).unwrap();
        fs::write(root.path().join("CHANGELOG.md"), CHANGELOG).unwrap();
        let manifest = format!("spec:\n  - image: {image}\n    image: other/image:7\n");
        fs::write(root.path().join("deploy/a.yml"), manifest).unwrap();
        root
    }

    #[test]
    fn every_file_with_another_version_is_named() {
        let image = "ghcr.io/x/directx-device-plugin";
        let chart = "version: 1.1.0\nappVersion: \"1.1.0\"\n";
        let root = workspace(chart, &format!("{image}:1.1.0"));
        assert!(check_versions(root.path(), "1.1.0", Mode::Publish).is_ok());
        let root = workspace("version: 1.1.1\n", &format!("{image}:1.0.0"));
        let error = check_versions(root.path(), "1.1.0", Mode::DryRun).unwrap_err().to_string();
        for part in [
            "files name other versions than 1.1.0",
            "Chart.yaml: `version` is `1.1.1`",
            "Chart.yaml: `appVersion` is ``",
            "deploy/a.yml: line 2 has the image `ghcr.io/x/directx-device-plugin:1.0.0`",
            "\nhint: ",
        ] {
            assert!(error.contains(part), "{part}: {error}");
        }
        assert!(!error.contains("other/image"), "{error}");
        assert_eq!(image_differences("image: directx-device-plugin\n", "1").len(), 1);
    }

    #[test]
    fn this_workspace_can_be_released() {
        let version = env!("CARGO_PKG_VERSION");
        check_versions(&workspace::root(), version, Mode::DryRun).unwrap();
    }

    #[test]
    fn the_state_of_the_repository_is_checked() {
        let head = Some("abc".to_owned());
        let repository = || Repository { head: head.clone(), ..Repository::default() };
        assert!(repository().check("1.0.0").is_ok());
        let tagged = Repository { tagged: head.clone(), ..repository() };
        assert!(tagged.check("1.0.0").is_ok());
        let error = |repository: Repository| repository.check("1.0.0").unwrap_err().to_string();
        let found = error(Repository { tagged: Some("def".to_owned()), ..repository() });
        assert!(found.starts_with("the tag `v1.0.0` exists and names the commit def"), "{found}");
        let found = error(Repository { changes: " M README.md\n?? x".to_owned(), ..repository() });
        assert!(found.contains(" M README.md\n?? x\nhint: commit or stash"), "{found}");
        let found = error(Repository::default());
        assert!(found.starts_with("the workspace is not a git repository\nhint: "), "{found}");
    }

    #[test]
    fn a_repository_is_read_with_git() {
        let root = tempfile::tempdir().unwrap();
        let git = |arguments: &[&str]| {
            let mut git = Command::new("git");
            git.current_dir(root.path()).args(["-c", "user.name=a", "-c", "user.email=a@b"]);
            process::stdout(git.args(arguments)).expect("git succeeds")
        };
        let commit = |message| git(&["commit", "--quiet", "--allow-empty", "--message", message]);
        assert!(Repository::read(root.path(), "1.0.0").head.is_none());
        git(&["init", "--quiet"]);
        commit("first");
        git(&["-c", "tag.gpgSign=false", "tag", "--annotate", "--message", "x", "v1.0.0"]);
        let repository = Repository::read(root.path(), "1.0.0");
        assert_eq!(repository.head, repository.tagged);
        assert!(repository.time.is_some() && repository.changes.is_empty());
        fs::write(root.path().join("new"), "").unwrap();
        commit("second");
        let repository = Repository::read(root.path(), "1.0.0");
        assert_ne!(repository.head, repository.tagged);
        assert_eq!(repository.changes, "?? new");
    }
}
