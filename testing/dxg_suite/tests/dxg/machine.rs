//! A Linux machine to which Windows lends the adapters of an inventory: the root of its file
//! system, and the driver.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Arc, Mutex};

use devices::{HostSnapshot, StoreFiles};
use tempfile::TempDir;

use super::driver::Driver;
use super::supervisor;

/// The kubelet's device plugin directory, with a short path.
pub(crate) const DEVICE_PLUGINS: &str = "/k";

const INVENTORY: &str = "fixtures/inventories/made-up-wsl2-laptop.yaml";
const VIRTUAL_GPU: &str = "sys/bus/pci/devices/6c4b:00:00.0";
const PROGRAM: &str = "directx-device-plugin";

/// One thread at a time copies or starts a program: a new process inherits the open files of all
/// threads, and a program that is open for writing cannot be started.
static STARTS: Mutex<()> = Mutex::new(());

pub(crate) struct Machine {
    root: TempDir,
    /// The inventory.
    pub(crate) host: HostSnapshot,
    pub(crate) driver: Arc<Driver>,
}

impl Machine {
    /// The machine, if the kernel allows it; otherwise the reason is printed.
    pub(crate) fn new() -> Option<Machine> {
        let inventory = workspace().join(INVENTORY);
        let host = config::inventory::read(&inventory).unwrap();
        let machine = Machine { root: tempfile::tempdir().unwrap(), host, driver: Arc::default() };
        for folder in [DEVICE_PLUGINS, "dev", "tmp", "proc/sys/kernel", "usr/lib/wsl/lib"] {
            fs::create_dir_all(machine.path(folder)).unwrap();
        }
        let release = machine.host.host.product.as_deref().unwrap_or_default();
        let release = release.trim_start_matches("Linux ");
        fs::write(machine.path("proc/sys/kernel/osrelease"), format!("{release}\n")).unwrap();
        machine.set_gpu_on_the_bus("PCI_ID=1414:008E");
        for store in machine.host.adapters.iter().filter_map(|a| a.driver_store.as_ref()) {
            let folder = machine.path(&devices::dxg_driver_folder(&store.path).unwrap());
            fs::create_dir_all(&folder).unwrap();
            let StoreFiles::Listed(files) = &store.files else {
                panic!("an inventory lists files")
            };
            for file in files {
                fs::write(folder.join(file), "").unwrap();
            }
        }
        // The file belongs to no driver: the kernel would answer each ioctl with ENOTTY.
        File::create(machine.path("dev/dxg")).unwrap();
        fs::copy(inventory, machine.path("inventory.yaml")).unwrap();
        let turn = STARTS.lock().unwrap();
        fs::copy(program(), machine.path(PROGRAM)).unwrap();
        drop(turn);
        let adapters = machine.host.adapters.clone();
        machine.driver.change(|state| state.adapters = adapters);
        let version = machine.spawn(&["--version"]).map(|mut program| program.wait());
        let Err(error) = version else { return Some(machine) };
        // This is not `eprintln!`, whose text the test harness hides when the test passes.
        let _ =
            writeln!(io::stderr(), "skipped: cannot answer the program's system calls: {error}");
        None
    }

    /// A path of the machine.
    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.root.path().join(path.trim_start_matches('/'))
    }

    pub(crate) fn set_gpu_on_the_bus(&self, id: &str) {
        fs::create_dir_all(self.path(VIRTUAL_GPU)).unwrap();
        fs::write(self.path(VIRTUAL_GPU).join("uevent"), format!("PCI_CLASS=30200\n{id}\n"))
            .unwrap();
    }

    /// Starts the program, which is killed when the result is dropped.
    pub(crate) fn start(&self, words: &[&str]) -> Running {
        Running(self.spawn(words).unwrap())
    }

    fn spawn(&self, words: &[&str]) -> io::Result<Child> {
        let mut command = Command::new(format!("/{PROGRAM}"));
        // No line is broken.
        command.args(words).env_clear().env("COLUMNS", "1000").stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let _turn = STARTS.lock().unwrap();
        supervisor::spawn(&mut command, self.root.path(), Arc::clone(&self.driver))
    }

    /// Runs the program to its end. It must close every adapter.
    pub(crate) fn run(&self, words: &[&str]) -> Output {
        let output = self.spawn(words).unwrap().wait_with_output().unwrap();
        assert_eq!(self.driver.open_adapters(), 0, "{words:?}");
        output
    }
}

/// A program that runs.
pub(crate) struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

fn workspace() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap()
}

fn program() -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").unwrap_or("target".into());
    let folder = workspace().join(target).join("x86_64-unknown-linux-musl/debug");
    let program = folder.join(PROGRAM);
    assert!(program.exists(), "{} is not built; run `cargo xtask test dxg`", program.display());
    program
}
