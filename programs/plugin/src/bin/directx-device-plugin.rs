//! `directx-device-plugin`: the daemon and the commands around it.

fn main() -> std::process::ExitCode {
    plugin::main()
}
