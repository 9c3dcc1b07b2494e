//! A scrape of a recorded host, with made-up telemetry and holders.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use daemon::configuration::ReloadStatus;
use daemon::metrics::{Holder, METRICS, PluginMetrics, RefusalReason, Scrape};
use device_plugin::status::Phase;
use device_plugin::{Readiness, ResourceReadiness};
use devices::{Catalog, DeviceSet, Moment};
use host::{EngineKind, EngineTelemetry, License, Luid, MemoryUse, ReplicaId, Telemetry, UtcTime};
use process::metrics::render;
use win32::container_processes::{ContainerName, ContainerProcess};

const FIRST: &str = r"PCI\VEN_10DE&DEV_1EB8&SUBSYS_12A210DE&REV_A1\3&13C0B0C5&1&D8";
const SECOND: &str = r"PCI\VEN_10DE&DEV_1EB8&SUBSYS_12A210DE&REV_A1\3&13C0B0C5&1&E0";

/// An environment with one file and nothing else.
struct OneFile<'a>(&'a str);

impl config::Environment for OneFile<'_> {
    fn variable(&self, _: &str) -> Option<std::ffi::OsString> {
        None
    }

    fn variable_names(&self) -> Vec<String> {
        Vec::new()
    }

    fn working_directory(&self) -> std::io::Result<PathBuf> {
        Ok("/".into())
    }

    fn read(&self, _: &std::path::Path) -> std::io::Result<Vec<u8>> {
        Ok(self.0.as_bytes().to_vec())
    }
}

fn device_set(config: &str) -> DeviceSet {
    let inventories =
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../fixtures/inventories");
    let mut snapshot = config::inventory::read(&inventories.join("aws-t4-two.yaml")).unwrap();
    snapshot.adapters[0].nvidia.license =
        Some(License::until(UtcTime::from_calendar([2026, 12, 1, 10, 0, 0])));
    snapshot.adapters[1].nvidia.license = Some(License::MISSING);
    let flags = config::Flags { config: Some("config.yaml".into()), ..Default::default() };
    let config = config::load(&flags, &OneFile(config)).unwrap();
    DeviceSet::next(None, Catalog::new(config.policy).offer(&snapshot), Moment::default())
}

fn telemetry() -> Telemetry {
    let engine = |index, kind, seconds| EngineTelemetry {
        index,
        kind,
        name: None,
        running_time: Duration::from_secs_f64(seconds),
    };
    let memory = |used_bytes, budget| Some(MemoryUse { used_bytes, budget_bytes: budget });
    Telemetry {
        engines: vec![engine(0, EngineKind::ThreeD, 12.5), engine(1, EngineKind::Copy, 0.25)],
        dedicated: memory(1 << 30, Some(16 << 30)),
        shared: memory(1 << 20, None),
        temperature_celsius: Some(47.5),
        engine_hertz: Some(1_590_000_000),
        memory_hertz: None,
        power_percent: Some(35.0),
        fan_rpm: Some(1200),
        resets: Some(1),
    }
}

fn holder(replica: &str, pod: &str) -> Holder {
    Holder {
        resource: "directx.microsoft.com/display".to_owned(),
        replica: ReplicaId::parse(replica).unwrap(),
        namespace: "team-a".to_owned(),
        pod: pod.to_owned(),
        pod_uid: Some(format!("uid-of-{pod}")),
        container: "main".to_owned(),
    }
}

/// The text of a scrape in which the first device is held by `holders`.
fn text(config: &str, holders: &[Holder]) -> String {
    let set = device_set(config);
    let first = set.resources[0].entries()[0].device.luid;
    let telemetry: BTreeMap<Luid, Telemetry> = [(first, telemetry())].into();
    let metrics = PluginMetrics::default();
    let resource = "directx.microsoft.com/display";
    metrics.add_resource(resource);
    metrics.allocate_answered(resource, Ok(()), Duration::from_micros(80));
    metrics.allocate_answered(resource, Err(RefusalReason::Unhealthy), Duration::from_micros(20));
    metrics.list_updated(resource);
    metrics.discovery_seconds.observe(0.003);
    metrics.discovery_failures.inc();
    let processes = [ContainerProcess {
        process_id: 4711,
        name: ContainerName {
            namespace: "team-a".to_owned(),
            pod: "one".to_owned(),
            container: "main".to_owned(),
        },
        container_id: "c0ffee".to_owned(),
    }];
    let mut state = ResourceReadiness::starting(resource);
    state.phase = Phase::Ready;
    state.registrations.insert("startup", 1);
    let mut readiness = Readiness::default();
    readiness.resources.push(state);
    render(Scrape {
        metrics,
        host_name: "node-1".to_owned(),
        version: "0.1.0",
        devices: Arc::new(set),
        telemetry: Some((Arc::new(telemetry), Duration::from_millis(250))),
        holders: holders.to_vec(),
        processes: processes.into(),
        readiness,
        reloads: ReloadStatus { applied: 2, rejected: 1, last_error: Some("bad".to_owned()) },
        log_lines_dropped: 3,
        readings: vec![("telemetry", "timeout", 4)],
    })
}

