//! The condition of a node that says whether its devices are healthy.

use std::fmt::Write as _;

use super::node_report::NodeReport;

/// The type of the condition.
pub const CONDITION: &str = "DirectXDevicesHealthy";

/// How many devices a message names.
const NAMED: usize = 8;

/// The condition of a node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Condition {
    /// Whether the devices are healthy.
    pub status: ConditionStatus,
    /// The reason, for programs.
    pub reason: &'static str,
    /// The reason, for administrators.
    pub message: String,
}

/// The status of a condition. As text, as the API server spells it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, strum::Display)]
pub enum ConditionStatus {
    /// Every advertised device is healthy.
    True,
    /// At least one device is unhealthy.
    False,
    /// There are none.
    Unknown,
}

/// The condition of a node.
#[must_use]
pub fn condition(report: &NodeReport) -> Condition {
    let mut reasons = Vec::new();
    for device in report.devices() {
        if let Some(unhealthy) = &device.unhealthy {
            let reason = &unhealthy.text;
            reasons.push(format!("{} ({}): {reason}", device.id, device.description));
        }
    }
    let count = report.devices().count();
    if count == 0 {
        let message = "no device is advertised".to_owned();
        return Condition { status: ConditionStatus::Unknown, reason: "NoDevices", message };
    }
    if reasons.is_empty() {
        let message = format!("{count} of {count} devices are healthy");
        return Condition { status: ConditionStatus::True, reason: "AllHealthy", message };
    }
    let mut message = format!("{} of {count} devices are unhealthy: ", reasons.len());
    message.push_str(&reasons[..reasons.len().min(NAMED)].join("; "));
    if reasons.len() > NAMED {
        // Writing to a String cannot fail.
        let _ = write!(message, "; and {} more", reasons.len() - NAMED);
    }
    Condition { status: ConditionStatus::False, reason: "UnhealthyDevices", message }
}
