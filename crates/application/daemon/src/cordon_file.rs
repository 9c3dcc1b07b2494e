//! The file by which `directx-feature-discovery` hands the devices in the annotation of the node to
//! the device plugin: a name on each line. It stays while neither of them runs.
//!
//! It is in a folder of the device plugin directory, which both programs know. A kubelet that
//! starts empties this directory of files, and of no folder.

use std::fs;
use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::thread::sleep;

use command_line::file_poll::{FilePoll, INTERVAL};
use device_plugin::unix_sockets::restrict_to_owner;
use devices::DeviceName;
use tokio::sync::watch;

/// The folder of the device plugin directory, which only the owner may use.
const FOLDER: &str = "directx";

/// The file of the programs with this device plugin directory.
#[must_use]
pub fn path_in(directory: &Path) -> PathBuf {
    directory.join(FOLDER).join("cordoned-devices")
}

/// Makes the file name these devices, and returns whether that changed it. Without devices, there
/// is no file. Nobody sees a part of it.
///
/// # Errors
/// The device plugin directory does not exist, the folder belongs to another account, or any error
/// of the operating system.
pub fn write(path: &Path, devices: &[DeviceName]) -> io::Result<bool> {
    let mut text = Vec::new();
    for device in devices {
        writeln!(text, "{device}")?;
    }
    if empty_if_absent(config::read_bytes(path))? == text {
        return Ok(false);
    }
    let folder = path.parent().unwrap_or(path);
    if devices.is_empty() {
        fs::remove_file(path)?;
        // The folder stays as long as there is something in it.
        let _ = fs::remove_dir(folder);
        return Ok(true);
    }
    match fs::create_dir(folder) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error),
        _ => restrict_to_owner(folder)?,
    }
    let mut new = tempfile::NamedTempFile::new_in(folder)?;
    new.write_all(&text)?;
    new.as_file().sync_all()?;
    new.persist(path)?;
    Ok(true)
}

/// The devices that the file names, now and after each change.
///
/// # Errors
/// No thread can be started.
pub(crate) fn follow(path: PathBuf) -> io::Result<watch::Receiver<Vec<DeviceName>>> {
    let mut file = CordonFile::new(path);
    let (send, devices) = watch::channel(file.changed().unwrap_or_default());
    std::thread::Builder::new().name("cordons".to_owned()).spawn(move || {
        while !send.is_closed() {
            sleep(INTERVAL);
            if let Some(devices) = file.changed() {
                send.send_replace(devices);
            }
        }
    })?;
    Ok(devices)
}

/// The devices that the file names now; none if it cannot be read.
#[must_use]
pub fn devices_in(path: PathBuf) -> Vec<DeviceName> {
    CordonFile::new(path).changed().unwrap_or_default()
}

struct CordonFile {
    path: PathBuf,
    poll: FilePoll,
    /// Whether to read it although it has not changed: the first time, and after an error. Changed
    /// access rights do not change its size and times.
    is_due: bool,
    problem: Option<String>,
}

impl CordonFile {
    fn new(path: PathBuf) -> CordonFile {
        let poll = FilePoll::new(vec![path.clone()]);
        CordonFile { path, poll, is_due: true, problem: None }
    }

    /// The devices, if the file may have changed and can be read. Otherwise the earlier ones stay.
    fn changed(&mut self) -> Option<Vec<DeviceName>> {
        if !self.poll.has_changed() && !self.is_due {
            return None;
        }
        let result = empty_if_absent(read_trusted(&self.path));
        self.is_due = result.is_err();
        let problem = result.as_ref().err().map(ToString::to_string);
        if let Some(error) = problem.as_ref().filter(|_| problem != self.problem) {
            let file = self.path.display();
            tracing::warn!(%file, error, "cannot read the cordoned devices; keeping the earlier ones");
        }
        self.problem = problem;
        Some(DeviceName::list(&String::from_utf8_lossy(&result.ok()?)))
    }
}

/// A file that does not exist names no device.
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
    if let Some((reason, fix)) = win32::directory_access::distrust(path)? {
        return Err(io::Error::other(format!("{reason}; {fix}")));
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
            assert_eq!(devices_in(path.clone()), devices);
        }
        #[cfg(unix)]
        for (path, expected) in [(path.as_path(), 0o600), (path.parent().unwrap(), 0o700)] {
            let permissions = path.metadata().unwrap().permissions();
            assert_eq!(std::os::unix::fs::PermissionsExt::mode(&permissions) & 0o777, expected);
        }
        assert!(write(&path, &[]).unwrap());
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
        assert_eq!(devices_in(path), []);
        let error = write(&path_in(Path::new("missing")), &devices).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
    }

    #[test]
    fn a_line_that_is_not_utf8_names_no_device_and_the_others_count() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("names");
        fs::write(&path, b"first\r\n\n\xFFbad\nlast").unwrap();
        assert_eq!(texts(&devices_in(path)), ["first", "last", "\u{FFFD}bad"]);
    }

    #[test]
    fn a_file_that_cannot_be_read_changes_nothing_and_is_reported_once() {
        let log = Log::start();
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("names");
        fs::write(&path, "first\n").unwrap();
        let mut file = CordonFile::new(path.clone());
        assert_eq!(file.changed().map(|devices| texts(&devices)), Some(vec!["first".to_owned()]));
        assert_eq!(file.changed(), None);
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        for _ in 0..3 {
            assert_eq!(file.changed(), None);
        }
        let text = log.text();
        assert_eq!(text.matches("cannot read the cordoned devices").count(), 1, "{text}");
        fs::remove_dir(&path).unwrap();
        assert_eq!(file.changed(), Some(Vec::new()));
    }
}
