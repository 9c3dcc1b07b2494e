//! What happens to pods that use a driver which was replaced.

/// What `directx-feature-discovery` does in the cluster while pods use a driver which was replaced,
/// from the weakest to the strongest.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub enum OnDriverChange {
    /// It only reports them.
    #[default]
    Ignore,
    /// It annotates the pods.
    Annotate,
    /// It taints the node until the pods are gone.
    Taint,
}
