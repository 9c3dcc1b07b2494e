//! What an image contains.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::json;

use crate::image::{BUILT, Builder, LINUX, Layout, PLUGIN, VISIBLE, files, run, text, xtask_image};
use image_suite::daemon::Containerd;

const HIVES: [&str; 5] = ["DEFAULT", "SAM", "SECURITY", "SOFTWARE", "SYSTEM"];
const HIVE_FOLDER: &str = "Files/Windows/System32/config";

#[test]
fn the_layer_has_folders_then_hives_and_programs() {
    let builder = Builder::new();
    builder.build(1, &[]);
    let entries = builder.layout(PLUGIN).entries();
    let listed = entries.iter().map(|entry| match &entry.link {
        Some(target) => format!("{} = {target}", entry.path),
        None if entry.header.entry_type().is_dir() => format!("{}/", entry.path),
        None => entry.path.clone(),
    });
    let expected = "\
Files/
Files/Windows/
Files/Windows/System32/
Files/Windows/System32/config/
Files/Windows/System32/config/DEFAULT
Files/Windows/System32/config/SAM
Files/Windows/System32/config/SECURITY
Files/Windows/System32/config/SOFTWARE
Files/Windows/System32/config/SYSTEM
Files/device-plugin-mcdm.exe
Files/device-plugin-wddm.exe
Files/directx-device-discovery.dll
Files/directx-device-plugin.exe
Files/directx-feature-discovery.exe
Files/gen-device-mounts.exe
Files/gpu-probe.exe
Files/query-hcs-capabilities.exe
Files/test-device-discovery-cpp.exe
Files/test-device-discovery-go.exe = Files/test-device-discovery-cpp.exe
Files/test-device-discovery.exe = Files/test-device-discovery-cpp.exe";
    assert_eq!(listed.collect::<Vec<_>>().join("\n"), expected);
    let content = |path: &str| &entries.iter().find(|e| e.path == path).unwrap().bytes;
    assert_eq!(content("Files/device-plugin-mcdm.exe"), b"device-plugin-mcdm.exe");
    assert_eq!(content("Files/directx-device-discovery.dll"), b"directx_device_discovery.dll");
}

/// The manifests of `TensorWorks` name these images, and no command.
#[test]
fn the_images_with_earlier_names_differ_only_in_what_they_run() {
    let builder = Builder::new();
    let printed = builder.build(1, &["--tag", "0.0.1"]);
    let image = builder.layout(PLUGIN);
    let manifests = image.index()["manifests"].as_array().unwrap().clone();
    let expected = [
        ("directx-device-plugin", json!(["directx-device-plugin.exe"]), json!(["serve"])),
        ("wddm-device-plugin", json!(["device-plugin-wddm.exe"]), json!([])),
        ("mcdm-device-plugin", json!(["device-plugin-mcdm.exe"]), json!([])),
    ];
    assert_eq!(manifests.len(), expected.len());
    let programs: Vec<String> = image.entries().into_iter().map(|entry| entry.path).collect();
    for (descriptor, (name, entrypoint, arguments)) in manifests.iter().zip(expected) {
        let full = format!("registry.example.com/{name}:0.0.1");
        assert_eq!(descriptor["annotations"]["io.containerd.image.name"], full);
        assert!(
            printed.contains(&format!("{}  {full}\n", text(&descriptor["digest"]))),
            "{printed}"
        );
        let manifest = image.document(descriptor);
        assert_eq!(manifest["layers"], image.manifest()["layers"]);
        assert_eq!(manifest["annotations"]["org.opencontainers.image.title"], name);
        let config = image.document(&manifest["config"]);
        assert_eq!(config["rootfs"], image.config()["rootfs"]);
        let config = &config["config"];
        assert_eq!((&config["Entrypoint"], &config["Cmd"]), (&entrypoint, &arguments));
        // The root of the image is in PATH.
        assert!(programs.contains(&format!("Files/{}", text(&entrypoint[0]))), "{programs:?}");
        let environment = match name {
            "mcdm-device-plugin" => json!(["MCDM_DEVICE_PLUGIN_MULTI_DEVICE=first"]),
            _ => json!(null),
        };
        assert_eq!(config["Env"], environment);
    }
}

