//! The files of `directx-visible` that containers get under `visibility: launcher` and `required`.
//!
//! Adds the launcher and its filters to a container's mounts, or returns why the container does not
//! get them. These mounts are equal for all resources, because the kubelet merges the answers for
//! all resources of a container.

use host::fold_case;
use host::{FileName, HostFacts, LauncherFiles, SystemRoot, Wow64};

use crate::plan::mounts::{FileDecision, MountCandidate, MountOrigin, SYSTEM32, SYSWOW64};
use crate::{MountOutcome, MountPlan};

/// The files of the launcher. The program and its filter are required; the filter for 32-bit
/// programs may be missing.
pub const LAUNCHER_FILES: [&str; 3] =
    ["directx-visible.exe", "directx-visible-filter.dll", "directx-visible-filter32.dll"];

/// The folder of the host with the launcher's folders. Files with another content get another
/// folder, because a container keeps the paths with which it was created.
#[must_use]
pub fn launcher_root(system_root: &SystemRoot) -> String {
    let drive = system_root.as_str().split('\\').next().unwrap_or_default();
    format!(r"{drive}\ProgramData\directx-device-plugin\visible")
}

/// Why a container does not get `directx-visible`.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("directx-visible is not mounted: {file} {why}")]
pub struct LauncherProblem {
    /// The file that cannot be mounted, or that is in the way.
    pub file: String,
    /// What is wrong with the file.
    pub why: &'static str,
}

/// Adds the launcher's files to `plan`: the program and its filter with all others that can be
/// mounted, or none.
pub(crate) fn add(
    plan: &mut MountPlan,
    excluded: &[&FileName],
    omit_wow64: bool,
    host: &HostFacts,
    exists: &dyn Fn(&str) -> bool,
) -> Result<(), LauncherProblem> {
    let [program, filter, filter32] = LAUNCHER_FILES;
    let folder = match &host.launcher {
        LauncherFiles::Folder(folder) => folder.clone(),
        LauncherFiles::Simulated => format!(r"{}\simulated", launcher_root(&host.system_root)),
        LauncherFiles::NotProvided => {
            let why = "is not provided on this node; `status` reports the reason";
            return Err(LauncherProblem { file: program.to_owned(), why });
        }
    };
    let files = [(program, SYSTEM32), (filter, SYSTEM32), (filter32, SYSWOW64)];
    let [program, filter, filter32] = files.map(|(name, to)| {
        let [host_path, container_path] = [&folder, to].map(|folder| format!("{folder}\\{name}"));
        let file = MountCandidate { host_path, container_path, origin: MountOrigin::Launcher };
        match problem(&file, name, plan, excluded, host, exists) {
            None => Ok(FileDecision { file, outcome: MountOutcome::Mounted }),
            Some((file, why)) => Err(LauncherProblem { file, why }),
        }
    });
    let mut added = vec![program?, filter?];
    // If this filter is missing, 32-bit programs see all devices, and other programs do not.
    added.extend(filter32.ok().filter(|_| host.wow64 == Wow64::Present && !omit_wow64));
    plan.files.extend(added);
    Ok(())
}

/// Which file keeps `file` from being mounted, and why.
fn problem(
    file: &MountCandidate,
    name: &str,
    plan: &MountPlan,
    excluded: &[&FileName],
    host: &HostFacts,
    exists: &dyn Fn(&str) -> bool,
) -> Option<(String, &'static str)> {
    if excluded.iter().any(|excluded| excluded.folded() == fold_case(name)) {
        return Some((name.to_owned(), "is in excludeMounts"));
    }
    if plan.mounted().any(|mounted| mounted.destination() == file.destination()) {
        return Some((file.container_path.clone(), "is the destination of another file"));
    }
    if host.launcher == LauncherFiles::Simulated {
        return None;
    }
    // A file in System32 of the host may also exist in System32 of the container.
    let on_host = file.container_path.replacen(r"C:\Windows", host.system_root.as_str(), 1);
    if exists(&on_host) {
        return Some((on_host, "exists on the host"));
    }
    (!exists(&file.host_path)).then(|| (file.host_path.clone(), "does not exist"))
}
