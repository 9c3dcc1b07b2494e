//! Labels, conditions and Events of a node object for the node's devices.
//!
//! Turns what a plugin reports of its node into labels, conditions, and Events for what has
//! changed. It does not know how a cluster is reached.

mod condition;
mod device_events;
mod device_resources;
mod feature_discovery_labels;
mod gpu_model;
mod label;
mod label_value;
mod labels;
mod message;
mod node_report;

pub use condition::{
    Condition, ConditionKind, ConditionStatus, Progress, devices_healthy, devices_ready,
};
pub use device_events::{DeviceEvent, EventReason, device_events};
pub use device_resources::{DeviceResources, MovedDevice};
pub use feature_discovery_labels::FEATURE_DISCOVERY_LABELS;
pub use label::Label;
pub use label_value::{Labels, label_value};
pub use labels::{LABELS, labels};
pub use message::Message;
pub use node_report::{
    NodeReport, ReportedDevice, ReportedHost, ReportedResource, Unhealthy, UnhealthyKind,
};
