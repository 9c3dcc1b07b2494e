//! `directx-visible --com` with DXVK, whose DXGI lists the devices of Vulkan and does not use
//! the functions of `win32u`.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use crate::process::{output_within, run};
use crate::visibility_filter;
use crate::wine::{Wine, windows_path};
use crate::workspace::{self, cargo};

/// How long one run may take.
const DEADLINE: Duration = Duration::from_secs(300);

/// DXVK's libraries.
const LIBRARIES: [&str; 2] = ["dxgi", "d3d11"];

/// What the filtered program prints with `hidden` and `shown`.
const FILTERED: &str = "EnumAdapters {shown}\nEnumAdapters1 {shown}\n\
    EnumAdapterByGpuPreference {shown}\nfound {hidden} not: 887A0002\nfound {shown} as {shown}\n";

pub(super) fn check(wine: &Wine) -> Result<()> {
    let bed = Bed::new(wine)?;
    let start = Instant::now();
    let all = stdout(bed.command("dxgi_user.exe").arg("imported"))?;
    let luids = all.lines().next().and_then(|line| line.strip_prefix("EnumAdapters "));
    let (hidden, shown) = luids
        .and_then(|luids| luids.split_once(','))
        .with_context(|| format!("DXVK does not list two GPUs:\n{all}"))?;
    let filtered = FILTERED.replace("{hidden}", hidden).replace("{shown}", shown);
    let user = windows_path(&bed.folder.join("dxgi_user.exe"));
    let copy = windows_path(&bed.copy("copy")?);
    let run = |before: &[&str], way: &str| {
        let words = [before, &[&user, way, hidden, shown]].concat();
        stdout(bed.launcher(shown).args(words))
    };
    // Without the option the lists of DXVK stay complete.
    let complete = run(&["--"], "imported")?;
    let both = format!("EnumAdapters {hidden},{shown}\n");
    ensure!(complete.starts_with(&both), "without --com: {complete}");
    let twice = format!("{filtered}{filtered}");
    let of_device = format!("device {shown}\n{filtered}");
    let command = ["--com", "--require", "--", "cmd.exe", "/c"];
    for (before, way, expected) in [
        (&command[..], "imported", &filtered),
        (&command[..3], "d3d11", &of_device),
        (&command[..3], &copy, &twice),
    ] {
        let found = run(before, way)?;
        ensure!(found == *expected, "--com with {way}: expected\n{expected}found\n{found}");
    }
    too_many(&bed, shown)?;
    println!("directx-visible --com with DXVK: {:.1} s", start.elapsed().as_secs_f64());
    Ok(())
}

/// A process has room for two libraries of DXGI.
fn too_many(bed: &Bed, shown: &str) -> Result<()> {
    let user = windows_path(&bed.folder.join("dxgi_user.exe"));
    let copies = [windows_path(&bed.copy("copy")?), windows_path(&bed.copy("copy2")?)];
    let load = ["--", &user, "load", &copies[0], &copies[1]];
    let why = "through a dxgi.dll that cannot be filtered, status C0000017";
    let allowed = "directx-visible: this process sees every GPU ";
    let refused = "directx-visible: this process was ended because of --require: ";
    for (options, code, effect) in
        [(&["--com"][..], 0, allowed), (&["--com", "--require"], 0x22, refused)]
    {
        let words = [options, &load].concat();
        let output = output_within(DEADLINE, bed.launcher(shown).args(words))?;
        let error = String::from_utf8_lossy(&output.stderr);
        // Linux keeps the lower eight bits of STATUS_ACCESS_DENIED.
        ensure!(output.status.code() == Some(code), "{}: {error}", output.status);
        ensure!(error.contains(effect) && error.contains(why), "{error}");
    }
    Ok(())
}

/// The launcher, its filters, and a program with DXVK's libraries beside it.
struct Bed<'a> {
    wine: &'a Wine,
    folder: PathBuf,
}

impl Bed<'_> {
    fn new(wine: &Wine) -> Result<Bed<'_>> {
        let build = ["build", "--quiet", "--package", "wine_bed", "--package", "directx_visible"];
        run(cargo().args(build).args(["--target", workspace::WINDOWS_TARGET]))?;
        let folder = workspace::target_dir().join("wine").join("dxvk");
        fs::create_dir_all(&folder)?;
        for program in ["dxgi_user.exe", "directx-visible.exe"] {
            fs::copy(workspace::windows_build(program), folder.join(program))
                .with_context(|| format!("cannot copy {program}"))?;
        }
        for filter in visibility_filter::build()? {
            fs::copy(&filter, folder.join(filter.file_name().unwrap_or_default()))?;
        }
        let dxvk = wine.root().context("no Debian root")?.join("usr/lib/dxvk/wine64");
        for library in LIBRARIES {
            let file = dxvk.join(format!("{library}.dll.so"));
            fs::copy(&file, folder.join(format!("{library}.dll")))
                .with_context(|| format!("cannot copy {}", file.display()))?;
        }
        Ok(Bed { wine, folder })
    }

    /// A copy of DXGI that nobody imports, in a folder of its own.
    fn copy(&self, folder: &str) -> Result<PathBuf> {
        let folder = self.folder.join(folder);
        fs::create_dir_all(&folder)?;
        let copy = folder.join("dxgi.dll");
        fs::copy(self.folder.join("dxgi.dll"), &copy)?;
        Ok(copy)
    }

    /// The launcher in a container that has the adapter `shown`.
    fn launcher(&self, shown: &str) -> Command {
        let mut command = self.command("directx-visible.exe");
        command.env("DIRECTX_VISIBLE_DEVICES", shown);
        command
    }

    fn command(&self, program: &str) -> Command {
        let mut command =
            self.wine.command_with_own_libraries(&self.folder.join(program), &LIBRARIES);
        command.env("DXVK_LOG_LEVEL", "none");
        command
    }
}

/// What a command prints that exits with 0.
fn stdout(command: &mut Command) -> Result<String> {
    let output = output_within(DEADLINE, command)?;
    let text = String::from_utf8_lossy(&output.stdout).replace("\r\n", "\n");
    let error = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{}: {text}{error}", output.status);
    Ok(text)
}
