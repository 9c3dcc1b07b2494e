use std::num::NonZeroU32;

use devices::DeviceSet;
use host::HostBuild;
use report::{ReportedDevice, ReportedHost, ReportedResource};

use super::*;

/// The answer of a daemon with these resources, each with its phase and the replicas of a device.
fn answer(instance: u64, resources: &[(&str, Phase, u32)]) -> StatusReport {
    let mut report = PluginReport::new(String::new(), &DeviceSet::default(), None);
    report.node.host.build = Some("10.0.20348.1".parse::<HostBuild>().unwrap());
    report.node.resources =
        resources.iter().map(|(name, _, replicas)| reported(name, *replicas)).collect();
    report.node.unmatched_cordons = vec!["`x` names no device".to_owned()];
    let state = |(name, phase, _): &(&str, Phase, u32)| ResourceStatus {
        name: (*name).to_owned(),
        phase: (*phase).into(),
        ..ResourceStatus::default()
    };
    StatusReport {
        resources: resources.iter().map(state).collect(),
        document: report.document(),
        instance,
    }
}

/// A resource, whose replicas show which daemon it is from.
fn reported(name: &str, replicas: u32) -> ReportedResource {
    ReportedResource {
        name: name.parse().unwrap(),
        replicas: NonZeroU32::new(replicas).unwrap(),
        devices: Vec::new(),
    }
}

fn of(answers: &[StatusReport]) -> NodeState {
    let answers =
        answers.iter().map(|answer| (PathBuf::from("/x/wddm-1.sock"), Ok(answer.clone())));
    Answers::of(answers).node_state()
}

/// The resources that a node is known to have, with their replicas.
fn known(state: &NodeState) -> Vec<String> {
    let NodeState::Known(listing) = state else { panic!("{state:?}") };
    let node = &listing.node;
    assert_eq!(node.host, ReportedHost { build: node.host.build, ..ReportedHost::default() });
    assert_eq!(node.unmatched_cordons.len(), 1);
    node.resources.iter().map(|r| format!("{} {}", r.name, r.replicas)).collect()
}

const UNREADABLE: &[u8] = br#"{"format": 2, "version": "99.0.0"}"#;

#[test]
fn the_resources_of_two_daemons_are_those_of_the_node() {
    let display = answer(1, &[("a/display", Phase::Ready, 1)]);
    let compute =
        answer(2, &[("a/compute", Phase::WaitingForKubelet, 2), ("a/npu", Phase::Ready, 3)]);
    let state = of(&[display.clone(), compute.clone(), compute, display]);
    assert_eq!(known(&state), ["a/display 1", "a/compute 2", "a/npu 3"]);
    let NodeState::Known(listing) = state else { panic!("{state:?}") };
    let served: Vec<(&str, u64, Option<&str>)> = listing
        .served
        .iter()
        .map(|(name, served)| (name.as_str(), served.instance, served.why_not()))
        .collect();
    let waits = Some("waiting for the kubelet");
    assert_eq!(served, [("a/compute", 2, waits), ("a/display", 1, None), ("a/npu", 2, None)]);
}

#[test]
fn during_an_update_the_daemon_counts_that_has_got_further() {
    let old = |phase| answer(1, &[("a/display", phase, 1), ("a/old", Phase::Ready, 1)]);
    let new = |phase| answer(2, &[("a/display", phase, 2)]);
    for (old_phase, new_phase, replicas) in [
        (Phase::Ready, Phase::WaitingForOtherDaemon, 1),
        (Phase::WaitingForKubelet, Phase::WaitingForOtherDaemon, 1),
        (Phase::WaitingForKubelet, Phase::Ready, 2),
        (Phase::Registered, Phase::Starting, 1),
    ] {
        let mut both = [old(old_phase), new(new_phase)];
        for _ in 0..2 {
            let mut resources = known(&of(&both));
            resources.sort_unstable();
            assert_eq!(resources, [format!("a/display {replicas}"), "a/old 1".to_owned()]);
            both.reverse();
        }
    }
}

