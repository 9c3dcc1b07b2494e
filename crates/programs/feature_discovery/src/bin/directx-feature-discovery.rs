//! `directx-feature-discovery`: labels a node with the properties of its DirectX devices.

fn main() -> std::process::ExitCode {
    feature_discovery::main()
}
