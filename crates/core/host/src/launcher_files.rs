//! Where a host has the files of `directx-visible`.

/// The files of `directx-visible` on a node.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum LauncherFiles {
    /// No container is created, as with an inventory that is only read: the files count as
    /// provided, in a folder that does not exist.
    #[default]
    Simulated,
    /// They are not provided, so no container can get them.
    NotProvided,
    /// They are in this folder of this machine.
    Folder(String),
}
