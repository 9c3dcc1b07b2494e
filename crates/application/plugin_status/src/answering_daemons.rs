//! The daemons of a node that answered a status call, and what they report together.
//!
//! Several daemons run on a node with a `DaemonSet` for each driver model, and during a rolling
//! update.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use device_plugin::UnixSockets;
use device_plugin::status::{
    Phase, ResourceStatus, StatusError, StatusReport, find_sockets, query_all,
};
use devices::{DriverModel, ResourceName};
use host::PnpId;
use report::{Message, NodeReport};

use crate::plugin_report::{PluginReport, PluginVersion};
use crate::registration::registration;

/// A daemon that answered.
#[derive(Clone, PartialEq, Debug)]
pub struct Daemon {
    /// One of its sockets.
    pub socket: PathBuf,
    /// The number of its process, or 0 if it is of a version that has none.
    pub instance: u64,
    /// Its resources, and how far their registration is.
    pub resources: Vec<ResourceStatus>,
    /// What it reports of the node.
    pub report: Result<PluginReport, PluginVersion>,
}

/// What the daemons of a node list to the kubelet.
#[derive(Clone, PartialEq, Debug)]
pub enum NodeState {
    /// No daemon serves a resource. One may be starting, or wait for another one to end.
    NotServed,
    /// A daemon serves resources, and no daemon reports its devices.
    NotReported(SilentDaemon),
    /// The resources and their devices.
    Known(Box<NodeListing>),
}

/// A daemon whose devices are not known.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SilentDaemon {
    /// Which daemon, such as "the plugin at /x/wddm-1.sock".
    pub name: String,
    /// Why its devices are not known.
    pub reason: SilenceReason,
}

/// Why the devices of a daemon are not known.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SilenceReason {
    /// It does not answer in time.
    Busy,
    /// It has another version, whose report this program cannot read.
    OtherVersion(PluginVersion),
    /// It does not know its devices, for this reason.
    Pending(String),
    /// Another daemon says that it should run, and it does not.
    NotRunning,
}

impl SilentDaemon {
    fn at(socket: &Path, reason: SilenceReason) -> SilentDaemon {
        SilentDaemon { name: format!("the plugin at {}", socket.display()), reason }
    }

    /// Which daemon's devices are not known, and why.
    #[must_use]
    pub fn message(&self) -> Message {
        let name = &self.name;
        match &self.reason {
            SilenceReason::Busy => format!("{name} does not answer in time").into(),
            SilenceReason::OtherVersion(version) => {
                format!("{name} is {version}, which this program cannot read").into()
            }
            SilenceReason::Pending(why) => {
                Message::quoting(format!("{name} does not know the devices yet"), why)
            }
            SilenceReason::NotRunning => format!("{name} does not run").into(),
        }
    }
}

/// What the daemons of a node list together.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct NodeListing {
    /// The resources and their devices.
    pub node: NodeReport,
    /// How each of these resources is served.
    pub served: BTreeMap<ResourceName, ServedResource>,
    /// Why daemons do not use their newest configuration.
    pub rejected_configurations: BTreeSet<String>,
    /// The daemons whose devices are not known.
    pub silent: Vec<SilentDaemon>,
    /// The driver models that no daemon serves, which another daemon may be about to.
    pub free_models: Vec<DriverModel>,
}

/// How a resource is served.
#[derive(Clone, Debug)]
pub struct ServedResource {
    /// The number of the daemon that serves it.
    pub instance: u64,
    /// Why the kubelet has not received its devices, if it has not.
    pub not_registered: Option<Message>,
    /// Why the kubelet has not received all its devices, if another daemon has more.
    pub incomplete: Option<String>,
}

/// The words of other programs do not count.
impl PartialEq for ServedResource {
    fn eq(&self, other: &ServedResource) -> bool {
        (self.instance, self.why_not(), &self.incomplete)
            == (other.instance, other.why_not(), &other.incomplete)
    }
}

impl ServedResource {
    fn why_not(&self) -> Option<&str> {
        self.not_registered.as_ref().map(Message::own)
    }
}

/// A daemon that waits for the one that serves a resource, and has devices of the resource that no
/// daemon lists.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UnlistedDevices {
    /// The socket of the daemon that waits.
    pub socket: PathBuf,
    /// The name of the resource.
    pub resource: String,
    /// The devices, at least one.
    devices: Vec<String>,
}

impl fmt::Display for UnlistedDevices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let UnlistedDevices { socket, resource, devices } = self;
        let named = devices[..devices.len().min(NAMED)].join(", ");
        let more = match devices.len().saturating_sub(NAMED) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let socket = socket.display();
        write!(
            f,
            "the plugin at {socket} waits for the one that serves {resource}, and none lists {named}{more}"
        )
    }
}

