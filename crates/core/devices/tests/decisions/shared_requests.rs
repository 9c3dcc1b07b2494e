//! Requests of one container for several replicas of shared devices.

use std::sync::Arc;

use devices::{
    DriverModel, ModelPolicy, MultiDevice, Plan, PlanError, PlanWarning, SharedRequests, plan,
};
use host::{HostSnapshot, PnpId};
use proptest::prelude::*;

use crate::hosts::{NVIDIA, gpu, host, model, resource, several, wddm};

fn two_gpus() -> HostSnapshot {
    host(vec![gpu(1, NVIDIA), gpu(2, NVIDIA)])
}

fn id(device: u32, replica: u32) -> String {
    format!(r"PCI\VEN_10DE\{device}&0\{replica}")
}

fn sharing(replicas: u32, shared_requests: SharedRequests) -> ModelPolicy {
    let mut policy = wddm(replicas);
    policy.sharing.shared_requests = shared_requests;
    policy
}

fn planned(policy: ModelPolicy, ids: &[String]) -> Result<Plan, PlanError> {
    let host = two_gpus();
    plan(&resource(policy, &host), ids.iter().map(String::as_str), &host.host, &|_| true)
}

fn same_device(replicas: usize, device: u32) -> PlanWarning {
    let device = PnpId::new(format!(r"PCI\VEN_10DE\{device}&0"));
    PlanWarning::ReplicasOfSameDevice { replicas, device }
}

#[test]
fn one_refuses_several_replicas_of_shared_devices() {
    for ids in [vec![id(1, 0), id(1, 1)], vec![id(1, 0), id(2, 0)]] {
        let refused = planned(sharing(2, SharedRequests::One), &ids).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "requested 2 shared devices of directx.microsoft.com/display; sharedRequests: one \
             allows 1 per container"
        );
    }
}

#[test]
fn one_allows_a_single_replica_and_several_exclusive_devices() {
    let single = planned(sharing(2, SharedRequests::One), &[id(1, 1)]).unwrap();
    assert!(single.warnings.is_empty());
    let exclusive = planned(sharing(1, SharedRequests::One), &[id(1, 0), id(2, 0)]).unwrap();
    assert_eq!(exclusive.warnings, [several(2)]);
}

#[test]
fn a_repeated_device_id_is_one_replica() {
    let plan = planned(sharing(2, SharedRequests::One), &[id(1, 1), id(1, 1)]).unwrap();
    assert!(plan.warnings.is_empty());
}

#[test]
fn any_warns_about_replicas_of_the_same_device() {
    let any = || sharing(4, SharedRequests::Any);
    let plan = planned(any(), &[id(1, 0), id(1, 3), id(1, 2)]).unwrap();
    assert_eq!(plan.warnings, [same_device(3, 1)]);
    let plan = planned(any(), &[id(2, 0), id(1, 0), id(2, 1)]).unwrap();
    assert_eq!(plan.warnings, [several(2), same_device(2, 2)]);
    let plan = planned(any(), &[id(2, 0), id(1, 0)]).unwrap();
    assert_eq!(plan.warnings, [several(2)]);
}

#[test]
fn first_reports_replicas_only_of_the_device_that_is_assigned() {
    let mut policy = sharing(4, SharedRequests::Any);
    Arc::make_mut(&mut policy.container).multi_device = MultiDevice::First;
    let plan = planned(policy, &[id(2, 0), id(2, 1), id(1, 0), id(1, 3)]).unwrap();
    let device = PnpId::new(r"PCI\VEN_10DE\1&0");
    let first = PlanWarning::OnlyFirstDevice { requested: 2, device };
    assert_eq!(plan.warnings, [first, same_device(2, 1)]);
}

#[test]
fn an_unusable_device_id_is_the_first_reason() {
    let error = planned(sharing(2, SharedRequests::One), &[id(1, 0), id(1, 7)]).unwrap_err();
    assert!(matches!(error, PlanError::Replica(_)), "{error}");
    let mut policy = sharing(2, SharedRequests::One);
    Arc::make_mut(&mut policy.container).multi_device = MultiDevice::Reject;
    let error = planned(policy, &[id(1, 0), id(2, 0)]).unwrap_err();
    assert!(matches!(error, PlanError::SharedRequest { requested: 2, .. }), "{error}");
}

#[test]
fn the_legacy_model_follows_the_same_rule() {
    let mut legacy = model(DriverModel::Legacy);
    legacy.sharing.replicas = wddm(2).sharing.replicas;
    let ids = [id(1, 0), id(1, 1)];
    assert_eq!(planned(legacy.clone(), &ids).unwrap().warnings, [same_device(2, 1)]);
    legacy.sharing.shared_requests = SharedRequests::One;
    assert!(matches!(planned(legacy, &ids), Err(PlanError::SharedRequest { .. })));
}

proptest! {
    /// With `one` a request is refused exactly when it has several replicas of shared
    /// devices; with `any` it never is, and every repeated device has one warning.
    #[test]
    fn several_shared_replicas_are_refused_or_reported(
        requested in prop::collection::btree_set((1..3u32, 0..4u32), 1..8),
        replicas in prop::sample::select(vec![1u32, 4]),
    ) {
        let requested: Vec<_> = requested.into_iter().filter(|(_, number)| *number < replicas).collect();
        prop_assume!(!requested.is_empty());
        let ids: Vec<String> = requested.iter().map(|(device, replica)| id(*device, *replica)).collect();
        let one = planned(sharing(replicas, SharedRequests::One), &ids);
        let refused = matches!(one, Err(PlanError::SharedRequest { requested: count, .. }) if count == ids.len());
        prop_assert_eq!(refused, replicas > 1 && ids.len() > 1);
        prop_assert!(refused || one.is_ok());

        let any = planned(sharing(replicas, SharedRequests::Any), &ids);
        prop_assert!(any.is_ok());
        let expected: Vec<PlanWarning> = [1, 2]
            .into_iter()
            .map(|device| (requested.iter().filter(|(d, _)| *d == device).count(), device))
            .filter(|(count, _)| *count > 1)
            .map(|(count, device)| same_device(count, device))
            .collect();
        let is_same_device = |w: &PlanWarning| matches!(w, PlanWarning::ReplicasOfSameDevice { .. });
        let reported = any.unwrap().warnings.into_iter().filter(is_same_device);
        prop_assert_eq!(reported.collect::<Vec<_>>(), expected);
    }
}
