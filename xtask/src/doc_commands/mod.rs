//! Runs the commands that README.md and the pages in `docs` print.
//!
//! Every code block with the info string `sh` runs as printed, with `bash -e`. The
//! working directory looks like the workspace but is not it: a folder of symbolic links
//! to what the workspace contains, so that files a command writes do not end up there.
//! The debug builds of the programs come first in PATH.

mod blocks;

use std::ffi::OsString;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use self::blocks::Block;
pub(crate) use self::blocks::Fence;
use crate::process::{self, last_lines, run, wait_within};
use crate::workspace::{self, cargo};

/// Set for documented commands: the document that contains them.
pub(crate) const DOCUMENT_VARIABLE: &str = "XTASK_DOCUMENT";

/// Set for documented commands: the file that holds the line of the running command.
const LINE_VARIABLE: &str = "XTASK_DOCUMENT_LINE";

/// How long one block may take. The longest ones build the release program.
const TIME_LIMIT: Duration = Duration::from_secs(600);

/// How many lines of output an error shows.
const SHOWN_LINES: usize = 30;

/// The packages whose programs users call.
const PACKAGES: [&str; 4] = ["plugin", "tools", "gpu_probe", "feature_discovery"];

/// Runs the commands of every document, and reports all failures.
pub(crate) fn check() -> Result<()> {
    let root = workspace::root();
    let programs = programs()?;
    let documents = documents(&root)?;
    let documents = all(documents.iter().map(|document| read(&root, document, &programs)))?;
    let packages = PACKAGES.iter().flat_map(|package| ["--package", package]);
    run(cargo().args(["build", "--quiet"]).args(packages))?;
    let place = Place::create(&root, &workspace::target_dir().join("doc-commands"))?;
    let counts = all(documents.iter().map(|document| place.run_document(document)))?;
    println!("{} commands ran", counts.iter().sum::<usize>());
    Ok(())
}

/// All values, or the messages of all errors.
fn all<T>(results: impl Iterator<Item = Result<T>>) -> Result<Vec<T>> {
    let (mut values, mut errors) = (Vec::new(), Vec::new());
    for result in results {
        match result {
            Ok(value) => values.push(value),
            Err(error) => errors.push(format!("{error:#}")),
        }
    }
    if errors.is_empty() { Ok(values) } else { bail!("{}", errors.join("\n")) }
}

/// A document with its blocks of commands.
struct Document {
    /// Its path relative to the workspace.
    name: String,
    blocks: Vec<Block>,
}

fn read(root: &Path, path: &Path, programs: &[String]) -> Result<Document> {
    let name = path.display().to_string();
    let text =
        fs::read_to_string(root.join(path)).with_context(|| format!("cannot read {name}"))?;
    let blocks = blocks::shell_blocks(&name, &text, programs)?;
    Ok(Document { name, blocks })
}

/// Names that only commands start with: cargo and the workspace's programs for users.
fn programs() -> Result<Vec<String>> {
    let is_program = |target: &&Value| {
        let kinds = target.get("kind").and_then(Value::as_array);
        kinds.into_iter().flatten().any(|kind| kind == "bin")
    };
    let packages = workspace::packages()?;
    let packages = packages.iter().filter(|package| {
        let name = package.get("name").and_then(Value::as_str);
        name.is_some_and(|name| PACKAGES.contains(&name))
    });
    let targets = packages.filter_map(|package| package.get("targets")?.as_array());
    let names = targets.flatten().filter(is_program).filter_map(|target| target.get("name"));
    let names = names.filter_map(Value::as_str).map(str::to_owned);
    Ok(["cargo".to_owned()].into_iter().chain(names).collect())
}