/// An antivirus may remove what hooks processes, and the image that has it.
#[test]
fn what_hooks_processes_has_an_image_of_its_own() {
    let builder = Builder::new();
    let printed = builder.build(1, &["--directx-visible"]);
    assert!(printed.contains("directx-visible.tar"), "{printed}");
    let image = builder.layout(VISIBLE);
    let programs: Vec<(String, Vec<u8>)> = image
        .entries()
        .into_iter()
        .filter(|entry| !entry.path.starts_with("Files/Windows") && entry.path != "Files")
        .map(|entry| (entry.path, entry.bytes))
        .collect();
    let names =
        ["directx-visible-filter.dll", "directx-visible-filter32.dll", "directx-visible.exe"];
    assert_eq!(programs, names.map(|name| (format!("Files/{name}"), name.into())));
    let config = image.config();
    assert_eq!(config.get("os.version"), None);
    assert_eq!(config["config"]["Entrypoint"], json!(["directx-visible.exe"]));
    let found = builder.error(1, &["--directx-visible", "--linux"]);
    assert!(found.starts_with("error: the argument '--directx-visible' cannot be used"), "{found}");
}

#[test]
fn the_linux_image_has_its_programs_and_nothing_of_windows() {
    let builder = Builder::new();
    builder.build(1_000_000_000, &["--linux"]);
    let image = builder.layout(LINUX);
    let entries = image.entries();
    assert_eq!(entries.len(), 2);
    for (program, name) in entries.iter().zip(BUILT) {
        assert_eq!((&*program.path, &*program.bytes), (name, name.as_bytes()));
        let header = &program.header;
        assert_eq!((header.mode().unwrap(), header.mtime().unwrap()), (0o755, 1_000_000_000));
        assert_eq!((header.uid().unwrap(), header.gid().unwrap()), (0, 0));
        assert!(program.attributes.is_empty(), "{:?}", program.attributes);
    }
    let config = image.config();
    let platform = json!({"os": config["os"], "architecture": config["architecture"]});
    assert_eq!(platform, json!({"os": "linux", "architecture": "amd64"}));
    assert_eq!(image.index()["manifests"][0]["platform"], platform);
    assert_eq!(config["config"]["Entrypoint"], json!(["/directx-device-plugin"]));
    assert_eq!(config["config"]["Cmd"], json!(["serve"]));
}

#[test]
fn entries_have_the_attributes_that_windows_reads() {
    let builder = Builder::new();
    builder.build(1_000_000_000, &[]);
    for entry in builder.layout(PLUGIN).entries() {
        assert_eq!(entry.header.mtime().unwrap(), 1_000_000_000);
        assert_eq!((entry.header.uid().unwrap(), entry.header.gid().unwrap()), (0, 0));
        if entry.link.is_some() {
            continue;
        }
        let is_folder = entry.header.entry_type().is_dir();
        let (attributes, mode) = if is_folder { ("16", 0x4000) } else { ("32", 0x8000) };
        assert_eq!(entry.header.mode().unwrap() & 0xf000, mode, "{}", entry.path);
        assert_eq!(entry.attributes["MSWINDOWS.fileattr"], attributes, "{}", entry.path);
        for time in ["LIBARCHIVE.creationtime", "atime", "ctime"] {
            assert_eq!(entry.attributes[time], "1000000000", "{}", entry.path);
        }
    }
}

