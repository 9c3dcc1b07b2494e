//! `gen-device-mounts`: the flags that give a container DirectX devices.

fn main() -> std::process::ExitCode {
    tools::mounts::main()
}
