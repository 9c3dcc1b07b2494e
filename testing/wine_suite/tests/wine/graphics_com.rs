//! `directx-visible --com` with DXVK, whose DXGI lists the devices of Vulkan and does not use the
//! functions of `win32u`.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use super::graphics::two_gpus;
use super::host::Prefix;
use super::output::{output, stdout, text};
use super::paths::{copy, copy_filters, windows_build, windows_path};

/// What the filtered program prints with `hidden` and `shown`.
const FILTERED: &str = "EnumAdapters {shown}\nEnumAdapters1 {shown}\n\
    EnumAdapterByGpuPreference {shown}\nfound {hidden} not: 887A0002\nfound {shown} as {shown}\n";

#[test]
#[ignore = "needs Wine: cargo xtask test gpu"]
fn com_hides_a_gpu_from_dxvk() {
    let bed = Bed::new();
    let all = stdout(bed.command("dxgi_user.exe").arg("imported"));
    let luids = all.lines().next().and_then(|line| line.strip_prefix("EnumAdapters "));
    let luids = luids.and_then(|luids| luids.split_once(','));
    let (hidden, shown) = luids.unwrap_or_else(|| panic!("DXVK does not list two GPUs:\n{all}"));
    let filtered = FILTERED.replace("{hidden}", hidden).replace("{shown}", shown);
    let user = windows_path(&bed.folder.join("dxgi_user.exe"));
    let copies = [bed.copy("copy"), bed.copy("copy2")];
    let run = |before: &[&str], way: &str| {
        let words = [before, &[&user, way, hidden, shown]].concat();
        stdout(bed.launcher(shown).args(words))
    };
    // Without the option the lists of DXVK stay complete.
    let complete = run(&["--"], "imported");
    assert!(complete.starts_with(&format!("EnumAdapters {hidden},{shown}\n")), "{complete}");
    let com = ["--com", "--require", "--"];
    let of_command = [&com[..], &["cmd.exe", "/c"]].concat();
    assert_eq!(run(&of_command, "imported"), filtered);
    assert_eq!(run(&com, "d3d11"), format!("device {shown}\n{filtered}"));
    assert_eq!(run(&com, &copies[0]), format!("{filtered}{filtered}"));

    // A process has room for two libraries of DXGI.
    let load = ["--", &user, "load", &copies[0], &copies[1]];
    let why = "through a dxgi.dll that cannot be filtered, status C0000017";
    let allowed = "directx-visible: this process sees every GPU ";
    let refused = "directx-visible: this process was ended because of --require: ";
    // Linux keeps the lower eight bits of STATUS_ACCESS_DENIED.
    for (options, code, effect) in
        [(&["--com"][..], 0, allowed), (&["--com", "--require"], 0x22, refused)]
    {
        let output = output(bed.launcher(shown).args([options, &load].concat()));
        let error = text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{error}");
        assert!(error.contains(effect) && error.contains(why), "{error}");
    }
}

/// The launcher, its filters, and a program with DXVK's libraries beside it.
struct Bed {
    wine: Prefix,
    folder: PathBuf,
}

impl Bed {
    fn new() -> Bed {
        let wine = two_gpus();
        let bed = Bed { folder: wine.empty_folder("dxvk"), wine };
        for program in ["dxgi_user.exe", "directx-visible.exe"] {
            copy(&windows_build(program), &bed.folder);
        }
        copy_filters(&bed.folder);
        for library in ["dxgi", "d3d11"] {
            let copy = windows_path(&bed.folder.join(format!("{library}.dll")));
            let dxvk = format!(r"Z:\usr\lib\dxvk\wine64\{library}.dll.so");
            stdout(bed.wine.command("cmd.exe").args(["/c", "copy", &dxvk, &copy]));
        }
        bed
    }

    /// A copy of DXGI that nobody imports, in a folder of its own.
    fn copy(&self, folder: &str) -> String {
        let folder = self.folder.join(folder);
        fs::create_dir_all(&folder).unwrap();
        windows_path(&copy(&self.folder.join("dxgi.dll"), &folder))
    }

    /// The launcher in a container that has the adapter `shown`.
    fn launcher(&self, shown: &str) -> Command {
        let mut command = self.command("directx-visible.exe");
        command.env("DIRECTX_VISIBLE_DEVICES", shown);
        command
    }

    /// A program that uses DXVK instead of Wine's own libraries.
    fn command(&self, program: &str) -> Command {
        let mut command = self.wine.command(self.folder.join(program));
        command.env("WINEDLLOVERRIDES", "mscoree,mshtml=;dxcore=n;dxgi,d3d11=n");
        command.env("DXVK_LOG_LEVEL", "none");
        command
    }
}
