//! `docs/troubleshooting.md` against what the program says.

use devices::{
    Ailment, DriverModel, PlanError, PlanWarning, PnpId, PreferError, SkipReason, SlotFault,
};

const HANDBOOK: &str = include_str!("../../../../docs/troubleshooting.md");

/// The handbook's words: without line ends, and without the marks around code.
fn words(text: &str) -> String {
    text.replace(['`', '*'], "").split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Whether the handbook has `message`, where it stands `…` for anything and `N` or `M`
/// for a number.
fn is_told(message: &str) -> bool {
    let message = words(message);
    let handbook = words(HANDBOOK);
    // The parts that do not depend on the case at hand: what is between quotes, and
    // numbers, do.
    let numberless = message.split(|c: char| c.is_ascii_digit()).map(str::trim);
    numberless.filter(|part| part.len() > 8).all(|part| handbook.contains(part))
}

#[test]
fn the_comparison_can_fail() {
    assert!(is_told("the request names no slot"));
    assert!(!is_told("the request names no device at all"));
    assert!(is_told("77 slots are wanted and 9 are available"));
}

#[test]
fn every_refusal_of_an_allocation_is_explained() {
    // Where a message names a device, the handbook has dots.
    let id = || "…".to_owned();
    let device = || PnpId::new("…");
    for refusal in [
        PlanError::NoSlots,
        PlanError::Slot(SlotFault::Malformed(id())),
        PlanError::Slot(SlotFault::UnknownDevice(id(), "…".to_owned())),
        PlanError::Slot(SlotFault::BeyondReplicas(id(), 4)),
        PlanError::Slot(SlotFault::Unhealthy(id(), Ailment::Problem(43))),
        PlanError::Slot(SlotFault::Unhealthy(id(), Ailment::Gone)),
        PlanError::NoLocationPath(device()),
    ] {
        let first = refusal.to_string();
        let first = first.split(" (a PnP").next().unwrap();
        assert!(is_told(first), "{first}");
    }
    let several = PlanError::SeveralDevices(vec![device()]).to_string();
    assert!(is_told(several.split(", and multiDevice").next().unwrap()), "{several}");
    assert!(is_told("and multiDevice is reject") && several.contains("and multiDevice is reject"));
}

#[test]
fn every_warning_of_an_allocation_is_explained() {
    for warning in [PlanWarning::SeveralDevices(2), PlanWarning::OldHost] {
        let text = warning.to_string();
        let start = text.split(" (HCS schema").next().unwrap();
        assert!(is_told(start), "{text}");
    }
}

#[test]
fn every_missing_preference_is_explained() {
    for error in [
        PreferError::TooFew { wanted: 2, available: 1 },
        PreferError::TooMany { must: 2, wanted: 1 },
    ] {
        assert!(is_told(&error.to_string()), "{error}");
    }
}

#[test]
fn every_reason_to_leave_an_adapter_out_is_explained() {
    for reason in [
        SkipReason::NoPnpDevice,
        SkipReason::SamePnpDevice(devices::Luid(7)),
        SkipReason::Integrated,
        SkipReason::Detachable,
        SkipReason::Name("…".to_owned()),
    ] {
        assert!(is_told(&reason.to_string()), "{reason}");
    }
    let text = SkipReason::NoLocationPath.to_string();
    assert!(is_told(text.split(", so").next().unwrap()), "{text}");
}

/// Those of the `kubelet` crate, whose errors are its own: its source has their words.
#[test]
fn what_is_told_of_the_kubelet_is_what_is_logged() {
    let registration = include_str!("../../../../kubernetes/kubelet/src/registration.rs");
    let service = include_str!("../../../../kubernetes/kubelet/src/service.rs");
    for (source, message) in [
        (registration, "cannot connect to kubelet"),
        (registration, "kubelet did not accept a connection within"),
        (registration, "kubelet did not answer within"),
        (registration, "kubelet closed the connection before it answered"),
        (registration, "kubelet refused the registration: "),
        (service, "invalid allocation size"),
        (service, "no request received within"),
        (service, "Allocate failed"),
        (service, "GetPreferredAllocation failed"),
    ] {
        assert!(source.contains(message), "nothing logs `{message}`");
        assert!(HANDBOOK.contains(message), "`{message}` is not explained");
    }
}

#[test]
fn every_driver_model_that_is_mentioned_exists() {
    for model in [DriverModel::Wddm, DriverModel::Legacy] {
        assert!(HANDBOOK.contains(model.name()), "{model}");
    }
}

#[test]
fn its_own_links_lead_somewhere() {
    let headings: Vec<String> = HANDBOOK
        .lines()
        .filter_map(|line| {
            line.trim_start_matches('#').strip_prefix(' ').filter(|_| line.starts_with('#'))
        })
        .map(|heading| heading.to_lowercase().replace(' ', "-").replace(['?', '\''], ""))
        .collect();
    let links: Vec<&str> =
        HANDBOOK.split("](#").skip(1).filter_map(|l| l.split(')').next()).collect();
    assert!(links.len() > 10);
    for link in links {
        assert!(headings.iter().any(|heading| heading == link), "#{link} in {headings:?}");
    }
}
