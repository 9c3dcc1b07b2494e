//! Windows, its Host Compute Service, and an image that is to run on it.

use devices::{
    FIRST_BUILD_WITHOUT_MOUNTS, HcsFailure, HcsFailureKind, HostFacts, takes_location_paths,
};
use win32::NEEDED_WINDOWS;

use crate::doctor::facts::{MachineFacts, NodeFacts};
use crate::doctor::finding::{Finding, Subject};
use crate::doctor::image::Compatibility;

/// The first supported build: Windows Server 2019 and Windows 10 version 1809.
const FIRST_BUILD: u32 = 17_763;

/// The first build with dxcore.dll: Windows 10 version 2004. Windows Server 2022 is the
/// first Server that has it.
const FIRST_BUILD_WITH_DXCORE: u32 = 19_041;

/// The Windows build.
pub(super) fn windows(host: &HostFacts) -> Finding {
    let Some(build) = host.build else {
        return Subject::WINDOWS.skipped("the inventory does not contain the Windows build");
    };
    let product = [host.product.as_deref(), host.display_version.as_deref()];
    let product: Vec<&str> = product.into_iter().flatten().collect();
    let name = format!(
        "{} (build {build})",
        if product.is_empty() { "Windows".to_owned() } else { product.join(", version ") }
    );
    if build.build < FIRST_BUILD {
        let what = format!("{name} cannot list DirectX adapters");
        return Subject::WINDOWS.failed(what, format!("use a newer Windows: {NEEDED_WINDOWS}"));
    }
    if provides_files(host) {
        return Subject::WINDOWS.ok(format!(
            "{name}; Windows itself provides the driver's runtime files to containers, so the \
             plugin mounts none with runtimeMounts: auto"
        ));
    }
    if build.build < FIRST_BUILD_WITH_DXCORE {
        return Subject::WINDOWS.ok(format!(
            "{name}; it has no DXCore, so the graphics kernel lists the adapters; the plugin \
             mounts the driver's runtime files"
        ));
    }
    Subject::WINDOWS.ok(format!("{name}; the plugin mounts the driver's runtime files"))
}

/// The Host Compute Service.
pub(super) fn hcs(machine: &MachineFacts) -> Finding {
    if let Some(HcsFailure { kind, message }) = &machine.software.hcs_failure {
        return match kind {
            HcsFailureKind::Missing => Subject::HCS.failed(
                message,
                "no Windows container can run on this host: install the Containers feature \
                 (`Install-WindowsFeature Containers`) and restart",
            ),
            HcsFailureKind::Unresponsive => Subject::HCS.warning(
                message,
                "run doctor as administrator or in a HostProcess container, and check that the \
                 service `vmcompute` runs",
            ),
        };
    }
    let schemas: Vec<String> = machine.host.hcs_schemas.iter().map(ToString::to_string).collect();
    if schemas.is_empty() {
        return Subject::HCS.skipped("the inventory lists no HCS schemas");
    }
    let list = schemas.join(", ");
    if takes_location_paths(&machine.host) {
        return Subject::HCS.ok(format!("schema {list} supports devices by location path"));
    }
    Subject::HCS.warning(
        format!("schema {list} does not support devices by location path (2.2 does)"),
        "a container that requests a display device gets all display adapters of the host, and one \
         that requests a compute-only device is refused unless `deviceClass` is set for mcdm; use \
         Windows Server 2022 or newer",
    )
}

/// An image's OS version against the host's.
pub(super) fn image(facts: &NodeFacts) -> Finding {
    let Some(image) = facts.image else {
        return Subject::IMAGE
            .skipped("no image given; set its OS version with --image-os-version");
    };
    let Some(host) = facts.machine.host.build else {
        return Subject::IMAGE.skipped("the inventory does not contain the Windows build");
    };
    let rebuild = |builds: String| {
        format!(
            "GPUs need process isolation, which requires a matching version: rebuild the image \
             on a base image of build {builds}, or run it on another host"
        )
    };
    match image.compatibility_with(host) {
        Compatibility::Runs => Subject::IMAGE.ok(format!("images of {image} run on build {host}")),
        Compatibility::Unsupported => Subject::IMAGE.warning(
            format!(
                "Windows Server 2016 supports only images of its own revision, {host}; the image \
                 has {image}"
            ),
            format!("rebuild the image on the base image of {host}"),
        ),
        Compatibility::TooNew => Subject::IMAGE.failed(
            format!("images of {image} are newer than build {host} and do not start on it"),
            rebuild(host.build.to_string()),
        ),
        Compatibility::TooOld { oldest } => Subject::IMAGE.failed(
            format!("images of {image} are too old for build {host} and do not start on it"),
            rebuild(if oldest == host.build {
                oldest.to_string()
            } else {
                format!("{oldest} to {}", host.build)
            }),
        ),
    }
}

/// Whether Windows itself provides the driver's runtime files to containers.
pub(super) fn provides_files(host: &HostFacts) -> bool {
    host.build.is_some_and(|build| build.build >= FIRST_BUILD_WITHOUT_MOUNTS)
}
