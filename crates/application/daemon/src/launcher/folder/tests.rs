use super::*;

/// A host and a release in a temporary folder.
struct Bed(tempfile::TempDir);

impl Bed {
    fn new() -> Bed {
        let bed = Bed(tempfile::tempdir().unwrap());
        fs::create_dir(bed.source()).unwrap();
        for name in LAUNCHER_FILES {
            fs::write(bed.source().join(name), format!("content of {name}")).unwrap();
        }
        bed
    }

    fn source(&self) -> PathBuf {
        self.0.path().join("release")
    }

    /// The second source, which does not exist at first.
    fn installed(&self) -> PathBuf {
        self.0.path().join("Program Files/directx-visible")
    }

    fn own(&self) -> PathBuf {
        self.0.path().join("directx-device-plugin")
    }

    fn all(&self) -> PathBuf {
        self.own().join("visible")
    }

    fn folder(&self) -> LauncherFolder {
        let sources = vec![self.source(), self.installed()];
        LauncherFolder { root: self.all(), sources, rights: RIGHTS }
    }

    /// The folder that is provided.
    fn provided(&self) -> PathBuf {
        PathBuf::from(self.folder().provide().unwrap())
    }
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}

fn content(folder: &Path, n: usize) -> String {
    fs::read_to_string(folder.join(LAUNCHER_FILES[n])).unwrap()
}

#[cfg(windows)]
const RIGHTS: Rights = Rights {
    create_folder: win32::directory_access::create_program_folder,
    create_file: win32::directory_access::create_program_file,
    check: |path| match win32::directory_access::other_writers(path)?.first() {
        None => Ok(()),
        Some(writer) => Err(io::Error::other(writer.to_string())),
    },
};

/// The mode on Unix stands for the access control list of Windows.
#[cfg(unix)]
const RIGHTS: Rights = Rights {
    create_folder: |path| {
        use std::os::unix::fs::DirBuilderExt as _;

        fs::DirBuilder::new().mode(0o755).create(path)
    },
    create_file: |path| {
        use std::os::unix::fs::OpenOptionsExt as _;

        fs::OpenOptions::new().write(true).create_new(true).mode(0o755).open(path)
    },
    check: |path| {
        use std::os::unix::fs::PermissionsExt as _;

        match fs::symlink_metadata(path)?.permissions().mode() & 0o022 {
            0 => Ok(()),
            _ => Err(io::Error::other("others may change it")),
        }
    },
};

fn error(result: Result<String, LauncherError>) -> String {
    let error = result.unwrap_err();
    format!("{}; hint: {}", error_chain(&error), error.hint())
}

#[test]
fn the_folder_gets_the_files_and_a_damaged_copy_is_replaced() {
    let bed = Bed::new();
    let folder = bed.provided();
    for damage in [None, Some("cont"), Some("another content")] {
        if let Some(damage) = damage {
            fs::write(folder.join(LAUNCHER_FILES[1]), damage).unwrap();
        }
        assert_eq!(bed.provided(), folder);
        assert_eq!(names(&folder).len(), LAUNCHER_FILES.len(), "{:?}", names(&folder));
        for (n, name) in LAUNCHER_FILES.iter().enumerate() {
            assert_eq!(content(&folder, n), format!("content of {name}"));
        }
    }
}

/// Windows does not replace a program that runs.
#[cfg(windows)]
#[test]
fn a_damaged_program_that_runs_is_moved_aside() {
    let bed = Bed::new();
    let folder = bed.provided();
    let program = folder.join(LAUNCHER_FILES[0]);
    let system = PathBuf::from(std::env::var_os("SystemRoot").unwrap()).join("System32");
    fs::copy(system.join("cmd.exe"), &program).unwrap();
    let mut command = std::process::Command::new(&program);
    let mut running = command.stdin(std::process::Stdio::piped()).spawn().unwrap();
    let provided = bed.folder().provide();
    running.kill().unwrap();
    running.wait().unwrap();
    assert_eq!(PathBuf::from(provided.unwrap()), folder);
    assert_eq!(content(&folder, 0), format!("content of {}", LAUNCHER_FILES[0]));
}

