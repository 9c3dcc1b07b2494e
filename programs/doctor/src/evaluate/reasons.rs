//! Why something is not checked.

/// Why something that only a live machine can answer is not checked.
pub(super) const NOT_IN_INVENTORY: &str = "not available from an inventory; run doctor on the node";
/// Why devices are not checked.
pub(super) const NO_ADAPTERS: &str = "the adapters could not be read";
