//! The file by which `directx-feature-discovery` hands the devices in the annotation of the node to
//! the device plugin: a name on each line. It stays while neither of them runs.
//!
//! It is in a folder of the device plugin directory, which both programs know. A kubelet that
//! starts empties this directory of files, and of no folder. Both programs create the folder and
//! never remove it, so that an ordinary user of the node cannot create it.

use std::fs;
use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use command_line::file_poll::INTERVAL;
use device_plugin::unix_sockets::{is_folder_of_owner, provide_folder_for_owner};
use host::{Cordons, DeviceName};
use tokio::sync::watch;

use process::logging::Repeated;

/// The folder of the device plugin directory, which only the owner may use.
const FOLDER: &str = "directx";

/// What to do about a file that cannot be read or trusted. While the file does not exist, no device
/// is out of service, so deleting it is the last resort.
pub const UNKNOWN_HINT: &str = "start directx-feature-discovery, which replaces the file; if its \
                                log has an error, or you no longer use it, delete the file";

/// How long a running daemon uses the names that it knows while it cannot read or trust the file.
const KEPT: Duration = Duration::from_mins(10);

/// The file of the programs with this device plugin directory.
#[must_use]
pub fn path_in(directory: &Path) -> PathBuf {
    directory.join(FOLDER).join("cordoned-devices")
}

/// How often to try again to read a file that cannot be read, and the pause before.
const ATTEMPTS: u32 = 3;
const PAUSE: Duration = Duration::from_millis(50);

/// Makes the file name these devices, and returns whether that changed it. Without devices, there
/// is no file. Nobody sees a part of it. A file that cannot be read or trusted is replaced.
///
/// # Errors
/// The device plugin directory does not exist, or any error of the operating system.
pub fn write(path: &Path, devices: &[DeviceName]) -> io::Result<bool> {
    let mut text = Vec::new();
    for device in devices {
        writeln!(text, "{device}")?;
    }
    match read_trusted(path) {
        Ok(Some(written)) if written == text && !devices.is_empty() => return Ok(false),
        Ok(None) if devices.is_empty() => return Ok(false),
        _ => {}
    }
    let folder = path.parent().unwrap_or(path);
    provide_folder_for_owner(folder)?;
    if !devices.is_empty() {
        replace(path, &text)?;
        return Ok(true);
    }
    match fs::remove_file(path) {
        // The folder with the file was moved aside.
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(true),
        removed => removed.map(|()| true),
    }
}

/// Removes the folder of the programs with this device plugin directory, unless it has a file.
///
/// # Errors
/// Any error of the operating system, but not that the folder does not exist or has a file.
pub fn remove_empty_folder(directory: &Path) -> io::Result<()> {
    match fs::remove_dir(directory.join(FOLDER)) {
        Err(error)
            if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::DirectoryNotEmpty) =>
        {
            Ok(())
        }
        removed => removed,
    }
}

/// Replaces the file in one step. Only one program writes it, so the new file always has the same
/// name. A random name would be left over whenever that program is killed, and would make each
/// error look new.
fn replace(path: &Path, text: &[u8]) -> io::Result<()> {
    let new = path.with_extension("new");
    let replaced = write_durably(&new, text).and_then(|()| fs::rename(&new, path));
    if replaced.is_err() {
        // The next attempt would replace it. The error above is reported.
        let _ = fs::remove_file(&new);
    }
    replaced
}

fn write_durably(path: &Path, text: &[u8]) -> io::Result<()> {
    let mut file = fs::File::create(path)?;
    file.write_all(text)?;
    file.sync_all()
}

/// Creates the folder of the file, and follows what is known of the devices that the file names:
/// the result has it now and after each change.
///
/// # Errors
/// No thread can be started.
pub fn follow(path: PathBuf) -> io::Result<watch::Receiver<Cordons>> {
    let mut folder = Folder::of(&path);
    folder.provide();
    let mut following = Following::from(settled(&path), Instant::now());
    let (send, cordons) = watch::channel(following.known.clone());
    std::thread::Builder::new().name("cordons".to_owned()).spawn(move || {
        while !send.is_closed() {
            sleep(INTERVAL);
            folder.restore();
            // It is always read: changed access rights do not change its size and times.
            let is_changed = following.next(settled(&path), Instant::now());
            if is_changed {
                send.send_replace(following.known.clone());
            }
        }
    })?;
    Ok(cordons)
}

/// The folder of the file, as a daemon keeps it.
struct Folder {
    path: PathBuf,
    failures: Repeated<String>,
}

