//! What the plugin's image contains, and that every build gives the same.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use super::build::{self, Layout, run};
use super::test_case::{Context, TestCase};
use crate::image::{HIVE_FOLDER, HIVES, PLUGIN, check_hive, program_names};
use crate::{imports, version_info, workspace};

/// The most that the image may have, in bytes.
const MAXIMUM: u64 = 6_000_000;

pub(super) fn tests() -> Vec<TestCase> {
    vec![
        TestCase { name: "the image is small and runs on every Windows", run: small_and_portable },
        TestCase { name: "its layer holds hives and programs", run: layer_entries },
        TestCase { name: "hivexml and reglookup read its hives", run: hives },
        TestCase { name: "another folder, umask and time give the same bytes", run: reproducible },
        TestCase {
            name: "the programs have a version and nothing of this machine",
            run: portable_programs,
        },
    ]
}

fn small_and_portable(context: &Context) -> Result<()> {
    let image = &context.builds.release;
    let size: u64 = files(&image.folder)?.iter().map(|(_, bytes)| bytes.len() as u64).sum();
    println!("        {} in {size} bytes", image.digest()?);
    ensure!(size < MAXIMUM, "the image has {size} bytes, expected less than {MAXIMUM}");
    let config = image.config()?;
    ensure!(config["os"] == "windows" && config["architecture"] == "amd64", "{config}");
    // Some version would be the only one that containerd runs the image on.
    ensure!(config.get("os.version").is_none(), "{config}");
    ensure!(config["config"]["Entrypoint"][0] == "directx-device-plugin.exe", "{config}");
    let manifest = image.manifest()?;
    for key in ["title", "version", "revision", "licenses", "source", "description"] {
        let key = format!("org.opencontainers.image.{key}");
        let label = &config["config"]["Labels"][&key];
        ensure!(label.is_string(), "no label {key}");
        ensure!(manifest["annotations"][&key] == *label, "no annotation {key}");
    }
    let diff_id = run(Command::new("sh")
        .arg("-c")
        .arg("gzip -dc \"$0\" | sha256sum")
        .arg(image.top_layer()?))?;
    let diff_id = format!("sha256:{}", diff_id.split(' ').next().unwrap_or_default());
    ensure!(config["rootfs"]["diff_ids"] == serde_json::json!([diff_id]), "{config}");
    Ok(())
}

/// A tar of GNU that accepts the headers for Windows.
fn tar(arguments: &[&str], archive: &Path) -> Command {
    let mut tar = Command::new("tar");
    tar.arg("--warning=no-unknown-keyword").args(arguments).arg("--file").arg(archive);
    tar
}

fn layer_entries(context: &Context) -> Result<()> {
    let layer = context.builds.release.top_layer()?;
    let list = run(&mut tar(&["--list", "--gzip"], &layer))?;
    let folders = HIVE_FOLDER.match_indices('/').map(|(index, _)| HIVE_FOLDER[..index].to_owned());
    let mut expected: Vec<String> = folders.chain([HIVE_FOLDER.to_owned()]).collect();
    expected.extend(HIVES.iter().map(|name| format!("{HIVE_FOLDER}/{name}")));
    let mut programs: Vec<String> = program_names().map(|name| format!("Files/{name}")).collect();
    programs.sort();
    expected.extend(programs);
    let found: Vec<&str> = list.lines().map(|line| line.trim_end_matches('/')).collect();
    ensure!(found == expected, "expected {expected:#?}\nfound {found:#?}");
    Ok(())
}

fn hives(context: &Context) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let extract = &mut tar(&["--extract", "--gzip"], &context.builds.release.top_layer()?);
    run(extract.arg("--directory").arg(folder.path()))?;
    for name in HIVES {
        let path = folder.path().join(HIVE_FOLDER).join(name);
        if let Err(fault) = check_hive(&fs::read(&path)?) {
            anyhow::bail!("{name}: {fault}");
        }
        let xml = run(Command::new("hivexml").arg(&path))?;
        ensure!(xml.contains("<node name=\"R\" root=\"1\""), "{name}: {xml}");
        let keys = run(Command::new("reglookup").arg("-s").arg(&path))?;
        // The root key with its owner, its group and the rights of both accounts.
        let row = keys.lines().nth(1).with_context(|| format!("{name}: {keys}"))?;
        ensure!(row.starts_with("/,KEY,"), "{name}: {keys}");
        ensure!(row.contains("S-1-5-32-544,S-1-5-18"), "{name}: {keys}");
        ensure!(keys.lines().count() == 2, "{name}: {keys}");
    }
    // The readers do find faults.
    let path = folder.path().join(HIVE_FOLDER).join(HIVES[0]);
    let mut bytes = fs::read(&path)?;
    bytes[0x1000] = 0;
    fs::write(&path, bytes)?;
    let status = Command::new("hivexml").arg(&path).output()?.status;
    ensure!(!status.success(), "hivexml reads a hive without bins");
    Ok(())
}

