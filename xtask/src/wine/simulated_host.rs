//! A Wine prefix that looks like the host of an inventory.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::prefix::Wine;
use crate::process::run;
use crate::workspace::{self, cargo};

/// The libraries that copies of `dxcore_double` replace. Wine has none of them but
/// `dxcore.dll`, and that one supports no caller.
const REPLACED: [&str; 4] = ["dxcore.dll", "computecore.dll", "vmcompute.dll", "winbrand.dll"];

/// The libraries of an up-to-date host. Older hosts have `vmcompute.dll` instead of
/// `computecore.dll`.
const USUAL: [&str; 3] = ["dxcore.dll", "computecore.dll", "winbrand.dll"];

/// A prefix with `dxcore_double` in it and an inventory that the double follows.
pub(crate) struct SimulatedHost<'a> {
    wine: &'a Wine,
    /// What the host is now.
    inventory: PathBuf,
}

impl<'a> SimulatedHost<'a> {
    /// Builds `dxcore_double` and `wine_bed`, and installs the double in the prefix.
    pub(crate) fn new(wine: &'a Wine) -> Result<SimulatedHost<'a>> {
        let packages = ["--package", "dxcore_double", "--package", "wine_bed"];
        let target = ["--target", workspace::WINDOWS_TARGET];
        run(cargo().args(["build", "--quiet"]).args(packages).args(target))?;
        let host = SimulatedHost { wine, inventory: wine.drive_c().join("inventory.yaml") };
        host.install(&USUAL)?;
        Ok(host)
    }

    /// Installs the double under these names of [`REPLACED`], and removes it under the
    /// others.
    pub(crate) fn install(&self, libraries: &[&str]) -> Result<()> {
        for library in REPLACED {
            let place = self.wine.drive_c().join("windows/system32").join(library);
            if place.exists() {
                fs::remove_file(&place)?;
            }
            if libraries.contains(&library) {
                let double = workspace::windows_build("dxcore.dll");
                fs::copy(&double, &place)
                    .with_context(|| format!("cannot copy {}", double.display()))?;
            }
        }
        Ok(())
    }

    /// Removes everything that earlier tests have put into the prefix.
    pub(crate) fn reset(&self) -> Result<()> {
        self.install(&USUAL)?;
        run(&mut self.tool(&["clear"]))
    }

    /// Makes the prefix look like the host of `inventory`: first its devices, then, in one
    /// step, its adapters.
    pub(crate) fn set(&self, inventory: &Path) -> Result<()> {
        let next = self.wine.drive_c().join("next.yaml");
        fs::copy(inventory, &next)
            .with_context(|| format!("cannot copy {}", inventory.display()))?;
        run(self.tool(&["set"]).arg(r"C:\next.yaml"))?;
        self.set_adapters(inventory)
    }

    /// Changes only the adapters, in one step. The devices stay.
    pub(crate) fn set_adapters(&self, inventory: &Path) -> Result<()> {
        let draft = self.inventory.with_extension("draft");
        fs::copy(inventory, &draft)
            .with_context(|| format!("cannot copy {}", inventory.display()))?;
        Ok(fs::rename(&draft, &self.inventory)?)
    }

    /// Injects a fault that no inventory can describe (see `wine_bed`).
    pub(crate) fn inject_fault(&self, words: &[&str]) -> Result<()> {
        run(&mut self.tool(words))
    }

    /// Stops every process of a Windows program as containerd stops a `HostProcess` container.
    pub(crate) fn send_shutdown(&self, program: &str) -> Result<()> {
        run(&mut self.tool(&["send-shutdown", program]))
    }

    /// Drive C of the host.
    pub(crate) fn drive_c(&self) -> PathBuf {
        self.wine.drive_c()
    }

    /// A command that runs a Windows program on this host.
    pub(crate) fn command(&self, program: &Path) -> Command {
        let mut command = self.wine.command(program);
        command.env("DXCORE_DOUBLE_INVENTORY", r"C:\inventory.yaml");
        command
    }

    fn tool(&self, words: &[&str]) -> Command {
        let mut command = self.wine.command(&workspace::windows_build("wine_bed.exe"));
        command.args(words);
        command
    }
}
