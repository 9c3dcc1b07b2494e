//! Wine prefixes and hosts in them. Only one test at a time uses a prefix.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, TryLockError};
use std::thread::sleep;
use std::time::Duration;

use super::output::stdout;
use super::paths::{root, target, windows_build};

/// The limit for hangs: longer than any program here takes on a slow machine.
const LIMIT: [&str; 3] = ["timeout", "--kill-after=10", "900"];

/// A prefix, which one test at a time uses.
pub(crate) struct Slot {
    name: &'static str,
    options: &'static [&'static str],
    /// The lock that no other process has, after the first turn.
    turn: Mutex<Option<File>>,
}

impl Slot {
    pub(crate) const fn new(name: &'static str, options: &'static [&'static str]) -> Slot {
        Slot { name, options, turn: Mutex::new(None) }
    }

    fn try_take(&'static self) -> Option<Prefix> {
        let turn = match self.turn.try_lock() {
            Ok(turn) => turn,
            Err(TryLockError::Poisoned(error)) => error.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        Some(Prefix { slot: self, turn })
    }
}

/// A prefix, as long as it is a test's turn.
pub(crate) struct Prefix {
    slot: &'static Slot,
    turn: MutexGuard<'static, Option<File>>,
}

impl Prefix {
    /// Waits until no other test uses one of the prefixes.
    pub(crate) fn take(slots: &'static [Slot]) -> Prefix {
        let mut prefix = loop {
            match slots.iter().find_map(Slot::try_take) {
                Some(prefix) => break prefix,
                None => sleep(Duration::from_millis(10)),
            }
        };
        if prefix.turn.is_none() {
            let folder = target().join("wine");
            fs::create_dir_all(&folder).unwrap();
            let lock = File::create(folder.join(format!("{}.tests", prefix.slot.name))).unwrap();
            lock.lock().unwrap();
            *prefix.turn = Some(lock);
            // Programs of an earlier run may still use the prefix.
            assert!(prefix.lasting_command("--stop").status().unwrap().success());
        }
        prefix
    }

    /// A command that runs a Windows program.
    pub(crate) fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(LIMIT[0]);
        command.args(&LIMIT[1..]).arg(script());
        self.add_options(&mut command, program.as_ref());
        command
    }

    /// The same for a program that runs until it is killed.
    pub(crate) fn lasting_command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(script());
        self.add_options(&mut command, program.as_ref());
        command
    }

    fn add_options(&self, command: &mut Command, program: &OsStr) {
        command.args(["--prefix", self.slot.name]).args(self.slot.options).arg(program);
        command.stdin(Stdio::null());
    }

    /// The folder of drive C.
    pub(crate) fn drive_c(&self) -> PathBuf {
        target().join("wine").join(self.slot.name).join("drive_c")
    }

    /// A new empty folder that Windows programs see.
    pub(crate) fn empty_folder(&self, name: &str) -> PathBuf {
        let folder = self.files().join(name);
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    /// Writes a file that Windows programs see, and returns its path.
    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.files().join(name);
        fs::create_dir_all(self.files()).unwrap();
        fs::write(&path, content).unwrap();
        path
    }

    fn files(&self) -> PathBuf {
        target().join("wine/files").join(self.slot.name)
    }
}

fn script() -> PathBuf {
    root().join("testing/wine/wine")
}

/// The libraries that copies of `dxcore_double` replace. Wine's `dxcore.dll` supports no caller,
/// and it has none of the others.
const REPLACED: [&str; 3] = ["dxcore.dll", "vmcompute.dll", "nvml.dll"];

/// A prefix with `dxcore_double` in it and an inventory that the double follows.
pub(crate) struct Host(Prefix);

impl Host {
    /// Waits for one of two prefixes, and removes what earlier tests have put into the prefix.
    pub(crate) fn take() -> Host {
        static SLOTS: [Slot; 2] = [Slot::new("suite-1", &[]), Slot::new("suite-2", &[])];
        let host = Host(Prefix::take(&SLOTS));
        // The first program makes the prefix.
        host.bed(&["clear"]);
        // A host without NVML is normal.
        host.install(&REPLACED[..2]);
        host.set_nvml_fault("");
        host
    }

