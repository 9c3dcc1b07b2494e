//! The daemons of a node that answered a status call, and what they report together.
//!
//! Several daemons run on a node with a `DaemonSet` for each driver model, and during a rolling
//! update.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

use device_plugin::UnixSockets;
use device_plugin::status::{
    Phase, ResourceStatus, StatusError, StatusReport, find_sockets, query_all,
};
use devices::report::NodeReport;
use devices::{DriverModel, ResourceName};

use crate::plugin_report::{PluginReport, PluginVersion};
use crate::status::registration;

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
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum NodeState {
    /// No daemon serves a resource. One may be starting, or wait for another one to end.
    NotServed,
    /// The daemon at this socket does not answer in time.
    Busy(PathBuf),
    /// A daemon of another version serves, whose report this program cannot read.
    OtherVersion(PluginVersion),
    /// The devices are not known, for this reason.
    Pending(String),
    /// The resources and their devices.
    Known(Box<NodeListing>),
}

/// What the daemons of a node list together.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct NodeListing {
    /// The resources and their devices.
    pub node: NodeReport,
    /// How each of these resources is served.
    pub served: BTreeMap<ResourceName, ServedResource>,
    /// Why daemons do not use their newest configuration.
    pub rejected_configurations: BTreeSet<String>,
}

/// How a resource is served.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ServedResource {
    /// The number of the daemon that serves it.
    pub instance: u64,
    /// Why the kubelet has not received its devices, if it has not.
    pub not_registered: Option<String>,
}

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

    /// What the daemons list together: each resource as the daemon lists it that serves it. A
    /// resource that waits for another daemon is not listed.
    #[must_use]
    pub fn node_state(&self) -> NodeState {
        if let Some(socket) = self.busy.first() {
            return NodeState::Busy(socket.clone());
        }
        let mut best = best_of(&self.daemons);
        best.retain(|_, (_, resource)| resource.phase() != Phase::WaitingForOtherDaemon);
        let mut listing: Option<NodeListing> = None;
        for daemon in &self.daemons {
            let served: BTreeMap<&str, &ResourceStatus> = best
                .iter()
                .filter(|(_, (serving, _))| std::ptr::eq(*serving, daemon))
                .map(|(name, (_, resource))| (*name, *resource))
                .collect();
            if served.is_empty() {
                continue;
            }
            let report = match &daemon.report {
                Ok(report) => report,
                Err(version) => return NodeState::OtherVersion(version.clone()),
            };
            if let Some(pending) = &report.pending {
                return NodeState::Pending(pending.clone());
            }
            listing.get_or_insert_default().add(daemon.instance, report, &served);
        }
        listing.map_or(NodeState::NotServed, |listing| NodeState::Known(Box::new(listing)))
    }
}

impl NodeListing {
    /// The listing of one daemon whose resources are registered.
    #[must_use]
    pub fn registered(node: NodeReport, instance: u64) -> NodeListing {
        let registered = ServedResource { instance, not_registered: None };
        let names = node.resources.iter().map(|resource| resource.name.clone());
        let served = names.map(|name| (name, registered.clone())).collect();
        NodeListing { node, served, ..NodeListing::default() }
    }

    /// Adds what another daemon on the same host reports of the resources that it serves.
    fn add(
        &mut self,
        instance: u64,
        report: &PluginReport,
        served: &BTreeMap<&str, &ResourceStatus>,
    ) {
        self.node.host.clone_from(&report.node.host);
        for resource in &report.node.resources {
            let Some(status) = served.get(resource.name.as_str()) else { continue };
            let not_registered = (!status.is_ready()).then(|| registration(status));
            self.served.insert(resource.name.clone(), ServedResource { instance, not_registered });
            self.node.resources.push(resource.clone());
        }
        for cordon in &report.node.unmatched_cordons {
            if !self.node.unmatched_cordons.contains(cordon) {
                self.node.unmatched_cordons.push(cordon.clone());
            }
        }
        self.rejected_configurations.extend(report.rejected_configuration.clone());
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
