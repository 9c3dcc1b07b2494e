//! Links a Windows version resource into the program.

use version_resource::{CompileError, Program, link_to_programs};

fn main() -> Result<(), CompileError> {
    link_to_programs(&[Program { name: "gpu-probe", description: "GPU API test for containers" }])
}
