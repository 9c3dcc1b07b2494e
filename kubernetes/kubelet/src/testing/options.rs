//! Which kubelet the double imitates.

/// Which kubelet the double imitates.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Options {
    /// The Kubernetes releases whose behavior is imitated.
    pub release: Release,
    /// What the kubelet removes when it starts.
    pub cleanup: Cleanup,
    /// The operating system of the node.
    pub platform: Platform,
    /// The order in which the kubelet iterates over sets.
    pub iteration: Iteration,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            release: Release::V1_37,
            cleanup: Cleanup::default(),
            platform: Platform::default(),
            iteration: Iteration::default(),
        }
    }
}

/// The Kubernetes releases whose behavior is imitated, where they differ.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
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
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Cleanup {
    /// All sockets, including its own (newer releases).
    #[default]
    Sockets,
    /// Every file except its checkpoint (older releases).
    EverythingButCheckpoint,
    /// Only its own socket (1.31 on Windows, because of a bug).
    OwnSocket,
}

/// The operating system of the node.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Platform {
    /// The kubelet ignores CDI devices.
    #[default]
    Windows,
    /// The kubelet passes CDI devices to the runtime.
    Linux,
}

/// The order in which the kubelet iterates over sets. Every order is valid.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Iteration {
    /// Sorted, the same every time.
    #[default]
    Sorted,
    /// A different order each time, generated from a seed.
    Shuffled(u64),
}
