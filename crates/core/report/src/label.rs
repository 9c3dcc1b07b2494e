//! What a label of a node is.

use crate::gpu_model::Model;
use crate::node_report::ReportedHost;

pub struct Label {
    /// The name. With `<product>` in it, each model has the label.
    pub name: &'static str,
    /// One phrase for the documentation, without a period.
    pub meaning: &'static str,
    /// The text of the value; `None` if the node does not have the label.
    pub(crate) value: fn(&Described<'_>) -> Option<String>,
}

/// What labels describe.
#[derive(Clone, Copy)]
pub(crate) struct Described<'a> {
    pub(crate) host: &'a ReportedHost,
    /// The number of devices.
    pub(crate) count: usize,
    /// The model; `None` if there are no devices.
    pub(crate) model: Option<&'a Model>,
}