/// How many devices a message names.
const NAMED: usize = 8;

/// What listens on the sockets of a device plugin directory.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Answers {
    /// The daemons that answered.
    pub daemons: Vec<Daemon>,
    /// The sockets that a daemon listens on without answering in time.
    pub busy: Vec<PathBuf>,
}

impl Answers {
    /// Asks the daemons in `directory` that advertise one of `models`, all of them if it is empty.
    /// Takes at most two seconds.
    ///
    /// # Errors
    /// The directory cannot be read.
    pub async fn ask(directory: &Path, models: &[DriverModel]) -> io::Result<Answers> {
        let sockets = sockets(directory, models)?;
        let answers = query_all(&UnixSockets, &sockets).await;
        for (socket, answer) in sockets.iter().zip(&answers) {
            if let Err(error) = answer
                && !matches!(error, StatusError::Busy)
            {
                let socket = socket.display();
                tracing::info!(%socket, %error, "skipping stale socket");
            }
        }
        Ok(Answers::of(sockets.into_iter().zip(answers)))
    }

    /// The answers of these sockets. All sockets of one process give the same answer, which counts
    /// once.
    pub fn of(
        answers: impl IntoIterator<Item = (PathBuf, Result<StatusReport, StatusError>)>,
    ) -> Answers {
        let mut instances = Vec::new();
        let mut all = Answers::default();
        for (socket, answer) in answers {
            match answer {
                // Daemons of earlier versions have no number.
                Ok(status) if status.instance != 0 && instances.contains(&status.instance) => {}
                Ok(status) => {
                    instances.push(status.instance);
                    all.daemons.push(Daemon {
                        socket,
                        instance: status.instance,
                        report: PluginReport::read(&status.document),
                        resources: status.resources,
                    });
                }
                Err(StatusError::Busy) => all.busy.push(socket),
                // Nothing listens on the socket, or another program does.
                Err(_) => {}
            }
        }
        all
    }

    /// Merges what the daemons list. For each resource, the daemon that serves it decides; a
    /// resource that waits for another daemon is not listed. A daemon whose devices are not known
    /// hides no other one.
    #[must_use]
    pub fn node_state(&self) -> NodeState {
        let mut silent: Vec<SilentDaemon> =
            self.busy.iter().map(|socket| SilentDaemon::at(socket, SilenceReason::Busy)).collect();
        let mut best = best_of(&self.daemons);
        best.retain(|_, (_, resource)| resource.phase() != Phase::WaitingForOtherDaemon);
        let mut reporting = Vec::new();
        for daemon in &self.daemons {
            let served: BTreeMap<&str, &ResourceStatus> = best
                .iter()
                .filter(|(_, (serving, _))| std::ptr::eq(*serving, daemon))
                .map(|(name, (_, resource))| (*name, *resource))
                .collect();
            if served.is_empty() {
                continue;
            }
            let reason = match &daemon.report {
                Err(version) => SilenceReason::OtherVersion(version.clone()),
                Ok(PluginReport { pending: Some(why), .. }) => SilenceReason::Pending(why.clone()),
                Ok(report) => {
                    reporting.push((daemon.instance, report, served));
                    continue;
                }
            };
            silent.push(SilentDaemon::at(&daemon.socket, reason));
        }
        if reporting.is_empty() {
            let first = silent.into_iter().next();
            return first.map_or(NodeState::NotServed, NodeState::NotReported);
        }
        // As one daemon for all driver models would list its resources.
        reporting.sort_by_key(|(_, report, _)| report.driver_models.first());
        let mut listing = NodeListing::of(&reporting);
        for unlisted in self.unlisted_devices() {
            let served = listing.served.iter_mut();
            for (_, served) in served.filter(|(name, _)| name.as_str() == unlisted.resource) {
                served.incomplete = Some(unlisted.to_string());
            }
        }
        let reports = || self.daemons.iter().filter_map(|daemon| daemon.report.as_ref().ok());
        let is_served = |model: DriverModel| {
            let models = reports().flat_map(|report| &report.driver_models);
            models.into_iter().any(|served| *served == model || *served == DriverModel::Legacy)
        };
        let mut free = vec![DriverModel::Wddm, DriverModel::Mcdm];
        free.retain(|model| !is_served(*model));
        for model in &free {
            if reports().any(|report| report.other_driver_models.contains(model)) {
                let name = format!("the plugin for the driver model {model}");
                silent.push(SilentDaemon { name, reason: SilenceReason::NotRunning });
            }
        }
        listing.silent = silent;
        listing.free_models = free;
        NodeState::Known(Box::new(listing))
    }
}

