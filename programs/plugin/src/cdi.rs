//! The CDI specification of the device of a Linux host
//! (<https://github.com/cncf-tags/container-device-interface>, version 0.6.0).

use std::path::Path;

use devices::{DXG_CDI_DEVICE, DXG_DEVICE, DXG_FOLDERS, DXG_LIBRARY_PATH};
use node::cli::Failure;
use serde_json::{Value, json};

/// The folder in which container runtimes look for specifications that programs write.
pub(crate) const FOLDER: &str = "/var/run/cdi";

/// Writes the specification to a folder, unless it is there. It mounts whole folders, so it stays
/// valid when a driver is updated.
pub(crate) fn provide(folder: &Path) -> Result<(), Failure> {
    let file = folder.join("directx-dxg.json");
    let text = format!("{:#}\n", specification());
    if std::fs::read(&file).is_ok_and(|written| written == text.as_bytes()) {
        return Ok(());
    }
    // A folder that cannot be created is an error of the file.
    let _ = std::fs::create_dir_all(folder);
    node::cli::write_file(&file, &text)
}

fn specification() -> Value {
    let (kind, name) = DXG_CDI_DEVICE.split_once('=').unwrap_or_default();
    let mount = |folder| {
        let options = ["ro", "nosuid", "nodev", "rbind"];
        json!({"hostPath": folder, "containerPath": folder, "options": options})
    };
    let (variable, value) = DXG_LIBRARY_PATH;
    let edits = json!({
        "deviceNodes": [{"path": DXG_DEVICE, "permissions": "rw"}],
        "mounts": DXG_FOLDERS.map(mount),
        "env": [format!("{variable}={value}")],
    });
    json!({
        "cdiVersion": "0.6.0",
        "kind": kind,
        "devices": [{"name": name, "containerEdits": edits}],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_specification_is_written_again_if_it_was_changed() {
        let folder = tempfile::tempdir().unwrap();
        let (folder, file) =
            (folder.path().join("cdi"), folder.path().join("cdi/directx-dxg.json"));
        provide(&folder).unwrap();
        let written = std::fs::read_to_string(&file).unwrap();
        insta::assert_snapshot!(written);
        for damage in ["", "{}"] {
            std::fs::write(&file, damage).unwrap();
            provide(&folder).unwrap();
            assert_eq!(std::fs::read_to_string(&file).unwrap(), written);
        }
    }

    #[test]
    fn a_folder_that_cannot_be_written_is_an_error_that_names_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        std::fs::write(&file, "").unwrap();
        let error = format!("{:?}", provide(&file).unwrap_err());
        assert!(error.contains("directx-dxg.json"), "{error}");
    }
}
