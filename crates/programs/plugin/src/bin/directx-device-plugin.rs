//! `directx-device-plugin`: the daemon and its companion commands.

fn main() -> std::process::ExitCode {
    plugin::main()
}
