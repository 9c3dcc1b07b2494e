//! `serve` with `visibility: launcher`: the folder of the host with `directx-visible`. The rights that
//! Wine can express are tested by the crate `access_rights`.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use super::daemon::Daemon;
use super::programs::{Programs, output};
use super::test_case::TestCase;
use crate::wine::windows_path;
use crate::workspace;

const INVENTORY: &str = "fixtures/inventories/aws-t4-two.yaml";
const LAUNCHER: &str = "directx-visible.exe";
const FILTER: &str = "directx-visible-filter.dll";

pub(super) fn tests() -> Vec<TestCase> {
    vec![TestCase::new("visibility: launcher writes the files on the host", written_and_repaired)]
}

/// The daemon with the launcher beside it, and its folder on the host.
struct Release<'a> {
    programs: &'a Programs<'a>,
    folder: PathBuf,
    provided: PathBuf,
}

impl Release<'_> {
    fn new<'a>(programs: &'a Programs<'a>) -> Result<Release<'a>> {
        programs.host.set(&workspace::root().join(INVENTORY))?;
        let folder = workspace::target_dir().join("wine").join("release");
        fs::create_dir_all(&folder)?;
        for name in ["directx-device-plugin.exe", LAUNCHER] {
            let program = workspace::windows_build(name);
            fs::copy(&program, folder.join(name))
                .with_context(|| format!("cannot copy {}", program.display()))?;
        }
        for filter in &programs.filters {
            fs::copy(filter, folder.join(filter.file_name().unwrap_or_default()))?;
        }
        fs::write(folder.join("config.yaml"), "visibility: launcher\n")?;
        let own = programs.host.drive_c().join("ProgramData/directx-device-plugin");
        if own.exists() {
            fs::remove_dir_all(&own)?;
        }
        Ok(Release { programs, folder, provided: own.join("visible") })
    }

    /// Starts a daemon, which writes its files before it logs `starting`.
    fn serve(&self) -> Result<Daemon> {
        let mut command = self.command("serve");
        let mut daemon = Daemon::start(&mut command)?;
        daemon.expect_line(&["starting"])?;
        Ok(daemon)
    }

    fn command(&self, subcommand: &str) -> std::process::Command {
        let mut command =
            self.programs.host.command(&self.folder.join("directx-device-plugin.exe"));
        let config = windows_path(&self.folder.join("config.yaml"));
        command.args([subcommand, "--config", config.as_str()]);
        command
    }

    /// The folder of this version, the only one.
    fn version(&self) -> Result<PathBuf> {
        let mut folders = fs::read_dir(&self.provided)?;
        let first = folders.next().context("the daemon wrote no folder")??;
        ensure!(folders.next().is_none(), "the daemon wrote several folders");
        Ok(first.path())
    }

    fn expect_equal(&self, name: &str) -> Result<()> {
        let read = |folder: &Path| fs::read(folder.join(name)).with_context(|| name.to_owned());
        ensure!(read(&self.version()?)? == read(&self.folder)?, "{name} differs");
        Ok(())
    }
}

fn written_and_repaired(programs: &Programs) -> Result<()> {
    let release = Release::new(programs)?;
    for _ in 0..2 {
        let mut daemon = release.serve()?;
        release.expect_equal(LAUNCHER)?;
        release.expect_equal(FILTER)?;
        daemon.expect_running()?;
        drop(daemon);
        // A damaged copy, which the next start replaces.
        fs::write(release.version()?.join(FILTER), "damaged")?;
    }
    let healthy = output(&mut release.command("doctor"))?;
    let healthy = String::from_utf8_lossy(&healthy.stdout).into_owned();
    ensure!(!healthy.contains("does not lie beside"), "{healthy}");
    fs::remove_file(release.folder.join(FILTER))?;
    let mut command = release.command("serve");
    let mut daemon = Daemon::start(&mut command)?;
    daemon.expect_line(&["cannot provide directx-visible", FILTER, "hint"])?;
    daemon.expect_line(&["starting"])?;
    daemon.expect_running()?;
    let problem = output(&mut release.command("doctor"))?;
    let problem = String::from_utf8_lossy(&problem.stdout).into_owned();
    ensure!(problem.contains(&format!("{FILTER} does not lie beside")), "{problem}");
    Ok(())
}
