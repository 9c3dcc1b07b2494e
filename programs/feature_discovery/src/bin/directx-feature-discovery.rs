//! `directx-feature-discovery`: labels a node with what is known about its DirectX devices.

fn main() -> std::process::ExitCode {
    feature_discovery::main()
}