#[test]
fn the_image_runs_on_every_windows_and_has_labels() {
    let builder = Builder::new();
    builder.build(0, &["--repository", "Owner/Plugin"]);
    let image = builder.layout(PLUGIN);
    let config = image.config();
    assert_eq!((&config["os"], &config["architecture"]), (&json!("windows"), &json!("amd64")));
    // containerd runs an image with a version on this version only.
    assert_eq!(config.get("os.version"), None);
    assert_eq!(config["config"]["Entrypoint"], json!(["directx-device-plugin.exe"]));
    assert_eq!(config["config"]["Cmd"], json!(["serve"]));
    assert_eq!(config["created"], "1970-01-01T00:00:00Z");
    let labels = &config["config"]["Labels"];
    assert_eq!(image.manifest()["annotations"], *labels);
    for key in ["title", "version", "revision", "created", "licenses", "source", "description"] {
        assert!(labels[format!("org.opencontainers.image.{key}")].is_string(), "{key}: {labels}");
    }
    // The source is the repository whose workflow builds the image.
    assert_eq!(labels["org.opencontainers.image.source"], "https://github.com/Owner/Plugin");
    builder.build(0, &[]);
    let labels = builder.layout(PLUGIN).config()["config"]["Labels"].clone();
    assert_eq!(labels.get("org.opencontainers.image.source"), None);
    assert_eq!(labels["org.opencontainers.image.version"], env!("CARGO_PKG_VERSION"));
    builder.build(0, &["--revision"]);
    let labels = builder.layout(PLUGIN).config()["config"]["Labels"].clone();
    let revision = text(&labels["org.opencontainers.image.revision"]);
    let version = text(&labels["org.opencontainers.image.version"]);
    let expected = format!("{}-g{}", env!("CARGO_PKG_VERSION"), &revision[..12]);
    assert!(version.starts_with(&expected), "{labels}");
}

#[test]
fn another_folder_and_umask_give_the_same_bytes() {
    let builders = [Builder::new(), Builder::new()];
    builders[0].build(7, &[]);
    let mut command = builders[1].command(7, &[]);
    if cfg!(unix) {
        let build = command;
        command = Command::new("sh");
        command.args(["-c", "umask 077; exec \"$@\"", "sh"]).arg(build.get_program());
        command.args(build.get_args()).env("SOURCE_DATE_EPOCH", "7");
    }
    run(&mut command);
    assert_eq!(files(&builders[0].output()), files(&builders[1].output()));
}

/// What readers accept and Windows does not: unequal sequence numbers, a wrong size of the bins,
/// a root that is not marked as one. hivexml also checks the checksum.
#[test]
fn hives_are_complete() {
    let builder = Builder::new();
    builder.build(1, &[]);
    let entries = builder.layout(PLUGIN).entries();
    for name in HIVES {
        let path = format!("{HIVE_FOLDER}/{name}");
        let hive = &entries.iter().find(|entry| entry.path == path).unwrap().bytes;
        let number = |at: usize| u32::from_le_bytes(hive[at..at + 4].try_into().unwrap());
        assert_eq!((&hive[..4], hive.len()), (&b"regf"[..], 0x2000));
        assert_eq!(number(4), number(8), "sequence numbers");
        assert_eq!((number(20), number(24), number(28)), (1, 3, 0), "version and type");
        assert_eq!((number(36), number(40)), (0x20, 0x1000), "root and size of the bins");
        assert_eq!(number(0x1024), u32::from_le_bytes([b'n', b'k', 0x2c, 0]), "flags of the root");
        let mut at = 0x1020;
        while at < hive.len() {
            at += number(at).cast_signed().unsigned_abs() as usize;
        }
        assert_eq!(at, hive.len(), "the cells fill the bin");
    }
}

#[test]
#[ignore = "needs hivexml, reglookup and GNU tar: cargo xtask test image"]
fn readers_of_hives_find_an_empty_root() {
    let builder = Builder::new();
    builder.build(1, &[]);
    let folder = tempfile::tempdir().unwrap();
    extract(&builder.layout(PLUGIN), folder.path());
    for name in HIVES {
        let path = folder.path().join(HIVE_FOLDER).join(name);
        let xml = run(Command::new("hivexml").arg(&path));
        assert!(xml.contains("<node name=\"R\" root=\"1\""), "{name}: {xml}");
        let keys = run(Command::new("reglookup").arg("-s").arg(&path));
        let [_, root] = keys.lines().collect::<Vec<_>>()[..] else { panic!("{name}: {keys}") };
        // The root has an owner and a group.
        assert!(root.starts_with("/,KEY,"), "{name}: {keys}");
        assert!(root.contains("S-1-5-32-544,S-1-5-18"), "{name}: {keys}");
    }
    // The readers find faults in a damaged hive.
    let path = folder.path().join(HIVE_FOLDER).join(HIVES[0]);
    let mut bytes = fs::read(&path).unwrap();
    bytes[0x1000] = 0;
    fs::write(&path, bytes).unwrap();
    assert!(!Command::new("hivexml").arg(&path).output().unwrap().status.success());
}

