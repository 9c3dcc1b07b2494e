//! A discovery instance: the host, the devices of the last discovery and the error of the
//! last call.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use devices::{Criteria, Filter, discover};
use host::{AdapterSource, SourceError, error_chain};

use crate::device::{DeviceRecord, FileRecord};
use crate::logging;
use crate::source::Open;
use crate::wide::WideText;

/// The reason why a call failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CallError {
    /// A device was requested before the first discovery.
    #[error("no devices have been discovered yet; call DeviceDiscovery_DiscoverDevices first")]
    NotDiscovered,
    /// Device indexes start at 0.
    #[error("device index {0} is out of range: the last discovery found {1} devices")]
    NoDevice(u32, usize),
    /// File indexes start at 0.
    #[error("file index {1} is out of range: device {0} has {2} runtime files of this kind")]
    NoFile(u32, u32, usize),
    /// The C interface defines the filters 0 to 5.
    #[error("invalid device filter {0}: expected 0 to 5")]
    Filter(i32),
    /// The host cannot be opened or read.
    #[error("cannot read the adapters of this host")]
    Source(#[from] SourceError),
    /// A panic, which is a defect of this library.
    #[error("internal error: {0}")]
    Panic(String),
}

/// A discovery instance.
pub(crate) struct Instance {
    open: Open,
    host: Option<Host>,
    devices: Option<Vec<DeviceRecord>>,
    error: WideText,
}

/// An open host.
struct Host {
    source: Box<dyn AdapterSource>,
    /// Set by the source after a change; always set if the source cannot report changes.
    changed: Arc<AtomicBool>,
    is_watched: bool,
}

impl Host {
    /// Opens the host and watches it before anything is read, so that no change is missed.
    fn open(open: Open) -> Result<Host, SourceError> {
        let mut source = open()?;
        let changed = Arc::new(AtomicBool::new(true));
        let flag = changed.clone();
        let watched = source.watch(Box::new(move || flag.store(true, Ordering::Relaxed)));
        if let Err(error) = &watched {
            logging::line(format_args!("change notifications are unavailable: {error}"));
        }
        Ok(Host { source, changed, is_watched: watched.is_ok() })
    }
}

impl Instance {
    pub(crate) fn new(open: Open) -> Instance {
        Instance { open, host: None, devices: None, error: WideText::default() }
    }

    /// The error of the last call; empty after a success.
    pub(crate) fn error(&self) -> &WideText {
        &self.error
    }

    /// Keeps the error of a call, or clears the last error after a success.
    pub(crate) fn conclude<T>(&mut self, outcome: Result<T, CallError>) -> Option<T> {
        match outcome {
            Ok(value) => {
                self.error = WideText::default();
                Some(value)
            }
            Err(error) => {
                let text = error_chain(&error);
                logging::line(format_args!("{text}"));
                self.error = WideText::new(&text);
                None
            }
        }
    }

    /// Whether the host may have changed since the last discovery. True before the first one.
    pub(crate) fn is_refresh_required(&self) -> bool {
        self.host.as_ref().is_none_or(|host| host.changed.load(Ordering::Relaxed))
    }

    /// Discovers devices. On failure, the devices of the last discovery stay available.
    pub(crate) fn discover(
        &mut self,
        filter: i32,
        include_integrated: bool,
        include_detachable: bool,
    ) -> Result<(), CallError> {
        let filter = Filter::from_repr(filter).ok_or(CallError::Filter(filter))?;
        let host = match &mut self.host {
            Some(host) => host,
            None => self.host.insert(Host::open(self.open)?),
        };
        host.changed.store(!host.is_watched, Ordering::Relaxed);
        let snapshot = host.source.snapshot().inspect_err(|_| {
            // The caller should try again, so a refresh is still required.
            host.changed.store(true, Ordering::Relaxed);
        })?;
        let selection = discover(
            &snapshot,
            Criteria { filter, include_integrated, include_detachable, include_basic: true },
        );
        logging::discovery(&snapshot, &selection);
        self.devices = Some(selection.devices.into_iter().map(DeviceRecord::new).collect());
        Ok(())
    }

    /// The devices of the last discovery.
    pub(crate) fn devices(&self) -> Result<&[DeviceRecord], CallError> {
        self.devices.as_deref().ok_or(CallError::NotDiscovered)
    }

    /// The device with this index.
    pub(crate) fn device(&self, number: u32) -> Result<&DeviceRecord, CallError> {
        let devices = self.devices()?;
        at(devices, number).ok_or(CallError::NoDevice(number, devices.len()))
    }

    /// The runtime file with index `file` in a list of device `number`; `list` selects it.
    pub(crate) fn file(
        &self,
        number: u32,
        file: u32,
        list: fn(&DeviceRecord) -> &[FileRecord],
    ) -> Result<&FileRecord, CallError> {
        let files = list(self.device(number)?);
        at(files, file).ok_or(CallError::NoFile(number, file, files.len()))
    }
}

fn at<T>(list: &[T], number: u32) -> Option<&T> {
    list.get(usize::try_from(number).ok()?)
}
