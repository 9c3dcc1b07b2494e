//! Runs `cargo xtask release`, and does with its files what users do.

#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
#![allow(clippy::unwrap_used, reason = "a test")]
#![allow(clippy::case_sensitive_file_extension_comparisons, reason = "our own names")]

mod windows_program;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use regex_lite::Regex;
use serde_json::Value;

const VERSION: &str = env!("CARGO_PKG_VERSION");

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// What a command that succeeds writes to standard output.
fn output(command: &mut Command) -> String {
    let result = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let errors = String::from_utf8_lossy(&result.stderr);
    assert!(result.status.success(), "{command:?}: {errors}");
    String::from_utf8(result.stdout).unwrap()
}

/// The files below `folder`, by their paths.
fn files(folder: &Path) -> BTreeSet<String> {
    let found = output(Command::new("find").current_dir(folder).args([".", "-type", "f"]));
    found.lines().map(|line| line.trim_start_matches("./").to_owned()).collect()
}

/// Without the flag, Windows programs need a library that only the Visual C++ Redistributable
/// installs. `windows_build.rs` checks the result on Windows.
#[test]
fn msvc_builds_link_the_c_library_statically() {
    let config = fs::read_to_string(workspace().join(".cargo/config.toml")).unwrap();
    assert!(config.contains(
        "[target.x86_64-pc-windows-msvc]\nrustflags = [\"-C\", \"target-feature=+crt-static\"]"
    ));
}

#[test]
#[ignore = "builds a release: cargo xtask test release"]
fn users_can_use_every_file_of_a_release() {
    let temporary = tempfile::tempdir().unwrap();
    let release = temporary.path().join("release");
    let mut xtask = Command::new(env!("CARGO"));
    xtask.args(["xtask", "release", "--dry-run", "--profile", "dev"]).arg("--output").arg(&release);
    output(xtask.args(["--repository", "Owner/Plugin"]).current_dir(workspace()));
    assert!(notes(&release).contains("The Windows programs are unsigned"));

    let mut sums = Command::new("sha256sum");
    let sums = output(sums.current_dir(&release).args(["--check", "--strict", "SHA256SUMS"]));
    let mut listed: BTreeSet<String> = sums.lines().map(|line| line.replace(": OK", "")).collect();
    listed.insert("SHA256SUMS".to_owned());
    assert_eq!(listed, files(&release));

    documents_are_complete(&release);
    crates_are_listed(&release);
    windows_archives(&release, temporary.path());
    linux_archive(&release, &temporary.path().join("linux"));
}

/// The list names what the programs contain and not what tests or builds use.
fn crates_are_listed(release: &Path) {
    let text = fs::read_to_string(release.join("sbom.cdx.json")).unwrap();
    let list: Value = serde_json::from_str(&text).unwrap();
    // Without the number, GitHub's action refuses the list.
    let number =
        Regex::new("^urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-8[0-9a-f]{3}-[0-9a-f]{12}$");
    assert!(number.unwrap().is_match(list["serialNumber"].as_str().unwrap()), "{text}");
    assert_eq!([&list["bomFormat"], &list["specVersion"]], ["CycloneDX", "1.5"]);
    let components = list["components"].as_array().unwrap();
    let lock = fs::read_to_string(workspace().join("Cargo.lock")).unwrap();
    for component in components {
        let [name, version] = ["name", "version"].map(|key| component[key].as_str().unwrap());
        let locked = format!("name = \"{name}\"\nversion = \"{version}\"\n");
        assert!(lock.contains(&locked), "{name} {version}");
        assert_eq!(component["purl"], *format!("pkg:cargo/{name}@{version}"));
        let license = component["licenses"][0]["expression"].as_str().unwrap();
        assert!(!license.is_empty() && !license.contains('/'), "{name}: {license}");
    }
    let has = |name: &str| components.iter().any(|component| component["name"] == name);
    for name in ["ash", "kube", "tokio", "windows"] {
        assert!(has(name), "{name} is not listed");
    }
    for name in ["insta", "proptest", "zip", "winresource", "devices", "serde_derive"] {
        assert!(!has(name), "{name} is listed");
    }
}