impl Folder {
    fn of(file: &Path) -> Folder {
        let path = file.parent().unwrap_or(file).to_owned();
        Folder { path, failures: Repeated::default() }
    }

    /// Creates the folder, or gives it its access rights.
    fn provide(&mut self) {
        if let Err(error) = provide_folder_for_owner(&self.path) {
            let error = error.to_string();
            if self.failures.is_due(error.clone()) {
                let folder = self.path.display();
                tracing::warn!(%folder, error, "cannot provide the folder for cordoned devices");
            }
        }
    }

    /// Creates the folder again if it is gone or another one is in its place.
    fn restore(&mut self) {
        if !matches!(is_folder_of_owner(&self.path), Ok(true)) {
            self.provide();
        }
    }
}

/// What is known of the devices that the file names, unless it cannot be read only at this moment:
/// Windows refuses to open a file that is being replaced.
fn settled(path: &Path) -> Cordons {
    for _ in 0..ATTEMPTS {
        if let known @ Cordons::Known(_) = devices_in(path) {
            return known;
        }
        sleep(PAUSE);
    }
    devices_in(path)
}

/// What a daemon knows of the devices that the file names.
struct Following {
    known: Cordons,
    /// Since when `known` has the names of before, because the file cannot be read or trusted.
    kept_since: Option<Instant>,
}

impl Following {
    /// What a daemon that starts knows. It has no names of before, so a device that is out of
    /// service could be any of them while the file cannot be read.
    fn from(read: Cordons, now: Instant) -> Following {
        let mut following = Following { known: Cordons::default(), kept_since: None };
        if let Cordons::Unknown(reason) = &read {
            log_unknown(reason);
            following.known = read;
        } else {
            following.next(read, now);
        }
        following
    }

    /// Takes what was `read`, and returns whether what is known has changed.
    fn next(&mut self, read: Cordons, now: Instant) -> bool {
        match &read {
            Cordons::Known(_) => {
                let was_kept = self.kept_since.take().is_some();
                if was_kept || matches!(self.known, Cordons::Unknown(_)) {
                    tracing::info!("the file with the cordoned devices can be read again");
                }
            }
            Cordons::Unknown(reason) if matches!(self.known, Cordons::Known(_)) => {
                let Some(since) = self.kept_since else {
                    self.kept_since = Some(now);
                    tracing::warn!(
                        reason,
                        hint = UNKNOWN_HINT,
                        minutes = KEPT.as_secs() / 60,
                        "cannot read the cordoned devices; using the last known ones, then every \
                         device is unhealthy"
                    );
                    return false;
                };
                if now < since + KEPT {
                    return false;
                }
                self.kept_since = None;
                log_unknown(reason);
            }
            Cordons::Unknown(reason) => {
                if self.known != read {
                    log_unknown(reason);
                }
            }
        }
        let is_changed = self.known != read;
        self.known = read;
        is_changed
    }
}

fn log_unknown(reason: &str) {
    tracing::warn!(
        reason,
        hint = UNKNOWN_HINT,
        "the cordoned devices are not known; every device is unhealthy"
    );
}

/// What is known of the devices that the file names. A file that does not exist names none.
#[must_use]
pub fn devices_in(path: impl AsRef<Path>) -> Cordons {
    let path = path.as_ref();
    match read_trusted(path).and_then(|text| text.map_or(Ok(Vec::new()), |text| names_in(&text))) {
        Ok(names) => Cordons::Known(names),
        Err(error) => Cordons::Unknown(format!("cannot read `{}`: {error}", path.display())),
    }
}

/// The names in a file that [`write()`] has written. Any other content is damaged, as after a loss of
/// power, and may have named any device.
fn names_in(text: &[u8]) -> io::Result<Vec<DeviceName>> {
    let lines = std::str::from_utf8(text).ok().filter(|text| !text.contains('\0'));
    let names = lines.filter(|lines| lines.ends_with('\n')).map(DeviceName::list);
    names.filter(|names| !names.is_empty()).ok_or_else(|| {
        io::Error::other("it is damaged: it is not a list of names, one on each line")
    })
}

/// The bytes of the file, unless it does not exist or other accounts may change it. In a folder
/// that is not the owner's, there is no file of this program: the folder is moved aside when this
/// is possible.
fn read_trusted(path: &Path) -> io::Result<Option<Vec<u8>>> {
    let read = || {
        if !is_folder_of_owner(path.parent().unwrap_or(path))? {
            return Err(ErrorKind::NotFound.into());
        }
        if let Some(reason) = distrust(path)? {
            return Err(io::Error::other(reason));
        }
        config::read_bytes(path)
    };
    match read() {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        read => read.map(Some),
    }
}

