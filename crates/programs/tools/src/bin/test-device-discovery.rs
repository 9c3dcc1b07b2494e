//! `test-device-discovery`: the DirectX devices of this host, as text.

fn main() -> std::process::ExitCode {
    tools::discovery::main()
}
