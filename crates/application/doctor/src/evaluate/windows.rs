//! Windows, its Host Compute Service, and an image that is to run on it.

use config::{Config, ConfigError};
use devices::{DriverModel, FIRST_BUILD_WITHOUT_MOUNTS, ModelPolicy, SingleDevice, single_device};
use host::{HcsFailure, HcsFailureKind, HcsSchema, HostFacts};
use win32::NEEDED_WINDOWS;

use crate::aging_facts::Row;
use crate::finding::{Finding, FindingId, Subject};
use crate::image::{ImageVersion, runnable_images};

/// The first supported build: Windows Server 2019 and Windows 10 version 1809.
const FIRST_BUILD: u32 = 17_763;

/// The first revision of that build with which containerd's pods start: September 2020.
const FIRST_REVISION: u32 = 1457;

/// The first build with dxcore.dll: Windows 10 version 2004. Windows Server 2022 is the
/// first Server that has it.
const FIRST_BUILD_WITH_DXCORE: u32 = 19_041;

/// The first HCS schema that can assign one device to a container by location path.
const LOCATION_PATH_SCHEMA: HcsSchema = HcsSchema { major: 2, minor: 2 };

/// What to do about a host without devices by location path.
const UPDATE: &str = "use Windows Server 2022 or newer";

pub(super) fn windows(host: &HostFacts) -> Finding {
    let Some(build) = host.build else {
        return Subject::Windows.skipped("the inventory does not contain the Windows build");
    };
    let product: Vec<&str> =
        [&host.product, &host.display_version].into_iter().flatten().map(String::as_str).collect();
    let name = format!(
        "{} (build {build})",
        if product.is_empty() { "Windows".to_owned() } else { product.join(", version ") }
    );
    if build.build < FIRST_BUILD {
        let what = format!("{name} cannot list DirectX adapters");
        return FindingId::WindowsTooOld
            .failed(what, format!("use a newer Windows: {NEEDED_WINDOWS}"));
    }
    if build.build == FIRST_BUILD && (1..FIRST_REVISION).contains(&build.revision) {
        let what = format!("{name} does not start pods of containerd");
        let hint = format!("install the current updates of Windows ({})", Row::Server2019);
        return FindingId::WindowsOutdated.warning(what, hint);
    }
    let note = if build.build >= FIRST_BUILD_WITHOUT_MOUNTS {
        "; Windows itself provides the driver's runtime files to containers"
    } else if build.build < FIRST_BUILD_WITH_DXCORE {
        "; it has no DXCore, so the graphics kernel lists the adapters"
    } else {
        ""
    };
    Subject::Windows.ok(format!("{name}{note}"))
}

/// The command of this Windows that installs the feature.
fn install_containers(host: &HostFacts) -> &'static str {
    match host.product.as_deref() {
        Some(product) if !product.contains("Server") => {
            "Enable-WindowsOptionalFeature -Online -FeatureName Containers -All"
        }
        _ => "Install-WindowsFeature Containers",
    }
}

pub(super) fn hcs(
    host: &HostFacts,
    failure: Option<&HcsFailure>,
    configuration: &Result<Config, ConfigError>,
) -> Finding {
    if let Some(HcsFailure { kind, message }) = failure {
        return match kind {
            HcsFailureKind::Missing => FindingId::HcsMissing.failed(
                message,
                format!(
                    "no Windows container can run on this host: install the Containers feature \
                     (`{}`) and restart",
                    install_containers(host)
                ),
            ),
            HcsFailureKind::Unresponsive => FindingId::HcsNotResponding.warning(
                message,
                "run doctor as administrator or in a HostProcess container, and check that the \
                 service `vmcompute` runs",
            ),
        };
    }
    let schemas: Vec<String> = host.hcs_schemas.iter().map(ToString::to_string).collect();
    if schemas.is_empty() {
        return Subject::Hcs.skipped("the inventory lists no HCS schemas");
    }
    let (noun, supports, does) = match schemas.as_slice() {
        [_] => ("schema", "supports", "does"),
        _ => ("schemas", "support", "do"),
    };
    let list = schemas.join(", ");
    if host.hcs_schemas.iter().any(|schema| *schema >= LOCATION_PATH_SCHEMA) {
        return Subject::Hcs.ok(format!("{noun} {list} {supports} devices by location path"));
    }
    let what = format!("{noun} {list} {does} not support devices by location path (2.2 does)");
    let Ok(configuration) = configuration else {
        return FindingId::HcsSchemaTooOld.warning(what, UPDATE);
    };
    let models = &configuration.policy.models;
    if models.iter().all(|policy| policy.model == DriverModel::Legacy) {
        return Subject::Hcs.ok(format!("{what}, which the driver model legacy does not need"));
    }
    let mut effects: Vec<String> = models.iter().map(|policy| effect(policy, host)).collect();
    effects.dedup();
    FindingId::HcsSchemaTooOld.warning(what, format!("{}; {UPDATE}", effects.join("; ")))
}

/// What a container that requests a device of a driver model gets from a host whose Host Compute
/// Service does not support location paths.
fn effect(policy: &ModelPolicy, host: &HostFacts) -> String {
    let model = policy.model;
    let device = match model {
        DriverModel::Wddm => "a display device",
        DriverModel::Mcdm => "a compute-only device",
        DriverModel::Legacy => "a device",
    };
    match single_device(policy, host.build) {
        SingleDevice::LocationPath => {
            "the plugin assigns devices by location path because of the Windows build, so \
             containers with a device may not start"
                .to_owned()
        }
        SingleDevice::Class(class) => {
            format!("a container that requests {device} gets {}", class.content())
        }
        SingleDevice::Refused => format!(
            "a container that requests {device} is refused unless `deviceClass` is set for {model}"
        ),
    }
}

pub(super) fn image(host: &HostFacts, image: Option<ImageVersion>) -> Finding {
    let Some(image) = image else {
        return Subject::Image
            .skipped("no image given; set its OS version with --image-os-version");
    };
    let Some(build) = host.build else {
        return Subject::Image.skipped("the inventory does not contain the Windows build");
    };
    let runnable = runnable_images(build);
    if runnable.contains(&image) {
        return Subject::Image.ok(format!("images of {image} run on build {build}"));
    }
    let are = if image > *runnable.end() { "newer than" } else { "too old for" };
    let oldest = runnable.start().build;
    let newest = runnable.end().build;
    let builds =
        if oldest == newest { newest.to_string() } else { format!("{oldest} to {newest}") };
    FindingId::ImageDoesNotFit.failed(
        format!("images of {image} are {are} build {build} and do not start on it"),
        format!(
            "GPUs need process isolation, which requires a matching version: rebuild the image \
             on a base image of build {builds}, or run it on another host"
        ),
    )
}
