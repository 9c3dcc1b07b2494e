//! The conditions of a node: whether its devices are healthy, and whether pods can use them.

use devices::ResourceName;

use crate::message::Message;
use crate::node_report::{NodeReport, ReportedDevice, UnhealthyKind};

/// How many devices or resources a message names.
const NAMED: usize = 8;

#[derive(Clone, Debug)]
pub struct Condition {
    pub kind: ConditionKind,
    pub status: ConditionStatus,
    /// For programs.
    pub reason: &'static str,
    /// For administrators.
    pub message: Message,
}

/// The conditions of a node. As text, their types.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, strum::IntoStaticStr, strum::VariantArray,
)]
pub enum ConditionKind {
    /// Every advertised device is healthy, or out of service on purpose.
    #[strum(serialize = "DirectXDevicesHealthy")]
    Healthy,
    /// Pods can use the devices.
    #[strum(serialize = "DirectXDevicesReady")]
    Ready,
}

/// The status of a condition. As text, as the API server spells it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, strum::Display)]
pub enum ConditionStatus {
    True,
    False,
    Unknown,
}

/// How far a resource is on its way to pods.
#[derive(Clone, Debug)]
pub enum Progress {
    /// The kubelet has not received its devices, for this reason.
    NotRegistered(Message),
    /// The kubelet has received only some of its devices, for this reason.
    Incomplete(String),
    /// The node object does not report devices of it that can be allocated.
    NotAllocatable,
    /// The node object reports them.
    Allocatable,
}

impl ConditionKind {
    /// The type of the condition.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// The condition that this is not known.
    #[must_use]
    pub fn unknown(self, reason: &'static str, message: Message) -> Condition {
        Condition { kind: self, status: ConditionStatus::Unknown, reason, message }
    }

    fn is(self, reason: &'static str, message: Message) -> Condition {
        Condition { kind: self, status: ConditionStatus::True, reason, message }
    }

    /// The condition that this is not so.
    #[must_use]
    pub fn is_not(self, reason: &'static str, message: Message) -> Condition {
        Condition { kind: self, status: ConditionStatus::False, reason, message }
    }
}

impl Condition {
    /// Whether the other condition says the same. The words of other programs do not count.
    #[must_use]
    pub fn says_same_as(&self, other: &Condition) -> bool {
        (self.kind, self.status, self.reason, self.message.own())
            == (other.kind, other.status, other.reason, other.message.own())
    }

    /// The condition of this node, which says so if its devices are made up.
    fn of(mut self, report: &NodeReport) -> Condition {
        if report.host.demonstration {
            self.message = self.message.after("demonstration: ");
        }
        self
    }
}

/// The condition [`ConditionKind::Healthy`] of a node.
#[must_use]
pub fn devices_healthy(report: &NodeReport) -> Condition {
    health(report).of(report)
}

fn health(report: &NodeReport) -> Condition {
    let healthy = ConditionKind::Healthy;
    let count = report.devices().count();
    if count == 0 {
        return healthy.unknown("NoDevices", "no device is advertised".to_owned().into());
    }
    let unhealthy: Vec<Message> = report.devices().filter_map(reason_of).collect();
    if unhealthy.is_empty() {
        return healthy.is("AllHealthy", format!("{count} of {count} devices are healthy").into());
    }
    let named = first(&unhealthy);
    if report.devices().all(|device| device.is_healthy() || device.is_cordoned()) {
        let cordoned = unhealthy.len();
        let message = format!("{cordoned} of {count} devices are out of service: {named}");
        return healthy.is("CordonedDevices", message.into());
    }
    let message = format!("{} of {count} devices are unhealthy: {named}", unhealthy.len());
    healthy.is_not("UnhealthyDevices", message.into())
}

/// The condition [`ConditionKind::Ready`] of a node: at least one resource has a healthy device,
/// and pods can use every such resource. `progress` says how far a resource is.
#[must_use]
pub fn devices_ready(
    report: &NodeReport,
    progress: impl Fn(&ResourceName) -> Progress,
) -> Condition {
    readiness(report, progress).of(report)
}

fn readiness(report: &NodeReport, progress: impl Fn(&ResourceName) -> Progress) -> Condition {
    let ready = ConditionKind::Ready;
    let mut usable: Vec<Message> = Vec::new();
    let mut missing: Vec<Message> = Vec::new();
    let mut is_registered = true;
    for resource in &report.resources {
        if !resource.devices.iter().any(ReportedDevice::is_healthy) {
            continue;
        }
        let name = &resource.name;
        usable.push(name.to_string().into());
        match progress(name) {
            Progress::Allocatable => {}
            Progress::NotAllocatable => {
                missing.push(format!("{name} is not allocatable yet").into());
            }
            Progress::NotRegistered(why) => {
                is_registered = false;
                missing.push(why.after(&format!("{name} is not registered with the kubelet: ")));
            }
            Progress::Incomplete(why) => {
                is_registered = false;
                missing.push(
                    format!("{name} is registered without some of its devices: {why}").into(),
                );
            }
        }
    }
    if usable.is_empty() {
        let message = match report.devices().count() {
            0 => "no device is advertised",
            _ => "no advertised device is healthy",
        };
        return ready.is_not("NoHealthyDevices", message.to_owned().into());
    }
    if missing.is_empty() {
        return ready.is("DevicesReady", format!("pods can use {}", first(&usable)).into());
    }
    let reason = if is_registered { "NotAllocatable" } else { "NotRegistered" };
    ready.is_not(reason, first(&missing))
}

fn reason_of(device: &ReportedDevice) -> Option<Message> {
    let reason = &device.unhealthy.as_ref()?.text;
    Some(format!("{} ({}): {reason}", device.id, device.description).into())
}

impl ReportedDevice {
    fn is_cordoned(&self) -> bool {
        self.unhealthy.as_ref().is_some_and(|reason| reason.kind == UnhealthyKind::Cordoned)
    }
}

/// The first of these texts, and how many more there are.
fn first(messages: &[Message]) -> Message {
    let mut named = messages[..messages.len().min(NAMED)].to_vec();
    match messages.len().saturating_sub(NAMED) {
        0 => {}
        more => named.push(format!("and {more} more").into()),
    }
    Message::joined(&named)
}