/// A container that runs has the file itself, which must not change.
#[cfg(unix)]
#[test]
fn an_equal_file_stays_the_same_file() {
    use std::os::unix::fs::MetadataExt as _;

    let bed = Bed::new();
    let identity = || fs::metadata(bed.provided().join(LAUNCHER_FILES[0])).unwrap().ino();
    assert_eq!(identity(), identity());
}

/// Whoever may change it may have it open, and could change it later.
#[cfg(unix)]
#[test]
fn an_equal_file_that_others_could_change_is_replaced() {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

    let bed = Bed::new();
    let file = bed.provided().join(LAUNCHER_FILES[0]);
    fs::set_permissions(&file, fs::Permissions::from_mode(0o666)).unwrap();
    let identity = || fs::metadata(&file).unwrap().ino();
    let foreign = fs::File::open(&file).unwrap();
    let before = identity();
    bed.provided();
    assert_ne!(identity(), before);
    assert_eq!(foreign.metadata().unwrap().ino(), before);
}

/// Whoever created it may have it open with every right.
#[cfg(unix)]
#[test]
fn a_folder_that_others_could_change_is_refused() {
    use std::os::unix::fs::PermissionsExt as _;

    let bed = Bed::new();
    let folder = bed.provided();
    for level in [bed.own(), bed.all(), folder] {
        fs::set_permissions(&level, fs::Permissions::from_mode(0o777)).unwrap();
        let text = error(bed.folder().provide());
        let expected = format!("cannot use {}: others may change it", level.display());
        assert!(text.starts_with(&expected), "{text}");
        assert_eq!(fs::metadata(&level).unwrap().permissions().mode() & 0o777, 0o777);
        fs::set_permissions(&level, fs::Permissions::from_mode(0o755)).unwrap();
    }
    bed.provided();
}

#[test]
fn only_the_program_and_its_filter_are_needed() {
    for name in &LAUNCHER_FILES[2..] {
        let bed = Bed::new();
        fs::remove_file(bed.source().join(name)).unwrap();
        assert_eq!(names(&bed.provided()).len(), LAUNCHER_FILES.len() - 1, "without {name}");
    }
    for name in &LAUNCHER_FILES[..2] {
        let bed = Bed::new();
        fs::remove_file(bed.source().join(name)).unwrap();
        let text = error(bed.folder().provide());
        assert!(text.contains(&format!("cannot read {}", bed.source().join(name).display())));
        assert!(text.contains(&bed.installed().join(LAUNCHER_FILES[0]).display().to_string()));
        assert!(text.contains("hint: set visibility.enabled of the chart"), "{text}");
        assert!(!bed.own().exists(), "nothing is created without the files");
    }
}

/// An antivirus may remove one of the files, and files of two versions may not fit together.
#[test]
fn the_first_source_with_all_files_that_are_needed_is_copied() {
    let bed = Bed::new();
    fs::create_dir_all(bed.installed()).unwrap();
    for name in &LAUNCHER_FILES[..2] {
        fs::write(bed.installed().join(name), format!("installed {name}")).unwrap();
    }
    let release = bed.provided();
    let program = "content of directx-visible.exe";
    assert_eq!(content(&release, 0), program);
    fs::remove_file(bed.source().join(LAUNCHER_FILES[1])).unwrap();
    let installed = bed.provided();
    for (n, name) in LAUNCHER_FILES[..2].iter().enumerate() {
        assert_eq!(content(&installed, n), format!("installed {name}"));
    }
    // Containers keep the files with which they were created.
    assert_eq!((names(&bed.all()).len(), content(&release, 0).as_str()), (2, program));
}

/// The files are replaced after the first one was read.
#[cfg(unix)]
#[test]
fn files_of_two_versions_are_never_provided() {
    let bed = Bed::new();
    let [program, filter] = [0, 1].map(|n| bed.source().join(LAUNCHER_FILES[n]));
    fs::remove_file(&filter).unwrap();
    // The thread below can open the FIFO only when it is being read.
    assert!(std::process::Command::new("mkfifo").arg(&filter).status().unwrap().success());
    let replace = std::thread::spawn(move || {
        let mut filter = fs::OpenOptions::new().write(true).open(filter).unwrap();
        fs::write(program, "of the next version").unwrap();
        io::Write::write_all(&mut filter, b"of the next version").unwrap();
    });
    let text = error(bed.folder().provide());
    assert!(text.contains("directx-visible.exe: it is being replaced"), "{text}");
    replace.join().unwrap();
    assert!(!bed.own().exists());
}

