use super::*;

const VERSION: &str = "1.2.3";

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

    fn file(&self, n: usize) -> PathBuf {
        self.all().join(VERSION).join(LAUNCHER_FILES[n])
    }

    fn folder(&self) -> LauncherFolder {
        let sources = vec![self.source(), self.installed()];
        LauncherFolder { folder: self.all().join(VERSION), sources, rights: RIGHTS }
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.all().join(VERSION)).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.collect();
        names.sort();
        names
    }
}

/// Wine stores no owner.
#[cfg(windows)]
const RIGHTS: Rights = Rights {
    share: uds::access_rights::share_programs,
    is_protected: |path| {
        let writers = win32::directory_access::directory_writers(path)?;
        Ok(writers.iter().all(|writer| writer.is_owner))
    },
};

/// The mode on Unix stands for the access control list of Windows.
#[cfg(unix)]
const RIGHTS: Rights = Rights {
    share: |path| {
        use std::os::unix::fs::PermissionsExt as _;

        fs::set_permissions(path, fs::Permissions::from_mode(0o755))
    },
    is_protected: |path| {
        use std::os::unix::fs::PermissionsExt as _;

        Ok(fs::metadata(path)?.permissions().mode() & 0o022 == 0)
    },
};

fn error(result: Result<(), Failure>) -> String {
    let failure = result.unwrap_err();
    format!("{}; hint: {}", failure.chain(), failure.hint_text().unwrap())
}

#[test]
fn the_folder_gets_the_files_and_a_damaged_copy_is_replaced() {
    let bed = Bed::new();
    for damage in [None, Some("cont"), Some("another content")] {
        if let Some(damage) = damage {
            fs::write(bed.file(1), damage).unwrap();
            fs::write(bed.file(0).with_extension("exe.new"), "of a start that was killed").unwrap();
        }
        bed.folder().provide().unwrap();
        assert_eq!(bed.names().len(), LAUNCHER_FILES.len(), "{:?}", bed.names());
        for (n, name) in LAUNCHER_FILES.iter().enumerate() {
            assert_eq!(fs::read_to_string(bed.file(n)).unwrap(), format!("content of {name}"));
        }
    }
}

/// A container that runs has the file itself, which must not change.
#[cfg(unix)]
#[test]
fn an_equal_file_stays_the_same_file() {
    use std::os::unix::fs::MetadataExt as _;

    let bed = Bed::new();
    let identity = || fs::metadata(bed.file(0)).unwrap().ino();
    bed.folder().provide().unwrap();
    let before = identity();
    bed.folder().provide().unwrap();
    assert_eq!(identity(), before);
}

/// Whoever created it may have it open, and could change it later.
#[cfg(unix)]
#[test]
fn an_equal_file_that_others_could_change_is_replaced() {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

    let bed = Bed::new();
    fs::create_dir_all(bed.all().join(VERSION)).unwrap();
    fs::copy(bed.source().join(LAUNCHER_FILES[0]), bed.file(0)).unwrap();
    fs::set_permissions(bed.file(0), fs::Permissions::from_mode(0o666)).unwrap();
    let identity = || fs::metadata(bed.file(0)).unwrap().ino();
    let foreign = fs::File::open(bed.file(0)).unwrap();
    let before = identity();
    bed.folder().provide().unwrap();
    assert_ne!(identity(), before);
    assert_eq!(foreign.metadata().unwrap().ino(), before);
}

#[test]
fn only_the_program_and_its_filter_are_needed() {
    for name in &LAUNCHER_FILES[2..] {
        let bed = Bed::new();
        fs::remove_file(bed.source().join(name)).unwrap();
        bed.folder().provide().unwrap();
        assert_eq!(bed.names().len(), LAUNCHER_FILES.len() - 1, "without {name}");
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
    bed.folder().provide().unwrap();
    assert_eq!(fs::read_to_string(bed.file(0)).unwrap(), "content of directx-visible.exe");
    fs::remove_file(bed.source().join(LAUNCHER_FILES[1])).unwrap();
    bed.folder().provide().unwrap();
    for (n, name) in LAUNCHER_FILES[..2].iter().enumerate() {
        assert_eq!(fs::read_to_string(bed.file(n)).unwrap(), format!("installed {name}"));
    }
}

#[test]
fn what_others_put_there_is_not_followed() {
    let bed = Bed::new();
    fs::write(bed.own(), "").unwrap();
    let text = error(bed.folder().provide());
    assert!(text.contains("cannot create") && text.contains("it is a link or a file"), "{text}");
    fs::remove_file(bed.own()).unwrap();
    // A folder where a file belongs.
    fs::create_dir_all(bed.file(0)).unwrap();
    let text = error(bed.folder().provide());
    assert!(text.contains(&format!("cannot write {}", bed.file(0).display())), "{text}");
}

#[cfg(unix)]
#[test]
fn a_link_is_not_followed() {
    let bed = Bed::new();
    let elsewhere = bed.0.path().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, bed.own()).unwrap();
    let text = error(bed.folder().provide());
    assert!(text.contains("it is a link or a file"), "{text}");
    assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 0);
    // A link where a file belongs is replaced, and its target stays.
    fs::remove_file(bed.own()).unwrap();
    fs::create_dir_all(bed.all().join(VERSION)).unwrap();
    let target = elsewhere.join("target");
    fs::write(&target, "x").unwrap();
    std::os::unix::fs::symlink(&target, bed.file(0)).unwrap();
    bed.folder().provide().unwrap();
    assert_eq!(fs::read_to_string(&target).unwrap(), "x");
    assert!(fs::symlink_metadata(bed.file(0)).unwrap().is_file());
}

/// Another daemon of the node, or the one that this one replaces, may have given it to containers.
#[test]
fn the_folders_of_other_versions_stay_until_all_are_removed() {
    let bed = Bed::new();
    let old = bed.all().join("1.2.2").join("directx-visible.exe");
    fs::create_dir_all(old.parent().unwrap()).unwrap();
    fs::write(&old, "").unwrap();
    bed.folder().provide().unwrap();
    assert!(old.exists() && bed.file(0).exists());
    assert!(remove_all(&bed.all().join(VERSION)).unwrap());
    assert!(!bed.own().exists());
    assert!(!remove_all(&bed.all().join(VERSION)).unwrap());
}
