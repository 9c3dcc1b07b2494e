//! An adapter source that reads `/dev/dxg`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use devices::{
    AdapterSource, AdapterWarning, ChangeCallback, DXG_DEVICE, HostFacts, HostSnapshot, Luid,
    Platform, ReadStep, SourceError, StepCallback, WarningEffect, dxg_driver_folder, error_chain,
};

use crate::adapter::Queries;
use crate::device::DxgDevice;

/// How often the adapters are compared. The driver reports no changes.
const INTERVAL: Duration = Duration::from_secs(10);

/// Why the adapters cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The machine has no device file.
    #[error(
        "this host runs Linux and has no {DXG_DEVICE}, with which Windows lends its DirectX devices \
         to WSL2 and to virtual machines with GPU-PV"
    )]
    NoDevice,
    /// The device file cannot be opened.
    #[error("cannot open {DXG_DEVICE}{}", if .0.kind() == io::ErrorKind::PermissionDenied {
        "; pass the device to this container, or make it privileged"
    } else {
        ""
    })]
    Open(#[source] io::Error),
    /// The driver does not list the adapters.
    #[error("cannot list the adapters of {DXG_DEVICE}")]
    List(#[source] io::Error),
    /// The driver has no adapter.
    #[error(
        "Windows lends no GPU to this virtual machine; check its driver, `gpuSupport` or GPU partition"
    )]
    NoGpu,
    /// The driver has lost its host. The text does not contain the error, because it differs
    /// between attempts.
    #[error(
        "the connection of {DXG_DEVICE} to the Windows host is broken; restart the virtual machine, for \
         WSL2 with `wsl --shutdown`"
    )]
    Disconnected,
}

/// Opens the device file.
pub(crate) type Open = Box<dyn Fn() -> io::Result<DxgDevice> + Send + Sync>;

/// The machine whose adapters are read: this one, or a fake one in tests.
pub(crate) struct Machine {
    pub(crate) open: Open,
    /// The root of its file system.
    pub(crate) root: PathBuf,
    /// How often its adapters are compared.
    pub(crate) interval: Duration,
}

/// The adapters of this machine.
pub struct DxgSource {
    machine: Arc<Machine>,
    connection: Arc<Mutex<Connection>>,
    /// The adapters of the last list.
    known: BTreeSet<Luid>,
    on_step: StepCallback,
    /// Dropping it ends the threads that compare the adapters.
    watch: Option<Sender<()>>,
}

/// The open device file, if there is one. There is only one in the process, because the kernel
/// connects a process to the host only once, until it has closed all of its files.
type Connection = Option<DxgDevice>;

/// The state that is compared to detect changes, such as an update of the driver.
type State = Result<BTreeMap<Luid, AdapterState>, String>;

#[derive(Clone, PartialEq, Eq, Debug)]
struct AdapterState {
    is_hardware: Result<bool, String>,
    /// Whether the driver store folder exists, and its path, if it is reported.
    folder: Option<(bool, String)>,
}

impl DxgSource {
    /// The adapters of this machine. Does not read them yet.
    ///
    /// # Errors
    /// The machine has no `/dev/dxg`.
    pub fn new() -> Result<DxgSource, OpenError> {
        if !Path::new(DXG_DEVICE).exists() {
            return Err(OpenError::NoDevice);
        }
        Ok(DxgSource::of(Machine {
            open: Box::new(|| DxgDevice::open(Path::new(DXG_DEVICE))),
            root: PathBuf::from("/"),
            interval: INTERVAL,
        }))
    }

    pub(crate) fn of(machine: Machine) -> DxgSource {
        DxgSource {
            machine: Arc::new(machine),
            connection: Arc::default(),
            known: BTreeSet::new(),
            on_step: Box::new(|_| {}),
            watch: None,
        }
    }

    fn read(&mut self) -> Result<HostSnapshot, OpenError> {
        let machine = &*self.machine;
        let mut snapshot = HostSnapshot { host: machine.facts(), ..HostSnapshot::default() };
        let on_step = &self.on_step;
        on_step(ReadStep::Compare);
        let mut connection = lock(&self.connection);
        on_step(ReadStep::Adapters);
        machine.each_adapter(&mut connection, |luid, queries| {
            on_step(ReadStep::Adapter(luid));
            match queries.adapter(&|folder| machine.has_folder(folder)) {
                Ok(adapter) => {
                    let effect = WarningEffect::Incomplete;
                    let notes = queries.notes.drain(..);
                    snapshot.warnings.extend(notes.map(|text| AdapterWarning {
                        luid,
                        text,
                        effect,
                    }));
                    snapshot.adapters.push(adapter);
                }
                Err(text) => {
                    let effect = WarningEffect::Unreadable;
                    snapshot.warnings.push(AdapterWarning { luid, text, effect });
                }
            }
        })?;
        Ok(snapshot)
    }
}

