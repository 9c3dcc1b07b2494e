//! The CDI specification of the device of a Linux host
//! (<https://github.com/cncf-tags/container-device-interface>, version 0.3.0).

use std::io;
use std::path::Path;

use devices::{DXG_CDI_DEVICE, DXG_DEVICE, DXG_FOLDERS, DXG_LIBRARY_PATH, DeviceSet, Platform};
use serde_json::{Value, json};

use crate::DaemonError;
use crate::temporary_file::{private_file, temporary_file};

/// The folder in which container runtimes look for specifications that programs write.
const FOLDER: &str = "/var/run/cdi";

/// Writes the specification if containers with devices of `set` get its device. It must exist
/// before the containers of earlier pods start again, and may be removed at any time.
pub(crate) fn provide_for(set: &DeviceSet) -> Result<(), DaemonError> {
    if is_used(set) { provide(Path::new(FOLDER)) } else { Ok(()) }
}

fn is_used(set: &DeviceSet) -> bool {
    let mut devices = set.entries();
    set.host.platform == Platform::LinuxDxg
        && set.host.is_this_machine
        && devices.any(|entry| entry.policy.container.cdi_devices)
}

/// Writes the specification to a folder, unless the folder has it. It mounts whole folders, so it
/// stays valid when a driver is updated.
fn provide(folder: &Path) -> Result<(), DaemonError> {
    let file = folder.join("directx-dxg.json");
    let text = format!("{:#}\n", specification());
    if std::fs::read(&file).is_ok_and(|written| written == text.as_bytes()) {
        return Ok(());
    }
    // Ignored: the write below fails, too.
    let _ = std::fs::create_dir_all(folder);
    write(&file, &text).map_err(|source| DaemonError::CdiFile { path: file, source })
}

/// Writes a file as a whole: a container runtime must not read a part of it.
fn write(file: &Path, text: &str) -> io::Result<()> {
    let new = temporary_file(file.parent().unwrap_or(file), text.as_bytes(), private_file)?;
    // Other users may read the file, as they may read the specifications of other programs.
    #[cfg(unix)]
    new.as_file().set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o644))?;
    new.persist(file)?;
    Ok(())
}

fn specification() -> Value {
    let (kind, name) = DXG_CDI_DEVICE.split_once('=').unwrap_or_default();
    let (variable, value) = DXG_LIBRARY_PATH;
    let edits = json!({
        "deviceNodes": [{"path": DXG_DEVICE, "permissions": "rw"}],
        "mounts": DXG_FOLDERS.map(read_only_mount),
        "env": [format!("{variable}={value}")],
    });
    json!({
        "cdiVersion": "0.3.0",
        "kind": kind,
        "devices": [{"name": name, "containerEdits": edits}],
    })
}

fn read_only_mount(folder: &str) -> Value {
    let options = ["ro", "nosuid", "nodev", "rbind"];
    json!({"hostPath": folder, "containerPath": folder, "options": options})
}

#[cfg(test)]
mod tests {
    use config::Flags;
    use devices::{Catalog, Moment};

    use super::*;
    use crate::configuration;

    #[test]
    fn only_containers_of_this_machine_with_the_setting_need_the_specification() {
        let inventories =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../fixtures/inventories");
        let folder = tempfile::tempdir().unwrap();
        let set = |host: &str, is_this_machine: bool, config: &str| {
            let file = folder.path().join("config.yaml");
            std::fs::write(&file, config).unwrap();
            let flags = Flags { config: Some(file), ..Flags::default() };
            let catalog = Catalog::new(configuration::load(&flags).unwrap().policy);
            let mut snapshot = config::inventory::read(&inventories.join(host)).unwrap();
            snapshot.host.is_this_machine = is_this_machine;
            DeviceSet::next(None, catalog.offer(&snapshot), Moment::default())
        };
        let linux = "made-up-wsl2-laptop.yaml";
        let windows = "aws-t4-two.yaml";
        let cdi = "cdiDevices: true";
        assert!(is_used(&set(linux, true, cdi)));
        assert!(!is_used(&set(linux, true, "")));
        assert!(!is_used(&set(linux, false, cdi)));
        assert!(!is_used(&set(windows, true, cdi)));
    }

    #[test]
    fn the_specification_is_written_again_if_it_was_changed() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("cdi/directx-dxg.json");
        let folder = folder.path().join("cdi");
        provide(&folder).unwrap();
        let written = std::fs::read_to_string(&file).unwrap();
        insta::assert_snapshot!(written);
        for damage in ["", "{}"] {
            std::fs::write(&file, damage).unwrap();
            provide(&folder).unwrap();
            assert_eq!(std::fs::read_to_string(&file).unwrap(), written);
        }
        #[cfg(unix)]
        {
            let mode = std::os::unix::fs::PermissionsExt::mode;
            assert_eq!(mode(&file.metadata().unwrap().permissions()) & 0o777, 0o644);
        }
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1);
    }

    #[test]
    fn the_temporary_file_of_another_daemon_is_not_used() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("directx-dxg.json.new")).unwrap();
        provide(folder.path()).unwrap();
    }

    #[test]
    fn a_folder_that_cannot_be_written_is_an_error_that_names_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        std::fs::write(&file, "").unwrap();
        let errors = [0, 1].map(|_| format!("{:?}", provide(&file).unwrap_err()));
        assert!(errors[0].contains("directx-dxg.json"), "{errors:?}");
        // The log has it once.
        assert_eq!(errors[0], errors[1]);
    }
}
