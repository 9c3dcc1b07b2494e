use host::{HcsFailure, HcsFailureKind, HostFacts};

use super::*;

#[test]
fn windows() {
    let page = include_str!("../../../../../../docs/drivers.md");
    assert!(
        page.contains("(10.0.17763.1457)"),
        "the page names the first revision without a warning"
    );
    let mut table = Table::of(&[Subject::Windows]);
    for build in [
        "10.0.14393.5582",
        "10.0.17762.1",
        "10.0.17763.1339",
        "10.0.17763.1456",
        "10.0.17763.1457",
        "10.0.17763.0",
        "10.0.18363.1",
        "10.0.19041.1",
        "10.0.20348.1",
        "10.0.26100.1",
    ] {
        table.row(format!("build {build}"), |facts| facts.set_build(build));
    }
    table.row("only the build is known", |facts| {
        facts.snapshot.host =
            HostFacts { build: facts.snapshot.host.build, ..HostFacts::default() };
    });
    table.row("nothing is known of the host", |facts| facts.snapshot.host = HostFacts::default());
    insta::assert_snapshot!(table.text());
}

#[test]
fn host_compute_service() {
    let mut table = Table::of(&[Subject::Hcs]);
    let failed = |facts: &mut NodeFacts, kind| {
        let message = "what HCS answered".to_owned();
        facts.snapshot.node.hcs_failure = Some(HcsFailure { kind, message });
    };
    table.row("HCS is missing", |facts| failed(facts, HcsFailureKind::Missing));
    table.row("HCS is missing on Windows 11", |facts| {
        failed(facts, HcsFailureKind::Missing);
        facts.snapshot.host.product = Some("Microsoft Windows 11 Pro".to_owned());
    });
    table.row("HCS does not respond", |facts| failed(facts, HcsFailureKind::Unresponsive));
    for schemas in [&[][..], &["2.1"], &["1.0", "2.1"], &["2.2"], &["2.5"], &["2.1", "2.5"]] {
        table.row(format!("schemas {schemas:?}"), |facts| {
            let schemas = schemas.iter().map(|schema| schema.parse().unwrap());
            facts.snapshot.host.hcs_schemas = schemas.collect();
        });
    }
    insta::assert_snapshot!(table.text());
}

/// Build and configuration decide what the plugin does.
#[test]
fn the_effect_of_an_old_schema() {
    let mut table = Table::of(&[Subject::Hcs]);
    let mut row = |words: &str, build: &str, change: &dyn Fn(&mut NodeFacts)| {
        table.row(format!("schema 2.1 on {build}{words}"), |facts| {
            facts.set_build(build);
            facts.snapshot.host.hcs_schemas = vec!["2.1".parse().unwrap()];
            change(facts);
        });
    };
    let only = |facts: &mut NodeFacts, model| {
        let flags = Flags { driver_models: vec![model], ..Flags::default() };
        facts.configuration = config::load(&flags, &EmptyEnvironment);
    };
    let server_2019 = "10.0.17763.1";
    row("", server_2019, &|_| ());
    row("", "10.0.18362.1", &|_| ());
    row(" with only wddm", server_2019, &|facts| only(facts, DriverModel::Wddm));
    row(" with legacy", server_2019, &|facts| only(facts, DriverModel::Legacy));
    row(" with legacy", "10.0.20348.1", &|facts| only(facts, DriverModel::Legacy));
    row(" with a device class for mcdm", server_2019, &|facts| {
        let class = "1024E4C9-47C9-48D3-B4A8-F9DF78523B53".parse().unwrap();
        Arc::make_mut(&mut facts.models()[1].container).device_class = Some(class);
    });
    row(" with an invalid configuration", server_2019, &NodeFacts::invalid_configuration);
    insta::assert_snapshot!(table.text());
}

#[test]
fn image() {
    let mut table = Table::of(&[Subject::Image]);
    for (image, build) in [
        ("10.0.20348.1", "10.0.20348.1547"),
        ("10.0.17763", "10.0.20348.1547"),
        ("10.0.26100", "10.0.20348.1547"),
        ("10.0.17763.1", "10.0.26100.1"),
    ] {
        table.row(format!("image of {image}, build {build}"), |facts| {
            facts.image = Some(image.parse().unwrap());
            facts.set_build(build);
        });
    }
    table.row("no image", |facts| facts.image = None);
    table.row("no build", |facts| facts.snapshot.host.build = None);
    insta::assert_snapshot!(table.text());
}

#[test]
fn containerd() {
    let mut table = Table::of(&[Subject::Containerd]);
    let set = |facts: &mut NodeFacts, program, disabled: Option<&[&str]>| {
        let disabled_plugins = disabled.map(|list| list.iter().map(|p| (*p).to_owned()).collect());
        facts.snapshot.node.containerd = Some(Containerd { program, disabled_plugins });
    };
    let mut row = |version: &str, disabled: Option<&[&str]>| {
        table.row(format!("containerd {version}, disabled plugins {disabled:?}"), |facts| {
            set(facts, program(r"C:\containerd.exe", version), disabled);
        });
    };
    // Old releases work.
    for version in ["1.6.36", "1.7.0", "2.2.9"] {
        row(version, Some(&[]));
    }
    row("2.3.2", Some(&["io.containerd.internal.v1.opt"]));
    for cri in ["cri", "io.containerd.grpc.v1.cri", "io.containerd.cri.v1.runtime"] {
        row("1.7.0", Some(&[cri]));
    }
    row("2.3.2", None);
    row("without a version", None);
    table.row("containerd 2.0.10 beside kubelet 1.35.0", |facts| {
        set(facts, program(r"C:\containerd.exe", "2.0.10"), Some(&[]));
        facts.snapshot.node.kubelet = Some(program(r"C:\k\kubelet.exe", "v1.35.0"));
    });
    table.row("no containerd", |facts| {
        set(facts, Program::NotFound(vec!["PATH".to_owned()]), None);
    });
    insta::assert_snapshot!(table.text());
}

#[test]
fn kubelet() {
    let mut table = Table::of(&[Subject::Kubelet]);
    for version in ["v1.25.16", "v1.26.0", "without a version"] {
        table.row(format!("kubelet {version}"), |facts| {
            facts.snapshot.node.kubelet = Some(program(r"C:\k\kubelet.exe", version));
        });
    }
    table.row("no kubelet", |facts| {
        facts.snapshot.node.kubelet = Some(Program::NotFound(vec!["PATH".to_owned()]));
    });
    insta::assert_snapshot!(table.text());
}