/// Builds again from copies of the programs with other times and permissions.
fn reproducible(context: &Context) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let built = workspace::target_dir().join(workspace::WINDOWS_TARGET).join("release");
    let copies = folder.path().join("a folder");
    fs::create_dir(&copies)?;
    for entry in fs::read_dir(&built)? {
        let path = entry?.path();
        let is_program = path.extension().is_some_and(|e| e == "exe" || e == "dll");
        if let (true, Some(name)) = (is_program, path.file_name()) {
            fs::copy(&path, copies.join(name))?;
            run(Command::new("chmod").arg("700").arg(copies.join(name)))?;
        }
    }
    let first = folder.path().join("first");
    run(build::command(&["--programs"]).arg(&built).arg("--output").arg(&first))?;
    let second = folder.path().join("second/inner");
    let inner = build::command(&["--programs"]);
    let mut shell = Command::new("sh");
    shell.args(["-c", "umask 077; exec \"$@\"", "sh"]);
    shell.arg(inner.get_program()).args(inner.get_args()).arg(&copies);
    run(shell.arg("--output").arg(&second).env_remove("SOURCE_DATE_EPOCH"))?;
    let (first_files, second_files) = (files(&first)?, files(&second)?);
    let names =
        |files: &[(String, Vec<u8>)]| files.iter().map(|(n, _)| n.clone()).collect::<Vec<_>>();
    ensure!(names(&first_files) == names(&second_files), "different files");
    for ((name, one), (_, other)) in first_files.iter().zip(&second_files) {
        ensure!(one == other, "{name} differs");
    }
    let digest = Layout { folder: second.join(PLUGIN) }.digest()?;
    let release = context.builds.release.digest()?;
    ensure!(digest == release, "the digest is {digest}, first it was {release}");
    Ok(())
}

/// All files below `folder`, by their relative paths.
fn files(folder: &Path) -> Result<Vec<(String, Vec<u8>)>> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(inner) = folders.pop() {
        for entry in fs::read_dir(&inner)? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(folder)?.display().to_string();
                found.push((name, fs::read(&path)?));
            }
        }
    }
    found.sort();
    Ok(found)
}

fn portable_programs(context: &Context) -> Result<()> {
    let home = std::env::home_dir().context("no home directory")?;
    let folders = [workspace::root(), workspace::target_dir(), home.join(".cargo")];
    let layer = context.builds.release.top_layer()?;
    let folder = tempfile::tempdir()?;
    run(tar(&["--extract", "--gzip"], &layer).arg("--directory").arg(folder.path()))?;
    for (name, bytes) in files(folder.path())? {
        for local in &folders {
            let local = local.as_os_str().as_encoded_bytes();
            let found = bytes.windows(local.len()).any(|window| window == local);
            ensure!(!found, "{name} contains {}", String::from_utf8_lossy(local));
        }
        if bytes.starts_with(b"MZ") {
            ensure!(build_time(&bytes) == Some(0), "{name} contains the time of its build");
            version_info::check_version(&bytes)
                .with_context(|| format!("wrong version resource in {name}"))?;
            imports::check_bytes(&name, &bytes)?;
        }
    }
    Ok(())
}

/// `TimeDateStamp` in the header of a PE file (`IMAGE_FILE_HEADER`, winnt.h).
fn build_time(file: &[u8]) -> Option<u32> {
    let number = |at: usize| Some(u32::from_le_bytes(file.get(at..at + 4)?.try_into().ok()?));
    number(number(0x3c)? as usize + 8)
}
