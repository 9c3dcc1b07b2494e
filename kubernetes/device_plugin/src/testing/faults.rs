//! Faults that a test can inject into the kubelet.

use std::time::Duration;

/// The faults of a kubelet. The default is no faults.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Faults {
    /// The fault when a plugin registers.
    pub register: RegisterFault,
    /// The fault of the `ListAndWatch` stream.
    pub stream: StreamFault,
}

/// A fault when a plugin registers.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum RegisterFault {
    /// No fault.
    #[default]
    None,
    /// The kubelet refuses the registration, with this message.
    Refuse(String),
    /// The kubelet does nothing and never answers.
    Hang,
    /// The kubelet completes the registration and answers after this delay.
    AnswerLate(Duration),
    /// The kubelet starts to handle the registration after this delay.
    ActLate(Duration),
    /// The kubelet completes the registration and answers with this error.
    RefuseAfterDial(String),
}

/// A fault of the `ListAndWatch` stream of a registered plugin.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum StreamFault {
    /// No fault.
    #[default]
    None,
    /// The kubelet never calls `ListAndWatch`.
    NeverOpen,
    /// The kubelet calls `ListAndWatch` and reads nothing while this fault is set.
    NeverRead,
    /// The kubelet drops the connection this long after it received a list.
    DropAfter(Duration),
}
