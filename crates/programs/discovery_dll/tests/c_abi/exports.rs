//! The library file exports the functions that the header declares, and no others.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use object::Object as _;

/// Every function that clients of earlier versions can call.
const EXPECTED: [&str; 26] = [
    "CreateDeviceDiscoveryInstance",
    "DestroyDeviceDiscoveryInstance",
    "DeviceDiscovery_DiscoverDevices",
    "DeviceDiscovery_DoesDeviceSupportCompute",
    "DeviceDiscovery_DoesDeviceSupportDisplay",
    "DeviceDiscovery_GetDeviceAdapterLUID",
    "DeviceDiscovery_GetDeviceDescription",
    "DeviceDiscovery_GetDeviceDriverRegistryKey",
    "DeviceDiscovery_GetDeviceDriverStorePath",
    "DeviceDiscovery_GetDeviceID",
    "DeviceDiscovery_GetDeviceLocationPath",
    "DeviceDiscovery_GetDeviceVendor",
    "DeviceDiscovery_GetLastErrorMessage",
    "DeviceDiscovery_GetNumDevices",
    "DeviceDiscovery_GetNumRuntimeFiles",
    "DeviceDiscovery_GetNumRuntimeFilesWow64",
    "DeviceDiscovery_GetRuntimeFileDestination",
    "DeviceDiscovery_GetRuntimeFileDestinationWow64",
    "DeviceDiscovery_GetRuntimeFileSource",
    "DeviceDiscovery_GetRuntimeFileSourceWow64",
    "DeviceDiscovery_IsDeviceDetachable",
    "DeviceDiscovery_IsDeviceIntegrated",
    "DeviceDiscovery_IsRefreshRequired",
    "DisableDiscoveryLogging",
    "EnableDiscoveryLogging",
    "GetDiscoveryLibraryVersion",
];

fn expected() -> BTreeSet<String> {
    EXPECTED.map(str::to_owned).into()
}

/// The library that cargo built for this test, in the same folder.
fn library() -> PathBuf {
    let name = format!(
        "{}directx_device_discovery{}",
        std::env::consts::DLL_PREFIX,
        std::env::consts::DLL_SUFFIX
    );
    std::env::current_exe().unwrap().parent().unwrap().join(name)
}

fn include(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../include");
    std::fs::read_to_string(folder.join(name)).unwrap()
}

#[test]
fn the_library_exports_exactly_the_expected_functions() {
    let bytes = std::fs::read(library()).unwrap();
    let file = object::File::parse(&*bytes).unwrap();
    let exports = file.exports().unwrap();
    let names = exports.iter().map(|e| String::from_utf8(e.name().to_vec()).unwrap());
    assert_eq!(names.collect::<BTreeSet<_>>(), expected());
}

#[test]
fn header_and_import_list_name_the_same_functions() {
    let header = include("DeviceDiscovery.h");
    let declarations = header.split("#ifdef __cplusplus\n}").next().unwrap();
    let declared: BTreeSet<String> = declarations
        .lines()
        .filter(|line| line.ends_with(");"))
        .filter_map(|line| line.split('(').next()?.split([' ', '*']).next_back())
        .map(str::to_owned)
        .collect();
    assert_eq!(declared, expected());
    let list = include("DeviceDiscovery.def");
    let exports = list.split_once("EXPORTS\n").unwrap().1;
    assert_eq!(exports.lines().map(str::to_owned).collect::<BTreeSet<_>>(), expected());
}
