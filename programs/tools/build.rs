//! Links a Windows version resource into the programs.

use version_resource::{CompileError, Program, link_to_programs};

fn main() -> Result<(), CompileError> {
    link_to_programs(&[
        Program {
            name: "gen-device-mounts",
            description: "DirectX device and mount flags for containers",
        },
        Program {
            name: "query-hcs-capabilities",
            description: "Host Compute Service capabilities",
        },
        Program { name: "test-device-discovery", description: "DirectX device discovery test" },
    ])
}