impl Machine {
    /// Calls `visit` with each adapter. A connection that has lost the host is closed, so that the
    /// next call opens it again.
    fn each_adapter(
        &self,
        connection: &mut Connection,
        mut visit: impl FnMut(Luid, &mut Queries<'_>),
    ) -> Result<(), OpenError> {
        let device = match connection.take() {
            Some(device) => device,
            None => (self.open)().map_err(|error| self.cause(error, OpenError::Open))?,
        };
        let mut is_stale = false;
        for adapter in device.adapters().map_err(|error| self.cause(error, OpenError::List))? {
            let mut queries = Queries::of(&adapter);
            visit(adapter.luid(), &mut queries);
            is_stale |= queries.is_stale;
        }
        *connection = Some(device).filter(|_| !is_stale);
        Ok(())
    }

    /// The error of a call, or of the connection if the error's number means that there is none.
    fn cause(&self, error: io::Error, call: fn(io::Error) -> OpenError) -> OpenError {
        match error.raw_os_error() {
            Some(libc::EBADF) if !self.has_virtual_gpu() => OpenError::NoGpu,
            Some(libc::EBADF | libc::EOVERFLOW) => OpenError::Disconnected,
            _ => call(error),
        }
    }

    /// The state after `before`. The kernel logs each failed query, so a folder that was not
    /// reported is not asked for again.
    fn state(&self, connection: &Mutex<Connection>, before: Option<&State>) -> State {
        let mut state = BTreeMap::new();
        let visited = self.each_adapter(&mut lock(connection), |luid, queries| {
            let before = before.and_then(|before| before.as_ref().ok()?.get(&luid));
            let is_hardware = queries.kind().map(|kind| kind.adapter(luid).hardware);
            let is_asked = is_hardware == Ok(true)
                && before.is_none_or(|b| b.is_hardware.is_err() || b.folder.is_some());
            let path = is_asked.then(|| queries.driver_store_path().ok()).flatten();
            let folder = path
                .map(|path| (dxg_driver_folder(&path).is_some_and(|f| self.has_folder(&f)), path));
            state.insert(luid, AdapterState { is_hardware, folder });
        });
        visited.map(|()| state).map_err(|error| error_chain(&error))
    }

    /// Whether Windows lends a virtual GPU. The driver creates its file before it has one, and
    /// opening it then fails as if the connection were broken.
    fn has_virtual_gpu(&self) -> bool {
        const VIRTUAL: [&str; 2] = ["PCI_ID=1414:008E", "PCI_ID=1414:008A"];
        let functions = fs::read_dir(self.root.join("sys/bus/pci/devices"));
        functions.map_or(true, |functions| {
            functions.flatten().any(|function| {
                let facts = fs::read_to_string(function.path().join("uevent"));
                facts.is_ok_and(|facts| VIRTUAL.iter().any(|id| facts.contains(id)))
            })
        })
    }

    fn has_folder(&self, path: &str) -> bool {
        self.root.join(path.trim_start_matches('/')).is_dir()
    }

    fn facts(&self) -> HostFacts {
        let kernel = fs::read_to_string(self.root.join("proc/sys/kernel/osrelease"));
        HostFacts {
            platform: Platform::LinuxDxg,
            product: kernel.ok().map(|release| format!("Linux {}", release.trim())),
            is_this_machine: true,
            ..HostFacts::default()
        }
    }
}

fn lock(connection: &Mutex<Connection>) -> MutexGuard<'_, Connection> {
    // A panic leaves no device, which is valid.
    connection.lock().unwrap_or_else(PoisonError::into_inner)
}

impl AdapterSource for DxgSource {
    /// Adapters that were listed before and cannot be listed now are in the snapshot as unreadable,
    /// so that their devices become unhealthy: such an error can last until the machine restarts.
    fn snapshot(&mut self) -> Result<HostSnapshot, SourceError> {
        match self.read() {
            Ok(snapshot) => {
                let readable = snapshot.adapters.iter().map(|adapter| adapter.luid);
                self.known = readable.chain(snapshot.warnings.iter().map(|w| w.luid)).collect();
                Ok(snapshot)
            }
            Err(error) if self.known.is_empty() => Err(error.into()),
            Err(error) => {
                let text = error_chain(&error);
                let warnings = self.known.iter().map(|luid| AdapterWarning {
                    luid: *luid,
                    text: text.clone(),
                    effect: WarningEffect::Unreadable,
                });
                Ok(HostSnapshot {
                    host: self.machine.facts(),
                    warnings: warnings.collect(),
                    ..HostSnapshot::default()
                })
            }
        }
    }

    fn report_steps(&mut self, on_step: StepCallback) {
        self.on_step = on_step;
    }

    /// Calls `on_change` on separate threads.
    fn watch(&mut self, on_change: ChangeCallback) -> Result<(), SourceError> {
        (self.on_step)(ReadStep::Watch);
        let machine = Arc::clone(&self.machine);
        let connection = Arc::clone(&self.connection);
        let mut before = machine.state(&connection, None);
        let (watch, ended) = channel();
        let (request, requests) = sync_channel(0);
        let interval = machine.interval;
        let on_change = Arc::new(on_change);
        let report = Arc::clone(&on_change);
        std::thread::Builder::new().name("dxg".to_owned()).spawn(move || {
            for () in requests {
                let now = machine.state(&connection, Some(&before));
                if now != before {
                    before = now;
                    on_change();
                }
            }
        })?;
        std::thread::Builder::new().name("dxg-timer".to_owned()).spawn(move || {
            while let Err(RecvTimeoutError::Timeout) = ended.recv_timeout(interval) {
                // A comparison that hangs is reported by the read that waits for it.
                if request.try_send(()).is_err() {
                    report();
                }
            }
        })?;
        self.watch = Some(watch);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