#[test]
fn what_others_put_there_is_not_followed() {
    let bed = Bed::new();
    fs::write(bed.own(), "").unwrap();
    let text = error(bed.folder().provide());
    assert!(text.contains(&format!("cannot use {}", bed.all().display())), "{text}");
    fs::remove_file(bed.own()).unwrap();
    // A folder has the name of a file.
    let file = bed.provided().join(LAUNCHER_FILES[0]);
    fs::remove_file(&file).unwrap();
    fs::create_dir(&file).unwrap();
    fs::write(file.join("content"), "").unwrap();
    let text = error(bed.folder().provide());
    let expected = format!("cannot write {}: it is a folder that is not empty", file.display());
    assert!(text.contains(&expected) && text.contains("in the place of a file"), "{text}");
    assert!(file.join("content").exists());
}

/// containerd creates a folder for a file that no longer exists when a container starts again.
#[test]
fn empty_folders_in_the_place_of_files_are_replaced() {
    let bed = Bed::new();
    let folder = bed.provided();
    for name in LAUNCHER_FILES {
        fs::remove_file(folder.join(name)).unwrap();
        fs::create_dir(folder.join(name)).unwrap();
    }
    fs::create_dir(folder.join("other")).unwrap();
    assert_eq!(bed.provided(), folder);
    for (n, name) in LAUNCHER_FILES.iter().enumerate() {
        assert_eq!(content(&folder, n), format!("content of {name}"));
    }
    assert!(folder.join("other").is_dir(), "only the places of the files are touched");
}

/// The log and the status have a problem that stays once.
#[test]
fn equal_errors_have_equal_texts() {
    let bed = Bed::new();
    let file = bed.all().join("missing").join(LAUNCHER_FILES[0]);
    let [first, second] = [0, 1].map(|_| bed.folder().write(&file, b"").unwrap_err().to_string());
    assert_eq!(first, second);
}

#[cfg(unix)]
#[test]
fn a_link_is_not_followed() {
    let bed = Bed::new();
    let elsewhere = bed.0.path().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, bed.own()).unwrap();
    let text = error(bed.folder().provide());
    assert!(text.contains(&format!("cannot use {}", bed.own().display())), "{text}");
    assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 0);
    // A link where a file belongs is replaced, and its target stays.
    fs::remove_file(bed.own()).unwrap();
    let file = bed.provided().join(LAUNCHER_FILES[0]);
    let target = elsewhere.join("target");
    fs::rename(&file, &target).unwrap();
    std::os::unix::fs::symlink(&target, &file).unwrap();
    bed.provided();
    assert!(target.exists() && fs::symlink_metadata(&file).unwrap().is_file());
}

/// Another daemon of the node, or the one that this one replaces, may have given it to containers.
#[test]
fn the_folders_of_other_contents_stay_until_all_are_removed() {
    let bed = Bed::new();
    let before = bed.provided();
    fs::write(bed.source().join(LAUNCHER_FILES[1]), "of the next version").unwrap();
    let after = bed.provided();
    assert_ne!(before, after);
    assert_eq!(content(&before, 1), format!("content of {}", LAUNCHER_FILES[1]));
    assert_eq!(content(&after, 1), "of the next version");
    assert!(remove_all(&bed.all()).unwrap());
    assert!(!bed.own().exists());
    assert!(!remove_all(&bed.all()).unwrap());
}

#[test]
fn an_error_does_not_contain_the_random_name_of_a_temporary_file() {
    let bed = Bed::new();
    let missing = bed.all().join("missing");
    let [first, second] =
        [0, 1].map(|_| temporary_file(&missing, b"", RIGHTS.create_file).unwrap_err());
    assert_eq!(first.kind(), ErrorKind::NotFound);
    assert_eq!(first.to_string(), second.to_string());
}

#[test]
fn two_temporary_files_are_two_files() {
    let bed = Bed::new();
    let new = |content| temporary_file(bed.0.path(), content, RIGHTS.create_file).unwrap();
    let files = [&b"first"[..], b"second"].map(new);
    let contents = files.each_ref().map(|file| fs::read(file.path()).unwrap());
    assert_eq!(contents, [&b"first"[..], b"second"]);
    drop(files);
    assert_eq!(names(bed.0.path()), ["release"]);
}
