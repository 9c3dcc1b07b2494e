//! `directx-visible`: runs a program that sees only the devices of its container.

fn main() -> std::process::ExitCode {
    directx_visible::main()
}
