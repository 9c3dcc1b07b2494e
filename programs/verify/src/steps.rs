//! One module for each step: what it does to the node, and what it finds.

pub(crate) mod container;
pub(crate) mod discovery;
pub(crate) mod doctor;
pub(crate) mod events;
pub(crate) mod kubelet;
pub(crate) mod socket;
