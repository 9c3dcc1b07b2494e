//! The file by which `directx-feature-discovery` hands the devices in the annotation of the node to
//! the device plugin: a name on each line. It stays while neither of them runs.
//!
//! It is in a folder of the device plugin directory, which both programs know. A kubelet that
//! starts empties this directory of files, and of no folder.

use std::fs;
use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

use command_line::file_poll::INTERVAL;
use device_plugin::unix_sockets::provide_folder_for_owner;
use devices::{Cordons, DeviceName};
use tokio::sync::watch;

/// The folder of the device plugin directory, which only the owner may use.
const FOLDER: &str = "directx";

/// What to do about a file that cannot be read or trusted. While the file does not exist, no device
/// is out of service, so deleting it is the last resort.
pub const UNKNOWN_HINT: &str = "start directx-feature-discovery, which replaces the file; if its \
                                log has an error, or you no longer use it, delete the folder of \
                                the file";

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
/// The device plugin directory does not exist, the folder belongs to another account, or any error
/// of the operating system.
pub fn write(path: &Path, devices: &[DeviceName]) -> io::Result<bool> {
    let mut text = Vec::new();
    for device in devices {
        writeln!(text, "{device}")?;
    }
    if empty_if_absent(read_trusted(path)).is_ok_and(|written| written == text) {
        return Ok(false);
    }
    let folder = path.parent().unwrap_or(path);
    if devices.is_empty() {
        fs::remove_file(path)?;
        // The folder stays as long as there is something in it.
        let _ = fs::remove_dir(folder);
        return Ok(true);
    }
    provide_folder_for_owner(folder)?;
    replace(path, &text)?;
    Ok(true)
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

/// What is known of the devices that the file names, now and after each change.
///
/// # Errors
/// No thread can be started.
pub(crate) fn follow(path: PathBuf) -> io::Result<watch::Receiver<Cordons>> {
    let mut known = Cordons::default();
    update(&mut known, settled(&path));
    let (send, cordons) = watch::channel(known);
    std::thread::Builder::new().name("cordons".to_owned()).spawn(move || {
        while !send.is_closed() {
            sleep(INTERVAL);
            // It is always read: changed access rights do not change its size and times.
            let now = settled(&path);
            send.send_if_modified(|known| update(known, now));
        }
    })?;
    Ok(cordons)
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

/// Replaces what is `known`, and returns whether that changed it.
fn update(known: &mut Cordons, now: Cordons) -> bool {
    if *known == now {
        return false;
    }
    match (&*known, &now) {
        (_, Cordons::Unknown(reason)) => tracing::warn!(
            reason,
            hint = UNKNOWN_HINT,
            "the cordoned devices are not known; every device is unhealthy"
        ),
        (Cordons::Unknown(_), Cordons::Known(_)) => {
            tracing::info!("the cordoned devices are known again");
        }
        (Cordons::Known(_), Cordons::Known(_)) => {}
    }
    *known = now;
    true
}

/// What is known of the devices that the file names. A file that does not exist names none.
#[must_use]
pub fn devices_in(path: impl AsRef<Path>) -> Cordons {
    let path = path.as_ref();
    match empty_if_absent(read_trusted(path)) {
        Ok(names) => Cordons::Known(DeviceName::list(&String::from_utf8_lossy(&names))),
        Err(error) => Cordons::Unknown(format!("cannot read `{}`: {error}", path.display())),
    }
}

fn empty_if_absent(read: io::Result<Vec<u8>>) -> io::Result<Vec<u8>> {
    match read {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
        read => read,
    }
}

/// The bytes of the file, unless other accounts may change it. Only Windows needs the check:
/// ordinary users may create folders on its system drive.
fn read_trusted(path: &Path) -> io::Result<Vec<u8>> {
    #[cfg(windows)]
    if let Some(reason) = win32::directory_access::distrust_in_own_folder(path)? {
        return Err(io::Error::other(reason));
    }
    config::read_bytes(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::logging::test_log::Log;

    fn texts(devices: &[DeviceName]) -> Vec<String> {
        devices.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn what_is_written_is_read_and_nothing_remains_of_an_empty_list() {
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
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
        assert_eq!(devices_in(&path), Cordons::default());
        let error = write(&path_in(Path::new("missing")), &devices).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
    }

    #[test]
    fn a_line_that_is_not_utf8_names_no_device_and_the_others_count() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("names");
        fs::write(&path, b"first\r\n\n\xFFbad\nlast").unwrap();
        assert_eq!(texts(devices_in(&path).names()), ["first", "last", "\u{FFFD}bad"]);
    }

    #[test]
    fn a_file_that_cannot_be_read_names_unknown_devices_until_it_is_readable_and_is_reported_once()
    {
        let log = Log::start();
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("names");
        fs::write(&path, "first\n").unwrap();
        let mut known = Cordons::default();
        assert!(update(&mut known, devices_in(&path)));
        assert_eq!(texts(known.names()), ["first"]);
        assert!(!update(&mut known, devices_in(&path)));
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        assert!(update(&mut known, devices_in(&path)));
        let reason = format!("cannot read `{}`: it is a directory, not a file", path.display());
        assert_eq!(known, Cordons::Unknown(reason));
        for _ in 0..3 {
            assert!(!update(&mut known, devices_in(&path)));
        }
        let text = log.text();
        assert_eq!(text.matches("the cordoned devices are not known").count(), 1, "{text}");
        fs::remove_dir(&path).unwrap();
        assert!(update(&mut known, devices_in(&path)));
        assert_eq!(known, Cordons::default());
        assert!(log.text().contains("the cordoned devices are known again"), "{}", log.text());
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
