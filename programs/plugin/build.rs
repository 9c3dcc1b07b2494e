//! Links a Windows version resource into the programs.

use version_resource::{CompileError, Program, link_to_programs};

fn main() -> Result<(), CompileError> {
    link_to_programs(&[
        Program {
            name: "directx-device-plugin",
            description: "DirectX device plugin for Kubernetes",
        },
        Program {
            name: "device-plugin-wddm",
            description: "DirectX device plugin for Kubernetes (WDDM devices)",
        },
        Program {
            name: "device-plugin-mcdm",
            description: "DirectX device plugin for Kubernetes (MCDM devices)",
        },
    ])
}