fn notes(release: &Path) -> String {
    fs::read_to_string(release.join("release-notes.md")).unwrap()
}

/// The table of the files in `docs/maintainers/releasing.md`, and what each file must contain.
fn documents_are_complete(release: &Path) {
    let read = |name: &str| {
        let name = name.replace("VERSION", VERSION);
        fs::read(release.join(&name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    };
    let page = fs::read_to_string(workspace().join("docs/maintainers/releasing.md")).unwrap();
    let rows = Regex::new(r"(?m)^\| `([a-zA-Z][a-zA-Z0-9._-]+)`").unwrap();
    let documented: Vec<&str> =
        rows.captures_iter(&page).map(|row| row.get(1).unwrap().as_str()).collect();
    assert!(documented.len() > 9, "{documented:?}");
    for name in &documented {
        assert!(read(name).len() > 50, "{name}");
    }
    for name in files(release) {
        let name = name.replace(VERSION, "VERSION");
        assert!(
            documented.contains(&&*name) || name.ends_with(".yml") || name == "kustomization.yaml",
            "{name} is not documented"
        );
    }

    let manifests = files(release).into_iter().filter(|name| name.ends_with(".yml"));
    let manifests: String = manifests.map(|name| String::from_utf8(read(&name)).unwrap()).collect();
    let images = Regex::new(r#"image: "?([^"\s]+)"#).unwrap();
    let images: BTreeSet<_> =
        images.captures_iter(&manifests).map(|image| image.get(1).unwrap().as_str()).collect();
    let listed = String::from_utf8(read("images.txt")).unwrap();
    // Only the chart has demonstrations and directx-visible, and TensorWorks' manifests name two
    // images.
    let others = [
        "directx-device-plugin-linux",
        "directx-visible",
        "mcdm-device-plugin",
        "wddm-device-plugin",
    ];
    let is_other =
        |name: &str| others.iter().any(|other| name.contains(&format!("owner/{other}:{VERSION}@")));
    let of_manifests = listed.lines().filter(|name| !is_other(name));
    assert_eq!(images, of_manifests.collect());
    assert_eq!(images.len() + others.len(), listed.lines().count(), "{listed}");
    assert!(listed.lines().all(|name| name.starts_with("ghcr.io/owner/")), "{listed}");
    let read_of_chart = |name: &str| {
        let mut tar = Command::new("tar");
        tar.arg("-xzOf").arg(release.join(format!("directx-device-plugin-{VERSION}.tgz")));
        output(tar.arg(format!("directx-device-plugin/{name}")))
    };
    let chart = read_of_chart("Chart.yaml");
    let readme = read_of_chart("README.md");
    let home = "home: https://github.com/Owner/Plugin".to_owned();
    for line in [format!("version: {VERSION}"), format!("appVersion: \"{VERSION}\""), home] {
        assert!(chart.lines().any(|found| found == line), "{chart}");
    }
    assert!(readme.contains(" oci://ghcr.io/owner/charts/directx-device-plugin "), "{readme}");
    assert!(readme.contains("https://github.com/Owner/Plugin/blob/main/docs/"), "{readme}");
    for placeholder in ["registry.example.com", "OWNER"] {
        let left = format!("{manifests}{chart}{readme}").contains(placeholder);
        assert!(!left, "{placeholder} is left");
    }
}

/// Whether a file is a program or a library for Windows.
fn is_program(name: &str) -> bool {
    name.ends_with(".exe") || name.ends_with(".dll")
}

/// Unpacks an archive for Windows, and returns its programs.
fn windows_archive(release: &Path, name: &str, section: &str, to: &Path) -> Vec<String> {
    let archive = release.join(format!("{name}-{VERSION}-windows-x86_64.zip"));
    output(Command::new("unzip").arg("-q").arg(archive).arg("-d").arg(to));
    compare_with_documentation(section, to);
    let programs: Vec<String> = files(to).into_iter().filter(|name| is_program(name)).collect();
    for name in &programs {
        windows_program::check(&to.join(name), VERSION);
    }
    programs
}

fn windows_archives(release: &Path, temporary: &Path) {
    let windows = temporary.join("windows");
    let plugin = windows_archive(release, "directx-device-plugin", "Windows archive", &windows);
    assert_eq!(plugin.len(), 11, "{plugin:?}");
    let to = &temporary.join("visible");
    let visible = windows_archive(release, "directx-visible", "Archive of directx-visible", to);
    assert_eq!(visible.len(), 3, "{visible:?}");
    assert!(!plugin.iter().any(|name| visible.contains(name)), "{plugin:?}");
    // Every process of a container maps a filter, and loads no other library because of it.
    for name in ["directx-visible-filter.dll", "directx-visible-filter32.dll"] {
        let bytes = fs::read(to.join(name)).unwrap();
        assert!(bytes.len() <= 20 * 1024, "{name} has {} bytes", bytes.len());
        assert_eq!(windows_program::imports(&bytes), ["ntdll.dll"], "{name}");
    }
}

fn linux_archive(release: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    let name = format!("directx-device-plugin-{VERSION}-linux-x86_64");
    let archive = release.join(format!("{name}.tar.gz"));
    output(Command::new("tar").arg("-xzf").arg(archive).current_dir(to));
    let folder = to.join(name);
    compare_with_documentation("Linux archive", &folder);
    let run = |program: &str, arguments: &[&str]| {
        output(Command::new(folder.join("bin").join(program)).current_dir(&folder).args(arguments))
    };
    for program in fs::read_dir(folder.join("bin")).unwrap() {
        let name = program.unwrap().file_name().into_string().unwrap();
        assert_eq!(run(&name, &["--version"]), format!("{name} {VERSION}\n"));
    }
    // The programs run on every Linux.
    let loader = b"/ld-linux-x86-64.so.2";
    let is_dynamic = |name: &str| {
        let bytes = fs::read(folder.join("bin").join(name)).unwrap();
        bytes.windows(loader.len()).any(|window| window == loader)
    };
    for name in files(&folder.join("bin")) {
        assert!(!is_dynamic(&name), "{name}");
    }
    let inventory = ["--inventory", "fixtures/inventories/aws-t4-two.yaml"];
    let report = run("directx-device-plugin", &[&["simulate"], &inventory[..]].concat());
    assert!(report.contains("directx.microsoft.com/display"), "{report}");
    assert!(run("test-device-discovery", &inventory).contains("NVIDIA"));
    let image = folder.join("image.json");
    fs::write(&image, r#"{"os":"windows","config":{"Cmd":["a b"],"ArgsEscaped":true}}"#).unwrap();
    assert_eq!(
        run("directx-visible", &["command", image.to_str().unwrap()]),
        "command: [\"directx-visible\"]\nargs: [\"--command-line\", \"a b\", \"--\"]\n"
    );
    let help = run("directx-device-plugin", &["doctor", "--help"]);
    assert!(help.contains("https://github.com/Owner/Plugin/blob/main/docs/doctor.md"), "{help}");
}

/// The table below `heading` of `docs/programs.md` names every file or its folder, and nothing
/// else.
fn compare_with_documentation(heading: &str, folder: &Path) {
    let page = fs::read_to_string(workspace().join("docs/programs.md")).unwrap();
    let section = page.split("\n### ").find(|section| section.starts_with(heading)).unwrap();
    let section = section.split("\n## ").next().unwrap();
    let cells = section.lines().filter_map(|line| line.strip_prefix('|')?.split('|').next());
    let documented: Vec<&str> = cells.flat_map(|cell| cell.split('`').skip(1).step_by(2)).collect();
    let found = files(folder);
    let covers =
        |name: &str, file: &str| file == name || name.ends_with('/') && file.starts_with(name);
    for name in &documented {
        assert!(found.iter().any(|file| covers(name, file)), "the {heading} lacks {name}");
    }
    for file in &found {
        assert!(
            documented.iter().any(|name| covers(name, file)),
            "{heading}: {file} is not documented"
        );
    }
}
