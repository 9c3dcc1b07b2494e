//! Which kubelet the double imitates, and the faults that a test can inject into it.

use std::time::Duration;

/// Which kubelet the double imitates. Change the fields of [`KubeletOptions::default()`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct KubeletOptions {
    /// The Kubernetes releases whose behavior is imitated.
    pub release: Release,
    /// What the kubelet removes when it starts.
    pub cleanup: Cleanup,
    /// The operating system of the kubelet.
    pub platform: KubeletPlatform,
    /// The seed of the order in which the kubelet iterates over sets, or `None` for the sorted
    /// order. The order of a real kubelet is random.
    pub shuffled: Option<u64>,
}

impl Default for KubeletOptions {
    fn default() -> Self {
        KubeletOptions {
            release: Release::V1_37,
            cleanup: Cleanup::Sockets,
            platform: KubeletPlatform::Windows,
            shuffled: None,
        }
    }
}

/// The Kubernetes releases whose behavior is imitated, where they differ.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Release {
    /// Kubernetes 1.26: a plugin is identified only by its resource name. The kubelet completes an
    /// attempt to connect to a plugin even if the plugin stopped waiting.
    V1_26,
    /// Kubernetes 1.36: as 1.26, but the attempt to connect ends with the plugin's call.
    V1_36,
    /// Kubernetes 1.37: a plugin is identified by its resource name and socket. The kubelet refuses
    /// a pair that is still connected.
    V1_37,
}

/// What a kubelet removes from its directory when it starts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Cleanup {
    /// The kubelet removes all sockets, including its own (newer releases).
    Sockets,
    /// The kubelet removes every file except its checkpoint (older releases).
    EverythingButCheckpoint,
    /// The kubelet removes only its own socket (1.31 on Windows, because of a bug).
    OwnSocket,
}

/// The operating system of a kubelet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum KubeletPlatform {
    /// Linux, or Windows with the feature gate `WindowsCPUAndMemoryAffinity`: the kubelet allocates
    /// the devices of all containers when it admits their pod.
    Linux,
    /// Windows: the kubelet allocates the devices of a container when it creates the container.
    /// `PreStartContainer` precedes that, so it fails for a plugin that requires this call: no
    /// devices are allocated yet.
    Windows,
}

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
    /// The kubelet connects to the plugin after this delay.
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
