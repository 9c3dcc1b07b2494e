//! A Wine prefix that looks like the host of an inventory.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::process::run;
use crate::wine::Wine;
use crate::workspace::{self, cargo};

/// The libraries that copies of the double can stand in for. Wine has none of them but
/// `dxcore.dll`, and that one serves no caller.
const PLAYED: [&str; 4] = ["dxcore.dll", "computecore.dll", "vmcompute.dll", "winbrand.dll"];

/// Those that an up-to-date host has: `vmcompute.dll` is what older ones have in the
/// place of `computecore.dll`.
const USUAL: [&str; 3] = ["dxcore.dll", "computecore.dll", "winbrand.dll"];

/// A prefix with the double in it and a file that the double follows.
pub(crate) struct Bed<'a> {
    wine: &'a Wine,
    /// What the host is now.
    inventory: PathBuf,
}

impl<'a> Bed<'a> {
    /// Builds the bed's own programs and puts them into the prefix of `wine`.
    pub(crate) fn new(wine: &'a Wine) -> Result<Bed<'a>> {
        let packages = ["--package", "dxcore_double", "--package", "wine_bed"];
        let target = ["--target", workspace::WINDOWS_TARGET];
        run(cargo().args(["build", "--quiet"]).args(packages).args(target))?;
        let bed = Bed { wine, inventory: wine.drive_c().join("inventory.yaml") };
        bed.install(&USUAL)?;
        Ok(bed)
    }

    /// Has the double stand in for these libraries of [`PLAYED`] and no others.
    pub(crate) fn install(&self, libraries: &[&str]) -> Result<()> {
        for library in PLAYED {
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

    /// Takes everything away that earlier tests have put into the prefix.
    pub(crate) fn reset(&self) -> Result<()> {
        self.install(&USUAL)?;
        run(&mut self.tool(&["clear"]))
    }

    /// Makes the prefix look like the host of `inventory`: first its devices, then, at
    /// one moment, its adapters.
    pub(crate) fn set(&self, inventory: &Path) -> Result<()> {
        let next = self.wine.drive_c().join("next.yaml");
        fs::copy(inventory, &next)
            .with_context(|| format!("cannot read {}", inventory.display()))?;
        run(self.tool(&["set"]).arg(r"C:\next.yaml"))?;
        self.show(inventory)
    }

    /// Changes the adapters alone, at one moment; the devices stay.
    pub(crate) fn show(&self, inventory: &Path) -> Result<()> {
        let draft = self.inventory.with_extension("draft");
        fs::copy(inventory, &draft)
            .with_context(|| format!("cannot read {}", inventory.display()))?;
        Ok(fs::rename(&draft, &self.inventory)?)
    }

    /// Puts a fault into the bed that no inventory can describe (see `wine_bed`).
    pub(crate) fn spoil(&self, words: &[&str]) -> Result<()> {
        run(&mut self.tool(words))
    }

    /// Runs a Windows program on this host.
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
