//! Where the kubelet keeps its socket and those of device plugins.

use std::path::PathBuf;

/// The name of the kubelet's own socket in its device plugin directory.
pub const KUBELET_SOCKET: &str = "kubelet.sock";

/// The device plugin directory of every kubelet. Its device manager ignores `--root-dir`
/// (`NewManagerImpl`, pkg/kubelet/cm/devicemanager); on Windows the directory is on the system
/// drive.
#[must_use]
pub fn default_device_plugin_dir() -> PathBuf {
    if cfg!(windows) {
        let mut path = std::env::var_os("SystemDrive").unwrap_or_else(|| "C:".into());
        path.push(r"\var\lib\kubelet\device-plugins");
        PathBuf::from(path)
    } else {
        PathBuf::from("/var/lib/kubelet/device-plugins")
    }
}