/// Why the file must not decide which devices are out of service.
#[cfg(windows)]
fn distrust(path: &Path) -> io::Result<Option<String>> {
    win32::directory_access::distrust_in_own_folder(path)
}

/// Why the file must not decide which devices are out of service.
#[cfg(not(windows))]
fn distrust(path: &Path) -> io::Result<Option<String>> {
    let is_trusted = device_plugin::unix_sockets::is_trusted(path)?;
    Ok((!is_trusted).then(|| "another account owns it".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use process::logging::test_log::Log;

    #[test]
    fn what_is_written_is_read_and_only_the_folder_remains_of_an_empty_list() {
        let directory = tempfile::tempdir().unwrap();
        let path = path_in(directory.path());
        let devices = DeviceName::list(r"PCIROOT(0)#PCI(0100),PCI\VEN_10DE&DEV_1EB8\1");
        assert!(!write(&path, &[]).unwrap());
        for devices in [&devices[..], &devices[..1]] {
            assert!(write(&path, devices).unwrap());
            assert!(!write(&path, devices).unwrap(), "nothing has changed");
            assert_eq!(devices_in(&path).names(), devices);
        }
        #[cfg(unix)]
        {
            let permissions = path.parent().unwrap().metadata().unwrap().permissions();
            assert_eq!(std::os::unix::fs::PermissionsExt::mode(&permissions) & 0o777, 0o700);
        }
        assert!(write(&path, &[]).unwrap());
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 0);
        assert_eq!(devices_in(&path), Cordons::default());
        assert!(!write(&path, &[]).unwrap());
        write(&path, &devices).unwrap();
        remove_empty_folder(directory.path()).unwrap();
        assert_eq!(devices_in(&path).names(), devices);
        write(&path, &[]).unwrap();
        for _ in 0..2 {
            remove_empty_folder(directory.path()).unwrap();
            assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
        }
        let missing = path_in(Path::new("missing"));
        assert!(!write(&missing, &[]).unwrap());
        let error = write(&missing, &devices).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
    }

    /// A disk has such files after a loss of power, and an editor writes a part of a file.
    #[test]
    fn a_damaged_file_names_unknown_devices_until_it_is_written_again() {
        let directory = tempfile::tempdir().unwrap();
        let path = path_in(directory.path());
        let named = DeviceName::list("first");
        for damaged in [&b""[..], &[0; 40], b"first\n\0\0\n", b"first\nsec", b"\n", b"\xFFx\n"] {
            for devices in [&named[..], &[]] {
                provide_folder_for_owner(path.parent().unwrap()).unwrap();
                fs::write(&path, damaged).unwrap();
                let text = String::from_utf8_lossy(damaged);
                let read = devices_in(&path);
                assert!(
                    matches!(&read, Cordons::Unknown(why) if why.contains("damaged")),
                    "{text}"
                );
                assert!(write(&path, devices).unwrap(), "{text}");
                assert_eq!(devices_in(&path), Cordons::Known(devices.to_vec()), "{text}");
            }
        }
    }

    /// An unreadable file must not take devices out of service whose state was just known.
    #[test]
    fn what_was_known_counts_for_ten_minutes_while_the_file_cannot_be_read() {
        let log = Log::start();
        let names = Cordons::Known(DeviceName::list("first"));
        let unknown = Cordons::Unknown("cannot read `x`".to_owned());
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut following = Following::from(names.clone(), start);
        assert!(!following.next(unknown.clone(), at(1)));
        assert!(!following.next(unknown.clone(), at(600)));
        assert_eq!(following.known, names);
        assert!(!following.next(names.clone(), at(601)), "the names are the same");
        // The time begins again.
        assert!(!following.next(unknown.clone(), at(700)));
        assert!(!following.next(unknown.clone(), at(1299)));
        assert!(following.next(unknown.clone(), at(1300)));
        assert_eq!(following.known, unknown);
        assert!(!following.next(unknown.clone(), at(1301)));
        assert!(following.next(Cordons::default(), at(1302)));
        assert_eq!(following.known, Cordons::default());
        let text = log.text();
        for (line, count) in [
            ("using the last known ones", 2),
            ("the cordoned devices are not known; every device is unhealthy", 1),
            ("can be read again", 2),
        ] {
            assert_eq!(text.matches(line).count(), count, "{line}: {text}");
        }
    }

    #[test]
    fn at_a_start_an_unreadable_file_names_unknown_devices() {
        let log = Log::start();
        let unknown = Cordons::Unknown("cannot read `x`".to_owned());
        let following = Following::from(unknown.clone(), Instant::now());
        assert_eq!(following.known, unknown);
        assert!(log.text().contains("every device is unhealthy"), "{}", log.text());
    }

    /// Otherwise an ordinary user of the node could create the folder, and a file in it.
    #[test]
    fn a_daemon_creates_the_folder_and_restores_it() {
        let directory = tempfile::tempdir().unwrap();
        let path = path_in(directory.path());
        let folder = path.parent().unwrap();
        let cordons = follow(path.clone()).unwrap();
        assert_eq!(*cordons.borrow(), Cordons::default());
        assert!(is_folder_of_owner(folder).unwrap());
        let mut kept = Folder::of(&path);
        fs::remove_dir(folder).unwrap();
        kept.restore();
        assert!(is_folder_of_owner(folder).unwrap());
        fs::remove_dir(folder).unwrap();
        fs::write(folder, "").unwrap();
        assert_eq!(devices_in(&path), Cordons::default());
        kept.restore();
        assert!(is_folder_of_owner(folder).unwrap());
    }

    #[cfg(unix)]
    #[test]
    fn what_another_account_has_created_takes_no_device_out_of_service() {
        use std::os::unix::fs::chown;
        let directory = tempfile::tempdir().unwrap();
        let path = path_in(directory.path());
        let folder = path.parent().unwrap();
        let devices = DeviceName::list("first");
        write(&path, &devices).unwrap();
        if chown(&path, Some(12345), None).is_err() {
            eprintln!("skipped: only root can give a file to another account");
            return;
        }
        let unknown = format!("cannot read `{}`: another account owns it", path.display());
        assert_eq!(devices_in(&path), Cordons::Unknown(unknown));
        chown(folder, Some(12345), None).unwrap();
        assert_eq!(devices_in(&path), Cordons::default(), "no file of this program is there");
        assert!(write(&path, &devices).unwrap());
        assert_eq!(devices_in(&path), Cordons::Known(devices));
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 2, "one was moved aside");
    }

    /// The feature discovery logs an error again only if its text is another one.
    #[test]
    fn equal_errors_have_equal_texts() {
        let directory = tempfile::tempdir().unwrap();
        let path = path_in(directory.path());
        fs::create_dir_all(path.join("not empty")).unwrap();
        let errors = [0, 1].map(|_| write(&path, &DeviceName::list("first")).unwrap_err());
        let [first, second] = errors.map(|error| error.to_string());
        assert_eq!(first, second);
        fs::remove_dir_all(&path).unwrap();
        // A folder has the name of the new file.
        fs::create_dir(path.with_extension("new")).unwrap();
        let errors = [0, 1].map(|_| write(&path, &DeviceName::list("first")).unwrap_err());
        let [first, second] = errors.map(|error| error.to_string());
        assert_eq!(first, second);
    }

    #[cfg(windows)]
    #[test]
    #[ignore = "Wine's icacls changes no access rights"]
    fn a_file_that_others_may_change_is_not_trusted_until_it_is_written_again() {
        let directory = tempfile::tempdir().unwrap();
        let path = path_in(directory.path());
        let devices = DeviceName::list("first");
        write(&path, &devices).unwrap();
        for changed in [path.as_path(), path.parent().unwrap()] {
            let mut icacls = std::process::Command::new("icacls");
            // Authenticated Users may modify it.
            let granted = icacls.arg(changed).args(["/grant", "*S-1-5-11:M"]).status().unwrap();
            assert!(granted.success());
            let reason =
                format!("Authenticated Users (S-1-5-11) may change `{}`", changed.display());
            let unknown = format!("cannot read `{}`: {reason}", path.display());
            assert_eq!(devices_in(&path), Cordons::Unknown(unknown));
            assert!(write(&path, &devices).unwrap());
            assert_eq!(devices_in(&path), Cordons::Known(devices.clone()));
        }
    }

    #[test]
    fn what_an_interrupted_write_has_left_is_replaced() {
        let directory = tempfile::tempdir().unwrap();
        let path = path_in(directory.path());
        fs::create_dir(path.parent().unwrap()).unwrap();
        fs::write(path.with_extension("new"), "a longer name than the new one").unwrap();
        let devices = DeviceName::list("first");
        assert!(write(&path, &devices).unwrap());
        assert_eq!(devices_in(&path), Cordons::Known(devices));
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
    }
}
