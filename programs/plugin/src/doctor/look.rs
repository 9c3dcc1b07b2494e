//! Looking at the node: everything of the doctor that touches the machine.
//!
//! In come the command's arguments; out goes [`Observed`]. Whatever cannot be looked
//! at says why, in words, and hides nothing else.

#[cfg(any(windows, test))]
mod command_line;
#[cfg(any(windows, test))]
mod containerd;
mod kubelet;
#[cfg(windows)]
mod live;
#[cfg(any(windows, test))]
mod nvidia;
#[cfg(any(windows, test))]
mod programs;

use std::path::{Path, PathBuf};

use cli::Failure;
use settings::Origin;

use super::observed::{Complaint, Configuration, Hcs, Machine, Observed, Seen};
use crate::flags::Doctor;
use crate::{output, serve, source};

/// Looks at everything.
pub(super) fn look(arguments: &Doctor) -> Result<Observed, Failure> {
    let inventory = arguments.input.inventory.as_deref();
    let machine = match inventory {
        Some(inventory) => recorded(inventory)?,
        None => live()?,
    };
    let (configuration, directory) = configuration(arguments);
    let directory = match directory {
        // A recording has no kubelet, unless somebody names a directory of this machine.
        None if inventory.is_some() => Seen::Recorded,
        named => {
            let directory = named.unwrap_or_else(serve::default_directory);
            Seen::Looked(kubelet::directory(&serve::runtime()?, &directory))
        }
    };
    Ok(Observed { machine, image: arguments.image_os_version, directory, configuration })
}

/// A recorded machine. One that cannot be read is wrong usage.
fn recorded(inventory: &Path) -> Result<Machine, Failure> {
    let snapshot = source::open(Some(inventory))?.snapshot().map_err(output::source_failure)?;
    Ok(Machine {
        host: snapshot.host.clone(),
        hcs: Hcs::Schemas(snapshot.host.hcs_schemas.clone()),
        containerd: Seen::Recorded,
        kubelet: Seen::Recorded,
        adapters: Ok(snapshot),
        driver_dates: Vec::new(),
        nvml: Seen::Recorded,
    })
}

/// This machine. One whose adapters cannot be read is what the doctor is there for.
#[cfg(windows)]
#[expect(clippy::unnecessary_wraps, reason = "elsewhere there is no such machine")]
fn live() -> Result<Machine, Failure> {
    Ok(live::machine())
}

/// Not this machine: as for every command, a recording is needed.
#[cfg(not(windows))]
fn live() -> Result<Machine, Failure> {
    source::open(None).map(|_| unreachable!("only Windows has a source of its own"))
}

/// The configuration that `serve` would run with, and the directory it names.
fn configuration(arguments: &Doctor) -> (Result<Configuration, Complaint>, Option<PathBuf>) {
    let flags = settings::Flags {
        driver_models: arguments.models.driver_models.clone(),
        config: arguments.input.config.clone(),
        device_plugin_dir: arguments.device_plugin_dir.clone(),
    };
    let config = match settings::load(&flags, &settings::ProcessEnvironment) {
        Ok(config) => config,
        Err(error) => {
            let complaint = complaint(&error, error.hint());
            return (Err(complaint), flags.device_plugin_dir);
        }
    };
    let set = config.effective.iter().filter(|value| value.origin != Origin::Default);
    let configuration = Configuration {
        policy: config.policy,
        set: set.map(ToString::to_string).collect(),
        notices: config.notices,
    };
    (Ok(configuration), config.device_plugin_dir)
}

fn complaint(error: &dyn std::error::Error, advice: Option<&str>) -> Complaint {
    Complaint { what: in_words(error), advice: advice.map(str::to_owned) }
}

/// An error and its causes, in one line.
fn in_words(error: &dyn std::error::Error) -> String {
    let mut words = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        words = format!("{words}: {error}");
        cause = error.source();
    }
    words
}