    /// The same, with the devices and adapters of `inventory`.
    pub(crate) fn of(inventory: &Path) -> Host {
        let host = Host::take();
        host.set(inventory);
        host
    }

    /// Installs the double under these names of [`REPLACED`], and removes it under the others.
    pub(crate) fn install(&self, libraries: &[&str]) {
        for library in REPLACED {
            let place = self.drive_c().join("windows/system32").join(library);
            let _ = fs::remove_file(&place);
            if libraries.contains(&library) {
                fs::copy(windows_build("dxcore.dll"), &place).unwrap();
            }
        }
    }

    /// Installs the double as an NVML that lacks the functions `missing`.
    pub(crate) fn install_nvml(&self, missing: &[&str]) {
        let mut library = fs::read(windows_build("dxcore.dll")).unwrap();
        for name in missing {
            // The exports stay sorted.
            let other = name.replace("_v", "_x");
            let length = name.len();
            let places: Vec<usize> = (0..library.len() - length)
                .filter(|at| library[*at..].starts_with(name.as_bytes()))
                .collect();
            assert!(!places.is_empty(), "the double does not export {name}");
            for at in places {
                library[at..at + length].copy_from_slice(other.as_bytes());
            }
        }
        fs::write(self.drive_c().join("windows/system32/nvml.dll"), library).unwrap();
    }

    /// Removes the double of NVML as a Windows program does, which fails while it is loaded.
    pub(crate) fn remove_nvml(&self) {
        let mut command = self.command("cmd.exe");
        let output = command.args(["/c", "del", r"C:\windows\system32\nvml.dll"]).output().unwrap();
        let exists = self.drive_c().join("windows/system32/nvml.dll").exists();
        assert!(!exists, "nvml.dll is in use: {output:?}");
    }

    /// The IDs of this prefix' processes with this argument.
    pub(crate) fn processes_with(&self, argument: &str) -> Vec<String> {
        let has = |file: PathBuf, text: &str| {
            fs::read(file).is_ok_and(|bytes| String::from_utf8_lossy(&bytes).contains(text))
        };
        let prefix = self.drive_c().parent().unwrap().display().to_string();
        let variable = format!("WINEPREFIX={prefix}\0");
        let processes = fs::read_dir("/proc").unwrap().map(|entry| entry.unwrap());
        processes
            .filter(|process| {
                has(process.path().join("cmdline"), argument)
                    && has(process.path().join("environ"), &variable)
            })
            .map(|process| process.file_name().display().to_string())
            .collect()
    }

    /// Gives the double of NVML a fault from now on, or none.
    pub(crate) fn set_nvml_fault(&self, fault: &str) {
        fs::write(self.drive_c().join("nvml-fault.txt"), fault).unwrap();
    }

    /// Makes the prefix look like the host of `inventory`: first its devices, then, in one step,
    /// its adapters.
    pub(crate) fn set(&self, inventory: &Path) {
        fs::copy(inventory, self.drive_c().join("next.yaml")).unwrap();
        self.bed(&["set", r"C:\next.yaml"]);
        self.set_adapters(inventory);
    }

    /// Changes only the adapters, in one step. The devices stay.
    pub(crate) fn set_adapters(&self, inventory: &Path) {
        let draft = self.drive_c().join("draft.yaml");
        fs::copy(inventory, &draft).unwrap();
        fs::rename(&draft, self.drive_c().join("inventory.yaml")).unwrap();
    }

    /// Runs `wine_bed`, and returns what it prints.
    pub(crate) fn bed(&self, words: &[&str]) -> String {
        stdout(self.command(windows_build("wine_bed.exe")).args(words))
    }

    /// `directx-device-plugin` for Windows.
    pub(crate) fn plugin(&self, arguments: &[&str]) -> Command {
        let mut command = self.command(windows_build("directx-device-plugin.exe"));
        // No line is broken.
        command.env("COLUMNS", "1000").args(arguments);
        command
    }

    /// Whether Windows programs have `AF_UNIX` sockets in this Wine.
    pub(crate) fn has_sockets(&self) -> bool {
        self.bed(&["has-unix-sockets"]).trim().parse().unwrap()
    }
}

impl std::ops::Deref for Host {
    type Target = Prefix;

    fn deref(&self) -> &Prefix {
        &self.0
    }
}
