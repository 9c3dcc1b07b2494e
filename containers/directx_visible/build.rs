//! Links a Windows version resource into the program.

use version_resource::{CompileError, Program, link_to_programs};

fn main() -> Result<(), CompileError> {
    let description = "Runs a program that sees only the devices of its container";
    link_to_programs(&[Program { name: "directx-visible", description }])
}