/// README.md and every Markdown file below `docs`, relative to `root`.
fn documents(root: &Path) -> Result<Vec<PathBuf>> {
    let mut found = vec![PathBuf::from("README.md")];
    let mut folders = vec![PathBuf::from("docs")];
    while let Some(folder) = folders.pop() {
        let entries = fs::read_dir(root.join(&folder))
            .with_context(|| format!("cannot read {}", folder.display()))?;
        for entry in entries {
            let entry = entry?;
            let path = folder.join(entry.file_name());
            if entry.file_type()?.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

/// Where the commands run.
struct Place {
    root: PathBuf,
    /// The folder of symbolic links. Its path is always the same, so that cargo finds its
    /// earlier builds.
    work: PathBuf,
    /// What the running block prints.
    output: PathBuf,
    /// The line of the running command.
    line: PathBuf,
}

impl Place {
    /// Creates the place below `folder` for the workspace `root`.
    fn create(root: &Path, folder: &Path) -> Result<Place> {
        fs::create_dir_all(folder)
            .with_context(|| format!("cannot create {}", folder.display()))?;
        Ok(Place {
            root: root.to_owned(),
            work: folder.join("workspace"),
            output: folder.join("output"),
            line: folder.join("line"),
        })
    }

    /// Runs the blocks of a document and returns the number of commands in them.
    fn run_document(&self, document: &Document) -> Result<usize> {
        for block in document.blocks.iter().filter(|block| !block.commands.is_empty()) {
            self.link_workspace()?;
            self.run_block(&document.name, block, TIME_LIMIT)?;
        }
        Ok(document.blocks.iter().map(|block| block.commands.len()).sum())
    }

    /// Makes the working directory anew: without the files of earlier blocks.
    fn link_workspace(&self) -> Result<()> {
        if self.work.exists() {
            // This removes links themselves and never follows them.
            fs::remove_dir_all(&self.work)?;
        }
        fs::create_dir(&self.work)?;
        for entry in fs::read_dir(&self.root)? {
            let entry = entry?;
            link(&entry.path(), &self.work.join(entry.file_name()))?;
        }
        Ok(())
    }

    fn run_block(&self, document: &str, block: &Block, limit: Duration) -> Result<()> {
        fs::write(&self.line, block.commands[0].line.to_string())?;
        let output = File::create(&self.output)?;
        let mut bash = Command::new("bash");
        bash.arg("-ec").arg(script(block)).current_dir(&self.work);
        bash.env("PATH", search_path()?);
        bash.env(DOCUMENT_VARIABLE, document).env(LINE_VARIABLE, &self.line);
        bash.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output);
        own_process_group(&mut bash);
        let mut child = bash.spawn().context("cannot run bash")?;
        let status = wait_within(limit, &mut child)?;
        let reason = match status {
            Some(status) if status.success() => return Ok(()),
            Some(status) => status.to_string(),
            None => {
                kill_process_group(child.id());
                child.wait()?;
                format!("no exit within {} s", limit.as_secs())
            }
        };
        let line = fs::read_to_string(&self.line)?.trim().parse().unwrap_or(0);
        let command = block.commands.iter().find(|command| command.line == line);
        let command = command.map_or("", |command| &command.text);
        let output = last_lines(&fs::read(&self.output)?, SHOWN_LINES);
        bail!("{document}:{line}: `{command}` failed: {reason}\n{output}")
    }
}

/// PATH with the debug builds first.
fn search_path() -> Result<OsString> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let builds = [workspace::native_build("")].into_iter();
    Ok(std::env::join_paths(builds.chain(std::env::split_paths(&path)))?)
}

/// The commands of a block for bash, which records the line of each before it starts.
fn script(block: &Block) -> String {
    let commands = block
        .commands
        .iter()
        .map(|command| format!("echo {} >\"${LINE_VARIABLE}\"\n{}\n", command.line, command.text));
    commands.collect()
}

/// Has `command` start a process group, so that its children can be killed as well.
#[cfg(unix)]
fn own_process_group(command: &mut Command) {
    std::os::unix::process::CommandExt::process_group(command, 0);
}

#[cfg(not(unix))]
fn own_process_group(_: &mut Command) {}

fn kill_process_group(leader: u32) {
    let group = format!("-{leader}");
    // It fails only if every process of the group has exited in the meantime.
    let _ = process::stdout(Command::new("kill").args(["-KILL", "--"]).arg(group));
}

#[cfg(unix)]
fn link(target: &Path, link: &Path) -> Result<()> {
    std::os::unix::fs::symlink(target, link)
        .with_context(|| format!("cannot create {}", link.display()))
}

#[cfg(not(unix))]
fn link(_: &Path, link: &Path) -> Result<()> {
    bail!("cannot create {}: no symbolic links on this system", link.display())
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    /// Runs `text` as a document of a workspace that contains the file `present`.
    #[allow(clippy::unwrap_used, reason = "part of the tests")]
    fn run_text(text: &str) -> (tempfile::TempDir, Result<usize>) {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("root");
        fs::create_dir(&root).unwrap();
        fs::write(root.join("present"), "content\n").unwrap();
        fs::write(root.join("page.md"), text).unwrap();
        let place = Place::create(&root, &folder.path().join("place")).unwrap();
        let document = read(&root, Path::new("page.md"), &["cargo".to_owned()]).unwrap();
        let result = place.run_document(&document);
        (folder, result)
    }

    #[test]
    fn commands_run_in_a_place_that_looks_like_the_workspace() {
        let text = "```sh\ncat present > written\n# comment\ntest -s \\\n  written\n```\n\
                    ```sh\n! test -e written\n```\n```text\nfalse\n```\n";
        let (folder, result) = run_text(text);
        assert_eq!(result.unwrap(), 3);
        assert!(!folder.path().join("root/written").exists());
    }

    #[test]
    fn a_block_is_one_shell() {
        let (_folder, result) = run_text("```sh\nmkdir inner\ncd inner\nx=1\ntest $x = 1\n```\n");
        assert_eq!(result.unwrap(), 4);
    }

    #[test]
    fn a_failure_names_line_command_status_and_output() {
        let (_folder, result) = run_text("```sh\ntrue\n\nls missing \\\n  present\ntouch x\n```\n");
        let error = result.unwrap_err().to_string();
        let start = "page.md:4: `ls missing \\\n  present` failed: exit status: 2\n";
        assert!(error.starts_with(start), "{error}");
        assert!(error.contains("missing'") && error.ends_with("present"), "{error}");
    }

    #[test]
    fn a_block_that_takes_too_long_is_killed_with_its_children() {
        let folder = tempfile::tempdir().unwrap();
        let place = Place::create(folder.path(), &folder.path().join("place")).unwrap();
        fs::create_dir(&place.work).unwrap();
        let blocks =
            blocks::shell_blocks("a.md", "```sh\nsleep 61 & sleep 62; true\n```\n", &[]).unwrap();
        let result = place.run_block("a.md", &blocks[0], Duration::from_millis(50));
        let error = result.unwrap_err().to_string();
        assert!(
            error.starts_with("a.md:2: `sleep 61 & sleep 62; true` failed: no exit"),
            "{error}"
        );
    }

    #[test]
    fn every_page_of_the_documentation_is_found() {
        let found = documents(&workspace::root()).unwrap();
        for page in
            ["README.md", "docs/configuration.md", "docs/reference/directx-device-plugin.md"]
        {
            assert!(found.contains(&PathBuf::from(page)), "{found:?}");
        }
    }
}