#[test]
fn a_license_is_a_state_and_the_time_at_which_it_expires() {
    let text = text("", &[]);
    let states = series(&text, "directx_device_license_state{");
    let values: Vec<&str> = states.iter().filter_map(|series| series.rsplit(' ').next()).collect();
    assert_eq!(values, ["1.0", "0.0"], "{text}");
    let [expiry] =
        series(&text, "directx_device_license_expiration_timestamp_seconds{").try_into().unwrap();
    assert!(expiry.ends_with(" 1796119200.0"), "{expiry}");
}

/// The series of a metric, each without its name.
fn series<'a>(text: &'a str, name: &str) -> Vec<&'a str> {
    text.lines().filter_map(|line| line.strip_prefix(name)).collect()
}

#[test]
fn every_metric_is_in_the_text_with_its_labels() {
    let text = text("", &[holder(&format!(r"{FIRST}\0"), "one")]);
    for metric in METRICS {
        let series = series(&text, metric.name);
        assert!(!series.is_empty(), "{}", metric.name);
        let first = series.iter().find(|series| series.contains('=')).copied().unwrap_or_default();
        let names: BTreeSet<&str> = first
            .split(['{', ','])
            .filter_map(|pair| pair.split_once('=').map(|(name, _)| name))
            .filter(|name| *name != "le")
            .collect();
        let expected: BTreeSet<&str> = metric.labels.iter().copied().collect();
        assert_eq!(names, expected, "{}: {first}", metric.name);
    }
}

#[test]
fn the_text_is_stable() {
    let holders = [holder(&format!(r"{FIRST}\0"), "one")];
    // `testing/kubernetes/metrics` reads the file.
    insta::assert_snapshot!("openmetrics", on_linux(&text("", &holders)));
}

/// The text as a program for Linux on x86-64 writes it.
fn on_linux(text: &str) -> String {
    let machine = |os, arch| format!("os=\"{os}\",arch=\"{arch}\"");
    let here = machine(std::env::consts::OS, std::env::consts::ARCH);
    text.replace(&here, &machine("linux", "x86_64"))
}

#[test]
fn a_shared_device_belongs_to_no_single_container() {
    let config = "multitenancy: 4";
    let replica = |n| format!(r"{FIRST}\{n}");
    let alone =
        [holder(&replica(0), "one"), holder(&replica(2), "one"), holder(&replica(0), "one")];
    let alone = text(config, &alone);
    let temperature = series(&alone, "directx_device_temperature_celsius");
    assert!(temperature[0].contains(r#"namespace="team-a",pod="one",container="main"} 47.5"#));
    let allocated = series(&alone, "directx_device_allocated_replicas");
    assert!(allocated.len() == 1 && allocated[0].ends_with("} 2.0"), "{allocated:?}");

    let shared = [holder(&replica(0), "one"), holder(&replica(2), "two")];
    let shared = text(config, &shared);
    let temperature = series(&shared, "directx_device_temperature_celsius");
    assert!(temperature.len() == 1 && temperature[0].contains(r#"pod="""#), "{temperature:?}");
    let allocated = series(&shared, "directx_device_allocated_replicas");
    assert!(
        allocated.len() == 2 && allocated.iter().all(|s| s.ends_with("} 1.0")),
        "{allocated:?}"
    );
}

/// After `renameShared` was switched on, the resource has another name.
#[test]
fn a_device_that_was_allocated_under_an_earlier_name_belongs_to_both_pods() {
    let earlier =
        Holder { resource: "a/earlier".to_owned(), ..holder(&format!(r"{FIRST}\1"), "b") };
    let text = text("multitenancy: 4", &[earlier, holder(&format!(r"{FIRST}\0"), "new")]);
    let info = series(&text, "directx_device_info");
    assert!(info[0].contains(r#"pod="",container="""#), "{info:?}");
    let allocated = series(&text, "directx_device_allocated_replicas");
    let held = |resource: &str, pod: &str| {
        let labels = format!(r#"resource="{resource}",namespace="team-a",pod="{pod}""#);
        allocated.iter().filter(|series| series.contains(&labels)).count()
    };
    assert_eq!(held("a/earlier", "b"), 1, "{allocated:?}");
    assert_eq!(held("directx.microsoft.com/display", "new"), 1, "{allocated:?}");
}

#[test]
fn text_from_elsewhere_is_escaped() {
    let replica = format!(r"{SECOND}\0");
    let hostile = Holder { pod: "a\"b\\c\nd".to_owned(), ..holder(&replica, "") };
    let text = text("", &[hostile]);
    assert!(text.contains(r#"pod="a\"b\\c\nd""#), "{text}");
    assert!(text.contains(&SECOND.replace('\\', r"\\")), "{text}");
}
