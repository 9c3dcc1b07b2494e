//! The state folder of this host's containerd.

use std::path::PathBuf;

use windows_report::containerd_state::state_folder;
use windows_report::service_command::ServiceCommand;

use crate::services::service_command;

/// The folders in which containerd may keep its state: the folder that its service or its
/// configuration names, or else containerd's default; and RKE2's, which starts containerd itself.
pub(crate) fn folders() -> Vec<PathBuf> {
    let service = service_command("containerd").unwrap_or_else(|error| {
        tracing::debug!(%error, "cannot read the command line of containerd's service");
        None
    });
    folders_of(service.as_ref())
}

fn folders_of(service: Option<&ServiceCommand>) -> Vec<PathBuf> {
    let below = |variable: &str, default: &str, folder: &str| {
        let parent = std::env::var(variable).unwrap_or_else(|_| default.to_owned());
        format!(r"{parent}\{folder}")
    };
    let config = below("ProgramFiles", r"C:\Program Files", r"containerd\config.toml");
    let read = |path: &str| std::fs::read_to_string(path).ok();
    let named = service.and_then(|service| state_folder(service, &config, read));
    let default = || below("ProgramData", r"C:\ProgramData", r"containerd\state");
    // `applyContainerdStateAndAddress` of k3s, for Windows, with RKE2's data directory.
    let rke2 = below("SystemDrive", "C:", r"var\lib\rancher\rke2\agent\containerd\state");
    [named.unwrap_or_else(default), rke2].map(PathBuf::from).to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folder_of_the_service_replaces_the_default() {
        let config = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(config.path(), "state = 'D:\\containerd'\n[grpc]\n").unwrap();
        let line = format!("containerd.exe --config \"{}\" --run-service", config.path().display());
        let service = ServiceCommand::parse(&line, |_| None);
        let [named, rke2] = <[PathBuf; 2]>::try_from(folders_of(Some(&service))).unwrap();
        assert_eq!(named, PathBuf::from(r"D:\containerd"));
        let end = |path: &PathBuf, end: &str| path.to_str().unwrap().ends_with(end);
        assert!(end(&rke2, r":\var\lib\rancher\rke2\agent\containerd\state"), "{rke2:?}");
        let [default, other] = <[PathBuf; 2]>::try_from(folders_of(None)).unwrap();
        assert!(end(&default, r"\ProgramData\containerd\state"), "{default:?}");
        assert_eq!(other, rke2);
    }
}
