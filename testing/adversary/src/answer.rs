//! What no answer to `Allocate` may contain, whatever an inventory or a driver names.

use anyhow::{Context, Result, ensure};
use device_plugin::v1beta1::ContainerAllocateResponse;

use crate::log_reader::is_unprintable;

/// Where every driver folder of the node is.
pub(crate) const REPOSITORY: &str = r"C:\Windows\System32\DriverStore\FileRepository";

/// Where every file of a container is mounted.
const DESTINATIONS: [&str; 2] = [r"C:\Windows\System32\", r"C:\Windows\SysWOW64\"];

/// Some names that belong to Windows.
const WINDOWS_OWNED: [&str; 5] = ["kernel32.dll", "ntdll.dll", "lsass.exe", "drivers", "config"];

/// Checks the paths and the variables of a container.
///
/// # Errors
/// One of them is not allowed.
pub(crate) fn check(container: &ContainerAllocateResponse) -> Result<()> {
    for mount in &container.mounts {
        let source = &mount.host_path;
        check_source(source).with_context(|| format!("an answer has the source {source:?}"))?;
        let destination = &mount.container_path;
        check_destination(destination)
            .with_context(|| format!("an answer has the destination {destination:?}"))?;
        ensure!(mount.read_only, "the mount of {source:?} is writable");
    }
    let variables = container.envs.iter().flat_map(|(name, value)| [name, value]);
    for text in variables.chain(container.devices.iter().map(|device| &device.host_path)) {
        check_text(text).with_context(|| format!("an answer has the text {text:?}"))?;
    }
    Ok(())
}

/// A file in a folder of the repository, in plain words.
fn check_source(path: &str) -> Result<()> {
    let rest = path.strip_prefix(REPOSITORY).and_then(|rest| rest.strip_prefix('\\'));
    let names: Vec<&str> = rest.context("not in the driver store")?.split('\\').collect();
    ensure!(names.len() >= 2, "not in a driver's folder");
    ensure!(names.iter().all(|name| is_plain(name)), "not a plain path");
    Ok(())
}

/// A file directly in a system folder, with a name that Windows does not use.
fn check_destination(path: &str) -> Result<()> {
    let name = DESTINATIONS.iter().find_map(|folder| path.strip_prefix(folder));
    let name = name.context("not in a system folder")?;
    ensure!(is_plain(name) && !name.contains('\\'), "not a plain name");
    ensure!(!WINDOWS_OWNED.contains(&name.to_lowercase().as_str()), "a name of Windows");
    Ok(())
}

fn check_text(text: &str) -> Result<()> {
    ensure!(!text.chars().any(is_unprintable), "control characters");
    Ok(())
}

/// Whether Windows accepts this as a file name. It accepts bidi controls, and a path that has them
/// must not be changed.
fn is_plain(name: &str) -> bool {
    let is_allowed = |c: char| !c.is_control() && !"/:*?\"<>|".contains(c);
    !name.is_empty() && name.chars().all(is_allowed) && !name.chars().all(|c| c == '.')
}

#[cfg(test)]
mod tests {
    use super::*;
    use device_plugin::v1beta1::Mount;

    fn mounted(source: &str, destination: &str) -> Result<()> {
        check(&ContainerAllocateResponse {
            mounts: vec![Mount {
                host_path: source.to_owned(),
                container_path: destination.to_owned(),
                read_only: true,
            }],
            ..ContainerAllocateResponse::default()
        })
    }

    #[test]
    fn a_driver_file_is_mounted_into_a_system_folder() {
        let good = format!(r"{REPOSITORY}\u.inf_amd64_1\B026261\amf.dll");
        for destination in [r"C:\Windows\System32\amf.dll", r"C:\Windows\SysWOW64\amf.dll"] {
            mounted(&good, destination).unwrap();
        }
        for destination in ["kernel32.dll", r"drivers\a.sys", "..", "a:b", "a\u{85}b", ""] {
            let destination = format!(r"C:\Windows\System32\{destination}");
            assert!(mounted(&good, &destination).is_err(), "{destination}");
        }
        for source in [r"..\..\SAM", "a.dll", r"u.inf\..\a.dll", r"u.inf\a:b", "u.inf\\\u{1b}.dll"]
        {
            let source = format!(r"{REPOSITORY}\{source}");
            assert!(mounted(&source, r"C:\Windows\System32\a.dll").is_err(), "{source}");
        }
        assert!(mounted(r"C:\secrets\a.dll", r"C:\Windows\System32\a.dll").is_err());
    }

    #[test]
    fn variables_are_printable() {
        let with = |value: &str| ContainerAllocateResponse {
            envs: [("DIRECTX".to_owned(), value.to_owned())].into(),
            ..ContainerAllocateResponse::default()
        };
        check(&with("Tesla T4")).unwrap();
        assert!(check(&with("Tesla\nT4")).is_err());
    }
}
