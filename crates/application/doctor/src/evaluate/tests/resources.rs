use devices::{DeviceMatch, NotAdvertised, NotAdvertisedReason, ResourceRule, Visibility};
use host::{Cordons, LauncherFiles, Luid};

use super::super::resources::not_advertised;
use super::*;

#[test]
fn configuration_with_a_notice() {
    let mut table = Table::of(&[Subject::Configuration]);
    table.row("a value has no effect", |facts| {
        facts.configuration.as_mut().unwrap().notices.push("what has no effect".to_owned());
    });
    insta::assert_snapshot!(table.text());
}

#[test]
fn resources() {
    let mut table = Table::of(&[Subject::Resources]);
    table.row("one GPU", |_| ());
    table.row("the device has a problem", |facts| facts.pnp().problem_code = 10);
    table.row("the device is cordoned", |facts| {
        let id = facts.pnp().id.as_str().parse().unwrap();
        facts.snapshot.cordoned = Cordons::Known(vec![id]);
    });
    table.row("the device waits for directx-visible", |facts| {
        facts.snapshot.host.launcher = LauncherFiles::NotProvided;
        facts.container().visibility = Visibility::Required;
    });
    table.row("one device is cordoned, the other one waits for directx-visible", |facts| {
        facts.second(|_| ());
        facts.snapshot.cordoned = Cordons::Known(vec!["PCIROOT(0)#PCI(1B00)".parse().unwrap()]);
        facts.snapshot.host.launcher = LauncherFiles::NotProvided;
        facts.container().visibility = Visibility::Required;
    });
    table.row("a cordon names no device", |facts| {
        facts.snapshot.cordoned = Cordons::Known(vec!["PCIROOT(9)".parse().unwrap()]);
    });
    table.row("the cordons are not known", |facts| {
        facts.snapshot.cordoned = Cordons::Unknown("cannot read `cordons`".to_owned());
    });
    table.row("two devices with one location path", |facts| {
        let paths = facts.pnp().location_paths.clone();
        facts.second(|adapter| adapter.pnp.as_mut().unwrap().location_paths = paths);
    });
    insta::assert_snapshot!(table.text());
}

#[test]
fn the_only_adapter_is_not_advertised() {
    let mut table = Table::of(&[Subject::Resources]);
    table.row("no location path", |facts| facts.pnp().location_paths.clear());
    table.row("software", |facts| facts.adapter().hardware = false);
    table.row("integrated", |facts| facts.adapter().integrated = true);
    table.row("detachable", |facts| facts.adapter().detachable = true);
    table.row("integrated and without a name", |facts| {
        facts.adapter().integrated = true;
        facts.adapter().driver_description.clear();
        facts.pnp().description.clear();
    });
    table.row("only mcdm is enabled", |facts| facts.only_model(DriverModel::Mcdm));
    // Its driver, or the GPU, has no compute.
    let mut only_display = |words: &str, change: fn(&mut Adapter)| {
        table.row(format!("only Direct3D 11, {words}"), |facts| {
            facts.adapter().attributes = Attributes::from_iter([Attribute::D3d11Graphics]);
            change(facts.adapter());
        });
    };
    only_display("driver of the vendor", |_| ());
    only_display("driver with the version of Windows", |adapter| {
        adapter.driver_version = "10.0.20348.1".parse().ok();
    });
    only_display("driver with the folder of Windows", |adapter| {
        adapter.driver_store.as_mut().unwrap().path =
            r"C:\Windows\System32\DriverStore\FileRepository\basicdisplay.inf_amd64_1".to_owned();
    });
    only_display("driver with the name of Windows", |adapter| {
        adapter.pnp.as_mut().unwrap().description = "Microsoft Basic Display Adapter".to_owned();
    });
    only_display("and then only media", |adapter| {
        adapter.attributes = Attributes::from_iter([Attribute::D3d12GenericMedia]);
    });
    insta::assert_snapshot!(table.text());
}

