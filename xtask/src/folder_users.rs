//! Who uses a folder as a mount point or as a root directory, from `/proc`.
//!
//! Mounts are looked for in the mount namespace of every process, not only of this
//! one: Wine's root is entered in a namespace of its own. On systems without `/proc`
//! nothing of this project mounts anything, and only Windows is asked which processes run.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::process;

/// Descriptions of the processes that have something mounted in `folder`, or whose root
/// directory lies in it. Processes that this user may not look at are left out.
pub(crate) fn of(folder: &Path) -> Vec<String> {
    // The kernel shows paths without symbolic links.
    let folder = fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned());
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let ids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let mut users: Vec<String> = ids.filter_map(|id| user(id, &folder)).collect();
    users.sort();
    users
}

/// Whether a process with this id runs.
pub(crate) fn is_running(process: u32) -> bool {
    if cfg!(windows) { is_listed(process) } else { proc_folder(process).exists() }
}

/// Whether Windows lists a process with this id, also if that cannot be found out.
fn is_listed(process: u32) -> bool {
    let mut tasklist = Command::new("tasklist");
    tasklist.args(["/NH", "/FO", "CSV", "/FI"]).arg(format!("PID eq {process}"));
    // Each line is `"program","process id",…`; without a process it is a message.
    process::stdout(&mut tasklist).is_none_or(|text| text.contains(&format!("\"{process}\"")))
}

fn proc_folder(process: u32) -> PathBuf {
    Path::new("/proc").join(process.to_string())
}

fn user(id: u32, folder: &Path) -> Option<String> {
    let process = proc_folder(id);
    if fs::read_link(process.join("root")).is_ok_and(|root| root.starts_with(folder)) {
        return Some(format!("process {id} has its root directory in it"));
    }
    let mounts = fs::read_to_string(process.join("mountinfo")).unwrap_or_default();
    let mount = mount_points(&mounts).find(|point| point.starts_with(folder))?;
    Some(format!("process {id} sees {} mounted in it", mount.display()))
}

/// The mount points in a `mountinfo` file (`proc_pid_mountinfo(5)`): the fifth field, in
/// which space, tab, newline and backslash are written as octal numbers.
fn mount_points(text: &str) -> impl Iterator<Item = PathBuf> {
    text.lines().filter_map(|line| {
        let point = line.split(' ').nth(4)?;
        let escapes = [(r"\040", " "), (r"\011", "\t"), (r"\012", "\n"), (r"\134", r"\")];
        let plain = escapes.iter().fold(point.to_owned(), |path, (code, c)| path.replace(code, c));
        Some(PathBuf::from(plain))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mount_points_are_read() {
        let text = "22 1 254:0 / / rw - ext4 /dev/vda rw\n\
                    40 22 0:5 / /a\\040b/dev rw,nosuid shared:2 - devtmpfs udev rw\n";
        let points: Vec<PathBuf> = mount_points(text).collect();
        assert_eq!(points, [Path::new("/"), Path::new("/a b/dev")]);
    }

    #[test]
    fn an_unused_folder_has_no_users() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(of(folder.path()), Vec::<String>::new());
    }

    #[cfg(any(target_os = "linux", windows))]
    #[test]
    fn this_process_runs() {
        assert!(is_running(std::process::id()) && !is_running(999_999_999));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_folder_that_holds_a_mount_point_has_users() {
        assert!(of(Path::new("/proc")).iter().any(|user| user.contains("/proc mounted in it")));
    }
}
