//! The pages about problems against the messages of the program, its alerts and its conditions.

use std::collections::HashSet;

use devices::{
    DeviceClass, DriverModel, LauncherProblem, NotAdvertisedReason, PlanError, PlanWarning,
    ReplicaError, UnhealthyReason,
};
use host::PnpId;
use strum::EnumCount as _;

const INDEX: &str = include_str!("../../../../../docs/troubleshooting.md");

const PAGES: [&str; 6] = [
    include_str!("../../../../../docs/troubleshooting/plugin.md"),
    include_str!("../../../../../docs/troubleshooting/pending.md"),
    include_str!("../../../../../docs/troubleshooting/refused.md"),
    include_str!("../../../../../docs/troubleshooting/start.md"),
    include_str!("../../../../../docs/troubleshooting/gpu.md"),
    include_str!("../../../../../docs/troubleshooting/node.md"),
];

const FINDINGS: &str = include_str!("../../../../../docs/doctor.md");

/// The text on one line, without the Markdown marks for code and emphasis, and without the dots that
/// stand for names.
fn plain_text(text: &str) -> String {
    text.replace(['`', '*', '…'], "").split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Whether the pages contain `message`. They write `N` or `M` for a number.
fn is_explained(message: &str) -> bool {
    let message = plain_text(message);
    let page = plain_text(&(PAGES.concat() + FINDINGS));
    // Several messages begin with the same words up to these, and have one paragraph.
    let clauses = message.split("per container");
    // Numbers vary, so the parts between them are compared.
    let mut parts = clauses.flat_map(|clause| clause.split(|c: char| c.is_ascii_digit()));
    parts.all(|part| part.len() <= 8 || page.contains(part.trim().trim_end_matches(':')))
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
        // The pages leave out what begins with these words, or have it in another paragraph.
        let ends = [" (expected", " (HCS schema", " mcdm (untested", " the host no longer"];
        let start = ends.iter().fold(&*text, |text, end| text.split(end).next().unwrap());
        assert!(is_explained(start), "{text}");
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

#[test]
fn every_alert_is_in_the_index() {
    let alerts = include_str!("../../../../../deploy/charts/directx-device-plugin/alerts.yaml");
    let names = alerts.lines().filter_map(|line| line.trim().strip_prefix("- alert: "));
    assert_in_the_index(names.collect(), 5);
}

#[test]
fn every_reason_of_a_condition_is_in_the_index() {
    for (code, at_least) in [
        (include_str!("../../../../core/report/src/condition.rs"), 5),
        (include_str!("../../../feature_discovery/src/plugin_history.rs"), 4),
    ] {
        let code = code.split("#[cfg(test)]").next().unwrap();
        // Reasons are the only texts of one word that begin with a capital letter.
        let is_reason = |text: &&str| {
            text.starts_with(char::is_uppercase) && text.chars().all(char::is_alphanumeric)
        };
        assert_in_the_index(
            code.split('"').skip(1).step_by(2).filter(is_reason).collect(),
            at_least,
        );
    }
}

fn assert_in_the_index(names: Vec<&str>, at_least: usize) {
    assert!(names.len() >= at_least, "{names:?}");
    for name in names {
        assert!(INDEX.contains(&format!("`{name}`")), "docs/troubleshooting.md lacks {name}");
    }
}

#[test]
fn a_search_finds_each_quoted_text_on_a_short_page() {
    for page in PAGES {
        let title = page.lines().next().unwrap();
        let words = page.split_whitespace().count();
        assert!(words < 700, "{title} has {words} words: an administrator in a hurry reads it");
        for line in page.lines().filter(|line| !line.contains("```")) {
            assert!(line.matches('`').count() % 2 == 0, "{title}: a line break inside of: {line}");
        }
    }
}