/// GNU tar, which accepts the headers for Windows.
fn extract(image: &Layout, folder: &Path) {
    let mut tar = Command::new("tar");
    tar.args(["--warning=no-unknown-keyword", "--extract", "--gzip", "--file"]).arg(image.layer());
    run(tar.arg("--directory").arg(folder));
}

#[test]
#[ignore = "needs root, MinGW, containerd and runc: cargo xtask test image"]
fn built_programs_contain_nothing_of_this_machine() {
    let output = tempfile::tempdir().unwrap();
    let build = || {
        let mut build = xtask_image();
        build.args(["--profile", "dev", "--output"]).arg(output.path());
        build
    };
    run(&mut build());
    run(build().arg("--directx-visible"));
    run(build().arg("--linux"));
    let images = [PLUGIN, VISIBLE, LINUX].map(|name| Layout { folder: output.path().join(name) });
    for program in images[2].entries() {
        assert!(!has_interpreter(&program.bytes), "{} is not static", program.path);
    }
    runs(&output.path().join("directx-device-plugin-linux.tar"));
    let home = std::env::home_dir().unwrap();
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().parent().unwrap();
    let mut programs = 0;
    let entries = images.iter().flat_map(Layout::entries);
    let is_program = |bytes: &[u8]| bytes.starts_with(b"MZ") || bytes.starts_with(b"\x7fELF");
    for entry in entries.filter(|entry| is_program(&entry.bytes)) {
        programs += 1;
        let number = |at: usize| u32::from_le_bytes(entry.bytes[at..at + 4].try_into().unwrap());
        if entry.bytes.starts_with(b"MZ") {
            // `TimeDateStamp` in `IMAGE_FILE_HEADER` (winnt.h).
            assert_eq!(number(number(0x3c) as usize + 8), 0, "{}: time of the build", entry.path);
        }
        for folder in [here, &home.join(".cargo")] {
            let folder = folder.as_os_str().as_encoded_bytes();
            let is_found = entry.bytes.windows(folder.len()).any(|window| window == folder);
            assert!(!is_found, "{} contains {}", entry.path, String::from_utf8_lossy(folder));
        }
    }
    assert_eq!(programs, BUILT.len());
}

/// Whether an ELF program needs a dynamic linker.
fn has_interpreter(program: &[u8]) -> bool {
    let number = |at: usize, length: usize| {
        let bytes = program[at..at + length].iter().rev();
        bytes.fold(0, |sum, byte| sum << 8 | usize::from(*byte))
    };
    // `e_phoff`, `e_phentsize` and `e_phnum` of `Elf64_Ehdr`; `PT_INTERP` (elf.h).
    (0..number(56, 2)).any(|n| number(number(32, 8) + n * number(54, 2), 4) == 3)
}

/// Runs the program of the image in `archive` in a container.
fn runs(archive: &Path) {
    let containerd = Containerd::start();
    let snapshots = ["--snapshotter", "native"];
    containerd.ctr(&[&["images", "import"], &snapshots[..], &[archive.to_str().unwrap()]].concat());
    let version = env!("CARGO_PKG_VERSION");
    let name = format!("localhost/directx-device-plugin-linux:{version}");
    let arguments = ["--rm", "--read-only", &name, "test", "/directx-device-plugin", "--version"];
    let printed = containerd.ctr(&[&["run"], &snapshots[..], &arguments].concat());
    assert_eq!(printed, format!("directx-device-plugin {version}\n"));
}