impl Answers {
    /// The devices that no daemon lists because two daemons have one resource: only one of them
    /// serves it, and the other one lists nothing for it. Nothing is known while a daemon does not
    /// report its devices.
    #[must_use]
    pub fn unlisted_devices(&self) -> Vec<UnlistedDevices> {
        let reports = self.daemons.iter().map(|daemon| match &daemon.report {
            Ok(report) if report.pending.is_none() => Some((daemon, report)),
            _ => None,
        });
        let Some(reports) = reports.collect::<Option<Vec<_>>>().filter(|_| self.busy.is_empty())
        else {
            return Vec::new();
        };
        let best = best_of(&self.daemons);
        let server_of = |name: &str| {
            let (server, resource) = best.get(name)?;
            (resource.phase() != Phase::WaitingForOtherDaemon).then_some(*server)
        };
        let mut listed: BTreeSet<&PnpId> = BTreeSet::new();
        let mut waiting = Vec::new();
        for (daemon, report) in reports {
            for resource in &report.node.resources {
                let devices = resource.devices.iter().filter(|device| device.is_present());
                match server_of(resource.name.as_str()) {
                    Some(server) if std::ptr::eq(server, daemon) => {
                        listed.extend(devices.map(|device| &device.id));
                    }
                    Some(_) => waiting.push((daemon, &resource.name, devices)),
                    // `status` and the log say that nobody serves it.
                    None => {}
                }
            }
        }
        let unlisted = waiting.into_iter().map(|(daemon, name, devices)| UnlistedDevices {
            socket: daemon.socket.clone(),
            resource: name.to_string(),
            devices: devices
                .filter(|device| !listed.contains(&device.id))
                .map(|device| format!("{} ({})", device.id, device.description))
                .collect(),
        });
        unlisted.filter(|unlisted| !unlisted.devices.is_empty()).collect()
    }
}

impl NodeListing {
    /// The listing of one daemon whose resources are registered.
    #[must_use]
    pub fn registered(node: NodeReport, instance: u64) -> NodeListing {
        let registered = ServedResource { instance, not_registered: None, incomplete: None };
        let names = node.resources.iter().map(|resource| resource.name.clone());
        let served = names.map(|name| (name, registered.clone())).collect();
        NodeListing { node, served, ..NodeListing::default() }
    }

    /// What these daemons report of the resources that each of them serves.
    fn of(daemons: &[(u64, &PluginReport, BTreeMap<&str, &ResourceStatus>)]) -> NodeListing {
        let mut listing = NodeListing::default();
        let mut reports = Vec::new();
        for (instance, report, served) in daemons {
            let mut node = report.node.clone();
            node.resources.retain(|resource| served.contains_key(resource.name.as_str()));
            for resource in &node.resources {
                let status = served[resource.name.as_str()];
                let not_registered = (!status.is_ready()).then(|| registration(status));
                let served =
                    ServedResource { instance: *instance, not_registered, incomplete: None };
                listing.served.insert(resource.name.clone(), served);
            }
            listing.rejected_configurations.extend(report.rejected_configuration.clone());
            reports.push(node);
        }
        listing.node = NodeReport::merged(reports);
        listing
    }
}

/// The sockets in `directory` of daemons that advertise one of `models`, of all if it is empty.
pub(crate) fn sockets(directory: &Path, models: &[DriverModel]) -> io::Result<Vec<PathBuf>> {
    let models = if models.is_empty() { DriverModel::ALL } else { models };
    let prefixes: Vec<&str> = models.iter().map(|model| model.socket_prefix()).collect();
    find_sockets(directory, &prefixes)
}

/// Each resource of the daemons by name, with the daemon that serves it. If several daemons have
/// the same resource, the best state counts, since the old daemon of a rolling update still runs
/// when the new one is ready.
#[must_use]
pub fn best_of(daemons: &[Daemon]) -> BTreeMap<&str, (&Daemon, &ResourceStatus)> {
    let mut best: BTreeMap<&str, (&Daemon, &ResourceStatus)> = BTreeMap::new();
    for daemon in daemons {
        for resource in &daemon.resources {
            let known = best.get(resource.name.as_str());
            if known.is_none_or(|(_, known)| rank(known) < rank(resource)) {
                best.insert(&resource.name, (daemon, resource));
            }
        }
    }
    best
}

/// The order by which the best of several daemons is chosen. One that waits for another daemon says
/// nothing about the kubelet.
fn rank(resource: &ResourceStatus) -> (bool, bool, Phase) {
    let phase = resource.phase();
    (resource.is_ready(), phase != Phase::WaitingForOtherDaemon, phase)
}

#[cfg(test)]
mod tests;
