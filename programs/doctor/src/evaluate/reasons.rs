//! Why something is not checked.

/// Why the kubelet's directory, which no inventory contains, is not checked.
pub(super) const NEVER_IN_INVENTORY: &str =
    "not available from an inventory; run doctor on the node";
/// Why the software of a node is not checked.
pub(super) const NOT_IN_INVENTORY: &str =
    "the inventory does not contain it; run doctor on the node, or record the node again";
/// Why devices are not checked.
pub(super) const NO_ADAPTERS: &str = "the adapters could not be read";