#[test]
fn a_daemon_that_waits_contributes_nothing() {
    let waiting = answer(1, &[("a/display", Phase::WaitingForOtherDaemon, 1)]);
    assert_eq!(of(std::slice::from_ref(&waiting)), NodeState::NotServed);
    assert_eq!(of(&[]), NodeState::NotServed);
    assert_eq!(of(&[answer(1, &[])]), NodeState::NotServed);
    let other = answer(2, &[("a/compute", Phase::Ready, 2)]);
    assert_eq!(known(&of(&[waiting, other])), ["a/compute 2"]);
}

/// The answer of a daemon with one resource, which has these devices.
fn with_devices(instance: u64, phase: Phase, ids: &[&str]) -> StatusReport {
    let name = "nvidia.com/gpu";
    let mut status = answer(instance, &[(name, phase, 1)]);
    let mut report = PluginReport::read(&status.document).unwrap();
    let device = |id: &&str| ReportedDevice { id: PnpId::new(*id), ..device() };
    report.node.resources[0].devices = ids.iter().map(device).collect();
    status.document = report.document();
    status
}

fn device() -> ReportedDevice {
    let host = config::inventory::read(&recorded()).unwrap();
    let policy = config::load(&config::Flags::default(), &config::EmptyEnvironment).unwrap().policy;
    let offer = devices::Catalog::new(policy).offer(&host);
    let set = DeviceSet::next(None, offer, devices::Moment::default());
    NodeReport::of(&set).devices().next().unwrap().clone()
}

fn recorded() -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    folder.join("../../../fixtures/inventories/aws-t4-two.yaml")
}

/// Two daemons have a rule with the same name, and each has other devices.
#[test]
fn devices_that_only_a_waiting_daemon_has_are_reported() {
    let serving = with_devices(1, Phase::Ready, &["PCI\\1"]);
    let waiting = |ids: &[&str]| with_devices(2, Phase::WaitingForOtherDaemon, ids);
    let incomplete = |answers: &[StatusReport]| {
        let NodeState::Known(listing) = of(answers) else { panic!("{answers:?}") };
        listing.served.values().next().unwrap().incomplete.clone()
    };
    let text = "the plugin at /x/wddm-1.sock waits for the one that serves nvidia.com/gpu, and none \
                lists PCI\\2 (NVIDIA Tesla T4)";
    let both = [serving.clone(), waiting(&["PCI\\1", "PCI\\2"])];
    assert_eq!(incomplete(&both).as_deref(), Some(text));
    // During an update, and with a daemon that has no devices.
    for ids in [&["PCI\\1"][..], &[]] {
        assert_eq!(incomplete(&[serving.clone(), waiting(ids)]), None, "{ids:?}");
    }
    // Another resource may have the device.
    let mut other = with_devices(3, Phase::Ready, &["PCI\\2"]);
    let mut report = PluginReport::read(&other.document).unwrap();
    report.node.resources[0].name = "example.com/other".parse().unwrap();
    other.resources[0].name = "example.com/other".to_owned();
    other.document = report.document();
    let [first, second] = both;
    let NodeState::Known(listing) = of(&[first, second.clone(), other]) else { panic!() };
    assert!(listing.served.values().all(|served| served.incomplete.is_none()));
    // What a daemon lists whose report cannot be read is not known.
    let unreadable = StatusReport { document: UNREADABLE.to_vec(), ..serving };
    let answers = [unreadable, second].map(|answer| (PathBuf::from("/x/1.sock"), Ok(answer)));
    assert_eq!(Answers::of(answers).unlisted_devices(), []);
}

#[test]
fn a_daemon_of_another_version_is_not_one_that_does_not_run() {
    let unreadable = |phase| StatusReport {
        document: UNREADABLE.to_vec(),
        ..answer(1, &[("a/display", phase, 1)])
    };
    let version = PluginVersion { format: 2, version: "99.0.0".to_owned() };
    let other = answer(2, &[("a/compute", Phase::Ready, 2)]);
    let silent = at("/x/wddm-1.sock", SilenceReason::OtherVersion(version));
    assert_eq!(of(&[unreadable(Phase::Ready)]), NodeState::NotReported(silent.clone()));
    let state = of(&[other.clone(), unreadable(Phase::Ready)]);
    assert_eq!(known(&state), ["a/compute 2"]);
    assert_eq!(silent_daemons(&state), [silent]);
    let waiting = unreadable(Phase::WaitingForOtherDaemon);
    assert_eq!(known(&of(&[waiting, other])), ["a/compute 2"]);
}

