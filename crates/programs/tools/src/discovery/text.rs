//! The output of `test-device-discovery`.

use std::fmt::Write as _;

use devices::{Device, RuntimeFile};
use host::DriverKey;
use host::printable::printable;

/// What `GetDiscoveryLibraryVersion` of the discovery library returns. The earlier program
/// of this name prints it, and so do the clients of the library.
const LIBRARY_VERSION: &str = "0.0.1";

/// The library's version and every device.
pub(super) fn text(devices: &[Device]) -> String {
    let mut text = format!(
        "DirectX device discovery library version {LIBRARY_VERSION}\nDiscovered {} devices.\n\n",
        devices.len()
    );
    for (number, device) in devices.iter().enumerate() {
        add_device(&mut text, number, device);
    }
    text
}

// Writing to a String cannot fail, here and below.
fn add_device(text: &mut String, number: usize, device: &Device) {
    let key = device.driver_key.as_ref().map(DriverKey::registry_path).unwrap_or_default();
    let store = device.driver_store.as_ref().map_or("", |store| &store.path);
    let location = device.location_path.as_ref().map_or("", |path| path.as_str());
    let _ = writeln!(text, "[Device {number} details]\n");
    for (name, value) in [
        ("PnP Hardware ID", device.id.as_str()),
        ("DX Adapter LUID", &device.luid.to_string()),
        ("Description", &device.description),
        ("Driver Registry Key", &key),
        ("DriverStore Path", store),
        ("LocationPath", location),
        ("Vendor", &device.manufacturer),
        ("Is Integrated", &device.integrated.to_string()),
        ("Is Detachable", &device.detachable.to_string()),
        ("Supports Display", &device.display.to_string()),
        ("Supports Compute", &device.compute.to_string()),
    ] {
        let _ = writeln!(text, "{:<20} {}", format!("{name}:"), printable(value));
    }
    add_files(text, "System32", &device.runtime_files.system32);
    add_files(text, "SysWOW64", &device.runtime_files.wow64);
    text.push('\n');
}

fn add_files(text: &mut String, folder: &str, files: &[RuntimeFile]) {
    let _ = writeln!(text, "\n{} Additional {folder} runtime files:", files.len());
    for RuntimeFile { source, destination } in files {
        let _ = writeln!(text, "    {source} => {destination}");
    }
}
