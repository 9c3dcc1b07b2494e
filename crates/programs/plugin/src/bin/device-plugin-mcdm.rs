//! `device-plugin-mcdm`: the daemon under its earlier name, for the MCDM driver model.

fn main() -> std::process::ExitCode {
    plugin::main_for(devices::DriverModel::Mcdm)
}
