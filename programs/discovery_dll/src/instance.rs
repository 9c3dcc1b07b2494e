//! One discovery instance: a host, what was last discovered on it, and why the last
//! call failed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use devices::{Adapter, AdapterSource, Criteria, DeviceScope, Filter, SourceError, discover};

use crate::listed::{Listed, ListedFile};
use crate::logging;
use crate::source::Open;
use crate::wide::WideText;

/// Why a call fails.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CallError {
    /// A device was asked for before any discovery.
    #[error("no devices have been discovered yet; DeviceDiscovery_DiscoverDevices does that")]
    NotDiscovered,
    /// Devices count from 0.
    #[error("there is no device {0}; the last discovery found {1}")]
    NoDevice(u32, usize),
    /// Files count from 0.
    #[error("device {0} has no runtime file {1} of this kind; it has {2}")]
    NoFile(u32, u32, usize),
    /// The C interface numbers filters from 0 to 5.
    #[error("{0} is not a device filter (0 to 5)")]
    Filter(i32),
    /// The host.
    #[error("the adapters of this host cannot be read")]
    Source(#[from] SourceError),
    /// A defect of this library.
    #[error("the discovery library failed: {0}")]
    Panic(String),
}

/// One instance.
pub(crate) struct Instance {
    open: Open,
    host: Option<Host>,
    devices: Option<Vec<Listed>>,
    error: WideText,
}

/// An open host.
struct Host {
    source: Box<dyn AdapterSource>,
    news: News,
}

/// How a change of the host is noticed.
enum News {
    /// The source tells.
    Told(Arc<AtomicBool>),
    /// The source cannot tell, so the adapters of the last discovery are compared.
    Compared(Vec<Adapter>),
}

impl Host {
    /// Opens the host and listens before anything is read, so that no change falls
    /// between.
    fn open(open: Open) -> Result<Host, SourceError> {
        let mut source = open()?;
        let changed = Arc::new(AtomicBool::new(false));
        let told = changed.clone();
        let watch = source.watch(Box::new(move || told.store(true, Ordering::Relaxed)));
        let news = match watch {
            Ok(()) => News::Told(changed),
            Err(error) => {
                logging::line(format_args!("the host does not tell of changes: {error}"));
                News::Compared(Vec::new())
            }
        };
        Ok(Host { source, news })
    }
}

impl Instance {
    pub(crate) fn new(open: Open) -> Instance {
        Instance { open, host: None, devices: None, error: WideText::default() }
    }

    /// The last call's failure, empty after success.
    pub(crate) fn error(&self) -> &WideText {
        &self.error
    }

    /// Takes over the outcome of a call.
    pub(crate) fn conclude<T>(&mut self, outcome: Result<T, CallError>) -> Option<T> {
        match outcome {
            Ok(value) => {
                self.error = WideText::default();
                Some(value)
            }
            Err(error) => {
                let text = with_causes(&error);
                logging::line(format_args!("{text}"));
                self.error = WideText::new(&text);
                None
            }
        }
    }

    /// Whether the host may have changed since the last discovery, or none was made.
    pub(crate) fn is_refresh_required(&mut self) -> Result<bool, CallError> {
        let (Some(host), Some(_)) = (&mut self.host, &self.devices) else {
            return Ok(true);
        };
        match &host.news {
            News::Told(changed) => Ok(changed.load(Ordering::Relaxed)),
            News::Compared(known) => Ok(host.source.snapshot()?.adapters != *known),
        }
    }

    /// Discovers devices. Where that fails the earlier ones stay.
    pub(crate) fn discover(
        &mut self,
        filter: i32,
        integrated: DeviceScope,
        detachable: DeviceScope,
    ) -> Result<(), CallError> {
        let filter = Filter::from_number(filter).ok_or(CallError::Filter(filter))?;
        let host = match &mut self.host {
            Some(host) => host,
            None => self.host.insert(Host::open(self.open)?),
        };
        if let News::Told(changed) = &host.news {
            changed.store(false, Ordering::Relaxed);
        }
        let snapshot = host.source.snapshot().inspect_err(|_| {
            // The next question is whether to try again, and it should be.
            if let News::Told(changed) = &host.news {
                changed.store(true, Ordering::Relaxed);
            }
        })?;
        let selection = discover(&snapshot, Criteria { filter, integrated, detachable });
        logging::discovery(&snapshot, &selection);
        self.devices = Some(selection.devices.iter().map(Listed::new).collect());
        if let News::Compared(known) = &mut host.news {
            *known = snapshot.adapters;
        }
        Ok(())
    }

    /// The devices of the last discovery.
    pub(crate) fn devices(&self) -> Result<&[Listed], CallError> {
        self.devices.as_deref().ok_or(CallError::NotDiscovered)
    }

    /// Device `number`.
    pub(crate) fn device(&self, number: u32) -> Result<&Listed, CallError> {
        let devices = self.devices()?;
        at(devices, number).ok_or(CallError::NoDevice(number, devices.len()))
    }

    /// Runtime file `file` of the list that `of` picks of device `number`.
    pub(crate) fn file(
        &self,
        number: u32,
        file: u32,
        of: fn(&Listed) -> &[ListedFile],
    ) -> Result<&ListedFile, CallError> {
        let files = of(self.device(number)?);
        at(files, file).ok_or(CallError::NoFile(number, file, files.len()))
    }
}

fn at<T>(list: &[T], number: u32) -> Option<&T> {
    list.get(usize::try_from(number).ok()?)
}

fn with_causes(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |cause| cause.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}