/// Faults need a fix in any case. What the configuration excludes, and a GPU without a usable driver,
/// need one only if pods can get no other device.
#[test]
fn every_reason_not_to_advertise_an_adapter() {
    let snapshot = two_gpus();
    let mut table = String::new();
    for reason in NotAdvertisedReason::every() {
        let description = "GPU".to_owned();
        let adapter = NotAdvertised { luid: Luid(7), description, reason, resource: None };
        let reason = &adapter.reason;
        let printed = |is_empty| {
            let finding = not_advertised(&adapter, is_empty, &snapshot);
            finding.map_or(format!("no finding: {reason}\n"), |finding| printed(&finding))
        };
        let (alone, beside) = (printed(true), printed(false));
        let both = if alone == beside { "in any case" } else { "without another device" };
        writeln!(table, "# {both}\n{alone}").unwrap();
        if alone != beside {
            writeln!(table, "# beside another device\n{beside}").unwrap();
        }
    }
    insta::assert_snapshot!(table);
}

/// Two GPUs, of which the second is a neural processor.
fn gpu_and_npu(facts: &mut NodeFacts) {
    facts.second(|adapter| adapter.attributes = Attributes::from_iter([Attribute::Npu]));
}

/// Each resource is asked for separately: pods that request one do not get a device of another.
#[test]
fn a_resource_without_devices_beside_one_with_devices() {
    let mut table = Table::of(&[Subject::Resources]);
    let mut row = |words: &str, change: fn(&mut NodeFacts)| {
        table.row(format!("a GPU and an NPU: {words}"), |facts| {
            gpu_and_npu(facts);
            change(facts);
        });
    };
    row("the GPU is integrated", |facts| facts.adapter().integrated = true);
    row("the GPU is detachable", |facts| facts.adapter().detachable = true);
    row("the GPU has no location path", |facts| facts.pnp().location_paths.clear());
    row("the GPU is removed", |facts| _ = facts.adapters().remove(0));
    row("the GPU and another one are integrated", |facts| {
        facts.adapter().integrated = true;
        let mut other = facts.adapter().clone();
        other.luid = Luid(3);
        other.pnp.as_mut().unwrap().id = PnpId::new(r"PCI\3");
        facts.adapters().push(other);
    });
    table.row("two GPUs: the first is integrated", |facts| {
        facts.second(|_| ());
        facts.adapter().integrated = true;
    });
    insta::assert_snapshot!(table.text());
}

fn rule(name: &str, matches: &DeviceMatch) -> ResourceRule {
    let (name, matches) = (name.parse().unwrap(), matches.clone());
    ResourceRule { name, matches, replicas: None, allocation: None, visibility: None }
}

fn set_rules(facts: &mut NodeFacts, rules: &[ResourceRule]) {
    for model in facts.models() {
        model.rules = rules.into();
    }
}

#[test]
fn rules_take_devices_or_match_none() {
    let amd = DeviceMatch { vendor: Some(Vendor::Amd), ..DeviceMatch::default() };
    let big = DeviceMatch { min_memory_mib: Some(1 << 40), ..amd.clone() };
    let nvidia = DeviceMatch { vendor: Some(Vendor::Nvidia), ..DeviceMatch::default() };
    let of_nvidia = [rule("nvidia.com/gpu", &nvidia)];
    let mut table = Table::of(&[Subject::Resources]);
    // An administrator chose the other name, so this is no warning.
    table.row("a rule for NVIDIA", |facts| set_rules(facts, &of_nvidia));
    table.row("a rule for NVIDIA, and two GPUs", |facts| {
        facts.second(|_| ());
        set_rules(facts, &of_nvidia);
    });
    table.row("a rule for NVIDIA, and Intel's GPU is integrated", |facts| {
        facts.second(|adapter| {
            adapter.hardware_id.vendor = 0x8086;
            adapter.integrated = true;
        });
        set_rules(facts, &of_nvidia);
    });
    table.row("rules for AMD, AMD with much memory, NVIDIA, and NVIDIA again", |facts| {
        let rules = [
            rule("amd.com/gpu", &amd),
            rule("amd.com/big", &big),
            rule("nvidia.com/gpu", &nvidia),
            rule("nvidia.com/second", &nvidia),
        ];
        set_rules(facts, &rules);
    });
    // One line is enough.
    table.row("a rule for NVIDIA, whose GPU needs wddm, and only mcdm is enabled", |facts| {
        gpu_and_npu(facts);
        facts.adapters()[1].hardware_id.vendor = 0x8086;
        set_rules(facts, &of_nvidia);
        facts.only_model(DriverModel::Mcdm);
    });
    insta::assert_snapshot!(table.text());
}
