//! The steps of `verify`.

use clap::ValueEnum;
use strum::{IntoStaticStr, VariantArray};

/// What `verify` tries, in this order.
#[derive(ValueEnum, IntoStaticStr, VariantArray, Clone, Copy, PartialEq, Eq, Debug)]
#[strum(serialize_all = "kebab-case")]
pub(crate) enum Step {
    /// every check of `doctor`
    Doctor,
    /// create, connect, watch and delete a socket in the device plugin directory
    Socket,
    /// read the adapters several times
    Discovery,
    /// wait for a device event
    Events,
    /// register a temporary resource with the kubelet
    Kubelet,
    /// start containers with one device and with several
    Container,
}
