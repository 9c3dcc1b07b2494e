use device_plugin::status::StatusError;
use devices::UnhealthyReason;
use report::{ReportedDevice, Unhealthy, UnhealthyKind};

use super::*;

fn first_device(report: &mut PluginReport) -> &mut ReportedDevice {
    &mut report.node.resources[0].devices[0]
}

fn set_unhealthy(device: &mut ReportedDevice, kind: UnhealthyKind, text: &impl ToString) {
    device.unhealthy = Some(Unhealthy { kind, text: text.to_string() });
}

/// The plugin of this host answers after a change.
fn answer(facts: &mut NodeFacts, change: impl FnOnce(&mut PluginReport)) {
    facts.plugin = Some(answers(&facts.snapshot, change));
}

#[test]
fn what_a_plugin_reports() {
    let mut table = Table::of(&[Subject::Plugin]);
    table.row(
        "a device is unhealthy, there are notices, and a configuration is rejected",
        |facts| {
            answer(facts, |report| {
                let device = first_device(report);
                set_unhealthy(device, UnhealthyKind::ProblemCode, &"code 43");
                // The first one is what the line of the device says.
                let known = format!("device {} is unhealthy: code 43", device.id);
                report.notices = vec![known, "no files".into()];
                report.rejected_configuration = Some("unknown key `x`".to_owned());
            });
        },
    );
    table.row("a device waits for directx-visible", |facts| {
        answer(facts, |report| {
            let reason = UnhealthyReason::NoLauncher;
            set_unhealthy(first_device(report), UnhealthyKind::NoLauncher, &reason);
        });
    });
    let removed = |report: &mut PluginReport| {
        let device = first_device(report);
        device.id = PnpId::new(r"PCI\VEN_10DE\1");
        set_unhealthy(device, UnhealthyKind::Removed, &UnhealthyReason::Removed);
    };
    table.row("a device is removed", |facts| answer(facts, removed));
    // It is not looked for in its slot.
    table.row("a device lost its adapter", |facts| {
        facts.without_adapter(r"PCI\VEN_10DE\1", 43);
        answer(facts, removed);
    });
    table.row("the devices are not known yet", |facts| {
        answer(facts, |report| report.pending = Some("reading adapters".to_owned()));
    });
    table.row("the plugin for the other driver model does not run", |facts| {
        answer(facts, |report| {
            report.driver_models = vec![DriverModel::Wddm];
            report.other_driver_models = vec![DriverModel::Mcdm];
        });
    });
    insta::assert_snapshot!(table.text());
}

#[test]
fn a_plugin_that_reports_nothing() {
    let mut table = Table::of(&[Subject::Plugin]);
    let answer = |answer| Some(Answers::of([(PathBuf::from("/x/wddm-1.sock"), answer)]));
    table.row("not asked: an inventory", |facts| facts.plugin = None);
    table.row("no daemon answers", |facts| facts.plugin = Some(Answers::default()));
    table.row("busy", |facts| facts.plugin = answer(Err(StatusError::Busy)));
    table.row("a plugin of another version", |facts| {
        let name = "a/b".to_owned();
        let resources = vec![ResourceStatus { name, ..ResourceStatus::default() }];
        let document = br#"{"format": 2, "version": "99.0.0"}"#.to_vec();
        facts.plugin = answer(Ok(StatusReport { resources, document, instance: 1 }));
    });
    insta::assert_snapshot!(table.text());
}

/// It may run with another configuration than this program, which knows what is not advertised.
#[test]
fn the_plugin_decides_what_is_listed() {
    let mut table = Table::of(&[Subject::Resources]);
    let with_integrated = |facts: &mut NodeFacts| {
        facts.second(|adapter| {
            adapter.integrated = true;
            adapter.pnp.as_mut().unwrap().location_paths.clear();
        });
    };
    table.row("an integrated adapter; 4 replicas, and a removed device", |facts| {
        with_integrated(facts);
        answer(facts, |report| {
            let resource = &mut report.node.resources[0];
            resource.replicas = 4.try_into().unwrap();
            let mut removed = resource.devices[0].clone();
            removed.id = PnpId::new(r"PCI\GONE");
            set_unhealthy(&mut removed, UnhealthyKind::Removed, &UnhealthyReason::Removed);
            resource.devices.push(removed);
        });
    });
    table.row("an integrated adapter; the plugin lists no device", |facts| {
        with_integrated(facts);
        answer(facts, |report| report.node.resources[0].devices.clear());
    });
    insta::assert_snapshot!(table.text());
}
