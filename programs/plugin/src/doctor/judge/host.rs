//! Windows, its Host Compute Service, and an image that is to run on it.

use devices::{FIRST_BUILD_WITHOUT_MOUNTS, HostFacts, takes_location_paths};
use win32::NEEDED_WINDOWS;

use crate::doctor::check::{Check, Subject};
use crate::doctor::image::Match;
use crate::doctor::observed::{Hcs, Machine, Observed};

/// The first build with dxcore.dll: Windows 10 version 2004. Windows Server 2022 is
/// the first Server with it that is still supported.
const FIRST_BUILD_WITH_DXCORE: u32 = 19_041;

/// The Windows build.
pub(super) fn windows(host: &HostFacts) -> Check {
    let Some(build) = host.build else {
        return Subject::Windows.not_checked("the recording does not tell the build");
    };
    let words = [host.product.as_deref(), host.display_version.as_deref()];
    let name: Vec<&str> = words.into_iter().flatten().collect();
    let name = format!(
        "{} (build {build})",
        if name.is_empty() { "Windows".to_owned() } else { name.join(", version ") }
    );
    if build.build < FIRST_BUILD_WITH_DXCORE {
        let what = format!("{name} cannot list its DirectX adapters to the plugin");
        return Subject::Windows.problem(what, format!("use a newer Windows: {NEEDED_WINDOWS}"));
    }
    if build.build >= FIRST_BUILD_WITHOUT_MOUNTS {
        return Subject::Windows.ok(format!(
            "{name}; this Windows gives containers the driver's runtime files itself, so the \
             plugin mounts none unless runtimeMounts is always"
        ));
    }
    Subject::Windows.ok(format!("{name}; the plugin mounts the driver's runtime files"))
}

/// The Host Compute Service.
pub(super) fn hcs(seen: &Machine) -> Check {
    match &seen.hcs {
        Hcs::Missing(why) => Subject::Hcs.problem(
            why,
            "no Windows container can run here: install the Containers feature \
             (`Install-WindowsFeature Containers`) and restart",
        ),
        Hcs::Silent(why) => Subject::Hcs.warning(
            why,
            "run doctor as administrator or in a HostProcess container, and see whether the \
             service `vmcompute` runs",
        ),
        Hcs::Schemas(schemas) if schemas.is_empty() => {
            Subject::Hcs.not_checked("the recording lists no schemas")
        }
        Hcs::Schemas(schemas) => {
            let list: Vec<String> = schemas.iter().map(ToString::to_string).collect();
            let list = list.join(", ");
            if takes_location_paths(&seen.host) {
                return Subject::Hcs.ok(format!("schema {list}: takes devices by location path"));
            }
            Subject::Hcs.warning(
                format!("schema {list} takes no device by its location path (2.2 does)"),
                "every container that asks for a device is given all display adapters of the \
                 host; use Windows Server 2022 or newer",
            )
        }
    }
}

/// An image's OS version against the host's.
pub(super) fn image(seen: &Observed) -> Check {
    let Some(image) = seen.image else {
        return Subject::Image
            .not_checked("no image to compare with; give its OS version with --image-os-version");
    };
    let Some(host) = seen.machine.host.build else {
        return Subject::Image.not_checked("the recording does not tell the host's build");
    };
    let rebuild = |builds: String| {
        format!(
            "GPUs need process isolation, which is bound to the version: rebuild the image on a \
             base image of build {builds}, or run it on another host"
        )
    };
    match image.on(host) {
        Match::Runs => Subject::Image.ok(format!("images of {image} run on build {host}")),
        Match::Unsupported => Subject::Image.warning(
            format!("Windows Server 2016 supports only images of its own revision, {host}; this one has {image}"),
            format!("rebuild the image on the base image of {host}"),
        ),
        Match::TooNew => Subject::Image.problem(
            format!("images of {image} are newer than build {host} and do not start on it"),
            rebuild(host.build.to_string()),
        ),
        Match::TooOld { oldest } => Subject::Image.problem(
            format!("images of {image} are too old for build {host} and do not start on it"),
            rebuild(if oldest == host.build {
                oldest.to_string()
            } else {
                format!("{oldest} to {}", host.build)
            }),
        ),
    }
}
