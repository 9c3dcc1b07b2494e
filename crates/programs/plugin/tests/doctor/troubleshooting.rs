//! `docs/troubleshooting.md` and `docs/doctor.md` against the messages of the program.

use std::collections::HashSet;

use devices::{
    DeviceClass, DriverModel, LauncherProblem, NotAdvertisedReason, PlanError, PlanWarning,
    ReplicaError, UnhealthyReason,
};
use host::PnpId;
use strum::EnumCount as _;

const PAGE: &str = concat!(
    include_str!("../../../../../docs/troubleshooting.md"),
    include_str!("../../../../../docs/doctor.md")
);

/// The text on one line, without the Markdown marks for code and emphasis, and without the dots that
/// stand for names.
fn plain_text(text: &str) -> String {
    text.replace(['`', '*', '…'], "").split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Whether the pages contain `message`. They write `N` or `M` for a number.
fn is_explained(message: &str) -> bool {
    let message = plain_text(message);
    let page = plain_text(PAGE);
    // Numbers vary, so the parts between them are compared.
    let mut parts = message.split(|c: char| c.is_ascii_digit()).map(str::trim);
    parts.all(|part| part.len() <= 8 || page.contains(part))
}

#[test]
fn the_comparison_can_fail() {
    assert!(is_explained("the request contains no device IDs"));
    assert!(!is_explained("the request contains no resource at all"));
    assert!(is_explained("invalid allocation size 77"));
}

/// How many variants of an enum the values have.
fn variants<'a, T: 'a>(values: impl IntoIterator<Item = &'a T>) -> usize {
    values.into_iter().map(std::mem::discriminant).collect::<HashSet<_>>().len()
}

#[test]
fn every_refusal_of_an_allocation_is_explained() {
    // Where a message names a device or a resource, the pages have dots.
    let id = || "…".to_owned();
    let device = || PnpId::new("…");
    let resource = || "a/b".parse().unwrap();
    let problem = LauncherProblem { file: id(), why: "does not exist" };
    let no_class = |requested| PlanError::NoDeviceClass {
        requested,
        model: DriverModel::Mcdm,
        devices: vec![device()],
    };
    let refusals = [
        PlanError::NoReplicas,
        PlanError::Replica(ReplicaError::Malformed(id())),
        PlanError::Replica(ReplicaError::UnknownDevice(id(), id())),
        PlanError::Replica(ReplicaError::BeyondReplicas(id(), 4)),
        PlanError::Replica(ReplicaError::Unhealthy(id(), UnhealthyReason::Removed)),
        PlanError::SharedRequest { requested: 2, resource: resource() },
        PlanError::NoLocationPath(device()),
        PlanError::NoLauncher { problem, resource: resource() },
        PlanError::SeveralDevices(vec![device()]),
        PlanError::DifferentClasses(vec![device()]),
        no_class(1),
        no_class(2),
    ];
    assert_eq!(variants(&refusals), PlanError::COUNT);
    let of_replicas = refusals.iter().filter_map(|refusal| match refusal {
        PlanError::Replica(error) => Some(error),
        _ => None,
    });
    assert_eq!(variants(of_replicas), ReplicaError::COUNT);
    for refusal in refusals {
        let text = refusal.to_string().replace("a/b", "…").replace("… does not exist", "…");
        assert!(is_explained(text.split(" (expected").next().unwrap()), "{text}");
    }
    for reason in UnhealthyReason::every() {
        let text = reason.to_string();
        // The page has dots for the source of a cordon.
        let start = text.split(" by ").next().unwrap();
        assert!(is_explained(start), "{text}");
    }
}

#[test]
fn every_warning_of_an_allocation_is_explained() {
    let class = DeviceClass::DISPLAY_ADAPTER;
    let launcher = |file: &str, why| LauncherProblem { file: file.to_owned(), why };
    let not_provided = launcher("directx-visible.exe", "is not provided on this node");
    let warnings = [
        PlanWarning::SeveralDevices { count: 2, class },
        PlanWarning::OnlyFirstDevice { requested: 2, device: PnpId::new("…") },
        PlanWarning::NoLocationPathSupport(class),
        PlanWarning::ReplicasOfSameDevice { replicas: 2, device: PnpId::new("…") },
        PlanWarning::NoLauncher(not_provided),
        PlanWarning::NoLauncher(launcher("…", "does not exist")),
    ];
    assert_eq!(variants(&warnings), PlanWarning::COUNT);
    for warning in warnings {
        let text = warning.to_string();
        let start = text.split(" (HCS schema").next().unwrap();
        assert!(is_explained(start), "{text}");
    }
}

#[test]
fn every_reason_not_to_advertise_an_adapter_is_explained() {
    for reason in NotAdvertisedReason::every() {
        // `doctor` has no line about the first, and only `devices --filter` has the second.
        if !matches!(reason, NotAdvertisedReason::Software | NotAdvertisedReason::Filtered(..)) {
            assert!(is_explained(&reason.to_string()), "{reason}");
        }
    }
}
