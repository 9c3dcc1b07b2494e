//! `device-plugin-wddm`: the daemon under its earlier name, for the WDDM driver model.

fn main() -> std::process::ExitCode {
    plugin::main_for(devices::DriverModel::Wddm)
}
