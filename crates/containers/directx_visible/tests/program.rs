//! The program on a system without DirectX. The Wine suite runs it on Windows.

#![cfg(not(windows))]
#![allow(clippy::unwrap_used, reason = "a test that cannot set up should panic")]

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

const PROGRAM: &str = env!("CARGO_BIN_EXE_directx-visible");

const FILES: [&str; 3] =
    ["directx-visible.exe", "directx-visible-filter.dll", "directx-visible-filter32.dll"];

#[test]
fn other_systems_get_an_error() {
    for arguments in
        [&["--", "a"][..], &["--require", "--", "a"], &["--command-line", "a b"], &["--check"]]
    {
        let output = Command::new(PROGRAM).args(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(125));
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(error.starts_with("error: this program runs only on Windows\nhint: "), "{error}");
    }
}

/// The administrator's machine may have any system.
#[test]
fn the_command_of_an_image_is_printed_for_a_file_and_for_standard_input() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("image.json");
    fs::write(&file, r#"{"os":"windows","config":{"Entrypoint":["a b"],"Cmd":["$c"]}}"#).unwrap();
    let run = |words: &[&Path]| {
        let mut command = Command::new(PROGRAM);
        let input = fs::File::open(&file).unwrap();
        command.arg("command").args(words).stdin(input).output().unwrap()
    };
    for words in [&[][..], &[Path::new("-")], &[&*file]] {
        let output = run(words);
        assert!(output.status.success(), "{output:?}");
        let expected = "command: [\"directx-visible\", \"--\", \"a b\"]\nargs: [\"$$c\"]\n";
        assert_eq!(String::from_utf8(output.stdout).unwrap(), expected);
    }
    let missing = folder.path().join("missing");
    let output = run(&[&missing]);
    assert_eq!(output.status.code(), Some(125));
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.starts_with(&format!("error: cannot read {}: ", missing.display())), "{error}");
    assert!(error.contains("\nhint: name a file with the configuration of an image\n"), "{error}");
}

/// A release in a temporary folder: this program next to files with the names of Windows.
struct Release(tempfile::TempDir);

impl Release {
    fn new(version: &str) -> Release {
        // The copies are links, because a program that is open for writing cannot run.
        let release = Release(tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap());
        fs::hard_link(PROGRAM, release.0.path().join("directx-visible")).unwrap();
        for name in FILES {
            fs::write(release.0.path().join(name), format!("{name} {version}")).unwrap();
        }
        release
    }

    fn without(self, name: &str) -> Release {
        fs::remove_file(self.0.path().join(name)).unwrap();
        self
    }

    fn install(&self, folder: &Path) -> Output {
        let mut command = Command::new(self.0.path().join("directx-visible"));
        command.arg("--install").arg(folder).stdin(Stdio::null()).output().unwrap()
    }
}

/// The names and contents of the files in a folder.
fn files(folder: &Path) -> Vec<(String, String)> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        files.push((name, fs::read_to_string(entry.path()).unwrap()));
    }
    files.sort();
    files
}

fn expected(names: &[&str], version: &str) -> Vec<(String, String)> {
    let mut files: Vec<_> =
        names.iter().map(|name| ((*name).to_owned(), format!("{name} {version}"))).collect();
    files.sort();
    files
}

#[test]
fn its_files_are_copied_and_those_of_another_version_removed() {
    let target = tempfile::tempdir().unwrap();
    let folder = target.path().join("Program Files/directx-visible");
    let first = Release::new("1");
    let second = Release::new("2").without(FILES[2]);
    for (release, names, version) in [(&first, &FILES[..], "1"), (&second, &FILES[..2], "2")] {
        for done in [format!("copied the files to {}\n", folder.display()), String::new()] {
            let output = release.install(&folder);
            assert!(output.status.success(), "{output:?}");
            assert_eq!(String::from_utf8(output.stdout).unwrap(), done);
            assert_eq!(files(&folder), expected(names, version));
        }
    }
    // A damaged copy is replaced.
    fs::write(folder.join(FILES[1]), "1").unwrap();
    assert!(second.install(&folder).status.success());
    assert_eq!(files(&folder), expected(&FILES[..2], "2"));
}

/// The device plugin reads the folder while another version is installed.
#[test]
fn files_of_two_versions_are_never_there_with_the_program() {
    let target = tempfile::tempdir().unwrap();
    let releases = [Release::new("1"), Release::new("2")];
    let is_done = AtomicBool::new(false);
    let read = |n: usize| fs::read_to_string(target.path().join(FILES[n])).ok();
    let version = |text: String| text.rsplit(' ').next().unwrap().to_owned();
    thread::scope(|scope| {
        scope.spawn(|| {
            for release in releases.iter().cycle().take(40) {
                assert!(release.install(target.path()).status.success());
            }
            is_done.store(true, Ordering::Relaxed);
        });
        let mut complete = 0;
        while !is_done.load(Ordering::Relaxed) {
            let [program, filter, filter_32, again] = [0, 1, 2, 0].map(read);
            if program.is_some() && program == again {
                let versions = [program, filter, filter_32].map(Option::unwrap).map(version);
                assert!(versions.iter().all(|version| *version == versions[0]), "{versions:?}");
                complete += 1;
            }
        }
        assert_ne!(complete, 0);
    });
}

#[test]
fn a_file_that_cannot_be_copied_is_an_error_with_its_path() {
    let target = tempfile::tempdir().unwrap();
    let error = |release: &Release, folder: &Path, expected: String| {
        let output = release.install(folder);
        assert_eq!(output.status.code(), Some(125));
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(error.starts_with(&expected) && error.contains("\nhint: "), "{error}");
    };
    for name in &FILES[..2] {
        let release = Release::new("1").without(name);
        let missing = release.0.path().join(name);
        error(&release, target.path(), format!("error: cannot read {}: ", missing.display()));
    }
    assert_eq!(files(target.path()), []);
    let file = target.path().join("file");
    fs::write(&file, "").unwrap();
    let release = Release::new("1");
    error(&release, &file, format!("error: cannot create {}: ", file.display()));
    // A folder has the name of a file.
    let folder = target.path().join(FILES[1]);
    fs::create_dir(&folder).unwrap();
    error(&release, target.path(), format!("error: cannot replace {}: ", folder.display()));
}

/// A node may have the containers of two releases.
#[test]
fn several_wait_until_they_are_shut_down() {
    let mut command = Command::new(PROGRAM);
    command.arg("--wait").stdin(Stdio::null());
    let mut waiting = [command.spawn().unwrap(), command.spawn().unwrap()];
    thread::sleep(Duration::from_millis(300));
    for child in &mut waiting {
        assert_eq!(child.try_wait().unwrap(), None);
    }
    for child in &mut waiting {
        let terminated = Command::new("kill").arg(child.id().to_string()).status().unwrap();
        assert!(terminated.success());
        child.wait().unwrap();
    }
}
