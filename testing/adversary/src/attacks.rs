//! The attacks.

mod bodies;
mod calls;
mod connections;
mod files;
mod inventories;
mod kubelets;
mod log;
mod sizes;

use anyhow::Result;

use crate::log_reader::LogOutput;
use crate::target::Target;

/// An attack and what is expected of the daemon after it.
#[derive(Clone, Copy)]
pub(crate) struct Attack {
    /// The name on the command line.
    pub(crate) name: &'static str,
    /// What it does, for the table.
    pub(crate) about: &'static str,
    /// Further arguments of the daemon.
    pub(crate) arguments: &'static [&'static str],
    /// Further lines of the daemon's configuration.
    pub(crate) configuration: fn() -> String,
    pub(crate) log: LogOutput,
    pub(crate) kubelet: Kubelet,
    pub(crate) leaves: Host,
    /// Whether it is part of all attacks together.
    pub(crate) joins_others: bool,
    /// Runs until the target's time is over, and returns how often it repeated what it does. An
    /// error is a violated invariant.
    pub(crate) run: fn(&Target) -> Result<u64>,
}

/// When the well-behaved kubelet runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kubelet {
    Throughout,
    /// The attack plays the kubelet.
    Afterwards,
}

/// The state of the host that the attack leaves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Host {
    Healthy,
    FirstGpuUnhealthy,
}

const fn attack(
    name: &'static str,
    about: &'static str,
    run: fn(&Target) -> Result<u64>,
) -> Attack {
    Attack {
        name,
        about,
        arguments: &[],
        configuration: String::new,
        log: LogOutput::Read,
        kubelet: Kubelet::Throughout,
        leaves: Host::Healthy,
        joins_others: true,
        run,
    }
}

/// Alone: it needs a daemon or a host of its own.
const fn alone(attack: Attack) -> Attack {
    Attack { joins_others: false, ..attack }
}

const fn with_log(log: LogOutput, attack: Attack) -> Attack {
    Attack { log, arguments: &["--log-level", "debug"], ..alone(attack) }
}

/// All attacks, in the order of the table.
pub(crate) const ATTACKS: &[Attack] = &[
    with_log(
        LogOutput::Stalled,
        attack("log-stalled", "nobody reads the log, every call writes lines", log::calls),
    ),
    with_log(LogOutput::Full, attack("log-full", "the log's disk is full", log::calls)),
    attack(
        "large-requests",
        "preferred allocations of 8,192 replicas and of 400,000 unknown IDs, Allocate for thousands of containers",
        calls::large,
    ),
    attack(
        "unfinished-requests",
        "1,024 requests of 4 MiB whose last byte never arrives",
        bodies::unfinished,
    ),
    attack("unread-responses", "960 lists that the client never reads", connections::unread),
    attack(
        "log-injection",
        "IDs with control characters and of 4 MB, without pause",
        calls::log_injection,
    ),
    attack("rapid-resets", "calls that are cancelled at once", connections::rapid_resets),
    attack("connection-flood", "connections with garbage, or with nothing", connections::flood),
    attack(
        "silent-sockets",
        "`status` beside 200 sockets that do not answer, with control characters in their names",
        files::silent_sockets,
    ),
    alone(attack(
        "hostile-inventories",
        "paths out of the driver store, names of Windows' own files, control characters",
        inventories::hostile,
    )),
    Attack {
        configuration: sizes::rules,
        ..alone(attack(
            "many-adapters",
            "1,000 adapters come and go, with 100 rules",
            sizes::many_adapters,
        ))
    },
    Attack {
        leaves: Host::FirstGpuUnhealthy,
        ..alone(attack(
            "special-files",
            "a FIFO, a folder, a device and text replace the inventory",
            files::special_files,
        ))
    },
    Attack {
        kubelet: Kubelet::Afterwards,
        ..alone(attack(
            "hostile-kubelets",
            "kubelets that refuse, hang, end streams, answer garbage or restart",
            kubelets::hostile,
        ))
    },
];