#[test]
fn a_daemon_that_does_not_answer_hides_no_other_one() {
    let socket = PathBuf::from("/x/mcdm-1.sock");
    let silent = at("/x/mcdm-1.sock", SilenceReason::Busy);
    let busy = || (socket.clone(), Err(StatusError::Busy));
    assert_eq!(Answers::of([busy()]).node_state(), NodeState::NotReported(silent.clone()));
    let other = answer(2, &[("a/compute", Phase::Ready, 2)]);
    let state = Answers::of([busy(), (PathBuf::from("/x/wddm-1.sock"), Ok(other))]).node_state();
    assert_eq!(known(&state), ["a/compute 2"]);
    assert_eq!(silent_daemons(&state), [silent]);
}

#[test]
fn a_daemon_that_does_not_know_its_devices_hides_no_other_one() {
    let why = "the first discovery has not completed".to_owned();
    let report = PluginReport::new(String::new(), &DeviceSet::default(), Some(why.clone()));
    let pending = StatusReport {
        document: report.document(),
        ..answer(1, &[("a/display", Phase::Ready, 1)])
    };
    let silent = at("/x/wddm-1.sock", SilenceReason::Pending(why));
    assert_eq!(of(std::slice::from_ref(&pending)), NodeState::NotReported(silent.clone()));
    let other = answer(2, &[("a/compute", Phase::Ready, 2)]);
    let state = of(&[other, pending]);
    assert_eq!(known(&state), ["a/compute 2"]);
    assert_eq!(silent_daemons(&state), [silent]);
}

#[test]
fn a_driver_model_without_a_daemon_is_free_and_its_daemon_may_be_announced() {
    use DriverModel::{Legacy, Mcdm, Wddm};
    let with = |instance, name: &str, own: &[DriverModel], others: &[DriverModel]| {
        let mut status = answer(instance, &[(name, Phase::Ready, 1)]);
        let mut report = PluginReport::read(&status.document).unwrap();
        report.driver_models = own.to_vec();
        report.other_driver_models = others.to_vec();
        status.document = report.document();
        status
    };
    let display = with(1, "a/display", &[Wddm], &[Mcdm]);
    let compute = with(2, "a/compute", &[Mcdm], &[Wddm]);
    let mcdm = SilentDaemon {
        name: "the plugin for the driver model mcdm".to_owned(),
        reason: SilenceReason::NotRunning,
    };
    for (answers, free, silent) in [
        (vec![display.clone(), compute], vec![], vec![]),
        (vec![display], vec![Mcdm], vec![mcdm]),
        (vec![with(1, "a/display", &[Wddm], &[])], vec![Mcdm], vec![]),
        (vec![with(1, "a/display", &[Wddm, Mcdm], &[])], vec![], vec![]),
        (vec![with(1, "a/directx", &[Legacy], &[])], vec![], vec![]),
    ] {
        let state = of(&answers);
        let NodeState::Known(listing) = &state else { panic!("{state:?}") };
        assert_eq!(listing.free_models, free);
        assert_eq!(silent_daemons(&state), silent);
    }
}

fn at(socket: &str, reason: SilenceReason) -> SilentDaemon {
    SilentDaemon { name: format!("the plugin at {socket}"), reason }
}

fn silent_daemons(state: &NodeState) -> Vec<SilentDaemon> {
    let NodeState::Known(listing) = state else { panic!("{state:?}") };
    listing.silent.clone()
}

#[test]
fn a_ready_daemon_counts_more_than_one_that_knows_no_devices() {
    let resource = |phase: Phase, pending: &str| ResourceStatus {
        phase: phase.into(),
        pending: pending.to_owned(),
        ..ResourceStatus::default()
    };
    let ready = resource(Phase::Ready, "");
    assert!(rank(&resource(Phase::Ready, "the first discovery …")) < rank(&ready));
    assert!(rank(&resource(Phase::Registered, "")) < rank(&ready));
}
