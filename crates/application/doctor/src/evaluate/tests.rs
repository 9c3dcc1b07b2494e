//! The status of each rule.

use std::path::PathBuf;
use std::sync::Arc;

use command_line::HostError;
use config::ConfigError;
use config::{Config, EmptyEnvironment, Flags};
use daemon::answering_daemons::Answers;
use daemon::plugin_report::PluginReport;
use device_plugin::status::{Phase, ResourceStatus, StatusError, StatusReport};
use devices::{
    AdditionalMount, AdditionalMounts, Catalog, ContainerPolicy, DeviceMatch, DeviceSet,
    DriverModel, Moment, NotAdvertised, NotAdvertisedReason, Policy, Remedy, ResourceRule,
    RuntimeMounts, Visibility,
};
use host::{
    Adapter, AdapterWarning, Attribute, Attributes, Containerd, CopyToVmValue, Cordons,
    DriverStore, HardwareId, HcsFailure, HcsFailureKind, HostFacts, HostSnapshot, Hypervisor,
    LauncherFiles, License, Luid, NodeSoftware, NvidiaGpu, Nvml, PnpDevice, PnpId, Program,
    ProgramVersion, StoreFiles, Vendor, WarningEffect, Wow64,
};
use report::{Unhealthy, UnhealthyKind};
use strum::VariantArray as _;

use super::evaluate;
use super::resources::not_advertised;
use crate::collect::NodeFacts;
use crate::finding::{Finding, Status, Subject};

const TWO_T4: &str = include_str!("../../../../../fixtures/inventories/aws-t4-two.yaml");

/// A node without a fault: Server 2022 with one T4.
pub(crate) fn healthy() -> NodeFacts {
    let mut snapshot = two_gpus();
    snapshot.adapters.truncate(1);
    snapshot.adapters[0].nvidia.license = Some(License::NOT_REQUIRED);
    let found = |path: &str, version| Program::Found {
        path: path.to_owned(),
        version: ProgramVersion::find(version).ok_or_else(String::new),
    };
    snapshot.node = NodeSoftware {
        hcs_failure: None,
        containerd: Some(Containerd {
            program: found(r"C:\containerd.exe", "2.3.7"),
            disabled_plugins: Some(vec![]),
        }),
        kubelet: Some(found(r"C:\k\kubelet.exe", "v1.31.1")),
        nvml: Some(nvml(&["WDDM"])),
    };
    let plugin = Some(answers(&snapshot, &configuration(), |_| {}));
    NodeFacts {
        snapshot,
        unread: None,
        missing_launcher_files: vec![],
        image: Some("10.0.20348.x".parse().unwrap()),
        directory: [Subject::KubeletDirectory, Subject::KubeletSocket].map(|s| s.ok("")),
        configuration: Ok(configuration()),
        plugin,
    }
}

/// What a plugin with this configuration answers, after `change`.
fn answers(
    snapshot: &HostSnapshot,
    config: &Config,
    change: impl FnOnce(&mut PluginReport),
) -> Answers {
    let offer = Catalog::new(config.policy.clone()).offer(snapshot);
    let set = DeviceSet::next(None, offer, Moment::default());
    let mut report = PluginReport::new(String::new(), &set, None);
    change(&mut report);
    let resources = set.resources.iter().map(|resource| ResourceStatus {
        name: resource.spec.name.to_string(),
        phase: Phase::Ready.into(),
        ..ResourceStatus::default()
    });
    let resources = resources.collect();
    let document = report.document();
    let status = StatusReport { resources, document, instance: 1 };
    Answers::of([(PathBuf::from("/x/wddm-1.sock"), Ok(status))])
}

/// A node whose adapters cannot be read.
fn unreadable(facts: &mut NodeFacts) {
    facts.unread = Some(HostError::Unsupported("no dxcore.dll".into()));
    facts.snapshot.adapters.clear();
}

fn two_gpus() -> HostSnapshot {
    config::inventory::parse("aws-t4-two.yaml", TWO_T4).unwrap()
}

fn configuration() -> Config {
    config::load(&Flags::default(), &EmptyEnvironment).unwrap()
}

fn nvml(models: &[&str]) -> Nvml {
    let gpu = |(n, model): (usize, &&str)| NvidiaGpu {
        index: u32::try_from(n).unwrap(),
        name: "NVIDIA Tesla T4".to_owned(),
        driver_version: "528.49".to_owned(),
        driver_model: (*model).to_owned(),
    };
    Nvml {
        library: Some(r"C:\Windows\System32\nvml.dll".to_owned()),
        gpus: Ok(models.iter().enumerate().map(gpu).collect()),
    }
}

fn names(subjects: &[Subject]) -> Vec<&'static str> {
    subjects.iter().map(|subject| (*subject).into()).collect()
}

/// The checks of `subject` after `change` to a healthy node.
fn changed(subject: Subject, change: impl FnOnce(&mut NodeFacts)) -> Vec<Finding> {
    let mut facts = healthy();
    if subject == Subject::Resources {
        // A plugin that runs would decide, whatever the test changes.
        facts.plugin = Some(Answers::default());
    }
    change(&mut facts);
    evaluate(&facts).into_iter().filter(|check| check.name == <&str>::from(subject)).collect()
}

/// Status and text of the only check of `subject`.
fn only(subject: Subject, change: impl FnOnce(&mut NodeFacts)) -> (Status, String) {
    let checks = changed(subject, change);
    let [check] = checks.as_slice() else { panic!("{checks:?}") };
    if check.status >= Status::Warning {
        assert!(check.hint.is_some(), "no hint with {check:?}");
    }
    (check.status, check.what.clone())
}

fn adapters(facts: &mut NodeFacts) -> &mut Vec<Adapter> {
    &mut facts.snapshot.adapters
}

fn store(facts: &mut NodeFacts) -> &mut DriverStore {
    adapters(facts)[0].driver_store.as_mut().unwrap()
}

#[test]
fn a_healthy_node_is_ok_in_every_subject() {
    let checks = evaluate(&healthy());
    let faults: Vec<_> = checks.iter().filter(|check| check.status != Status::Ok).collect();
    assert!(faults.is_empty(), "{faults:?}");
    let mut order: Vec<&str> = checks.iter().map(|check| check.name).collect();
    order.dedup();
    assert_eq!(order, names(Subject::VARIANTS));
}

#[test]
fn windows_must_be_supported_and_the_line_does_not_speak_of_the_plugin() {
    let build = |build: &str| {
        only(Subject::Windows, |facts| facts.snapshot.host.build = Some(build.parse().unwrap()))
    };
    for (version, status, text) in [
        ("10.0.14393.5582", Status::Failed, "cannot list"),
        ("10.0.17762.1", Status::Failed, "cannot list"),
        ("10.0.17763.4010", Status::Ok, "no DXCore"),
        ("10.0.18363.1", Status::Ok, "no DXCore"),
        ("10.0.19041.1", Status::Ok, "(build 10.0.19041.1)"),
        ("10.0.20348.1547", Status::Ok, "(build 10.0.20348.1547)"),
        ("10.0.26100.1", Status::Ok, "Windows itself provides"),
    ] {
        let (found, what) = build(version);
        assert_eq!(found, status, "{version}");
        assert!(what.contains(text) && what.contains(version), "{what}");
        assert!(!what.contains("plugin") && !what.contains("runtimeMounts"), "{what}");
    }
    let unknown = only(Subject::Windows, |facts| facts.snapshot.host = HostFacts::default());
    assert_eq!(unknown.0, Status::Skipped);
}

#[test]
fn hcs_is_missing_unresponsive_old_or_unknown() {
    let failed = |kind, message: &str| {
        only(Subject::Hcs, |facts| {
            facts.snapshot.host.hcs_schemas.clear();
            facts.snapshot.node.hcs_failure =
                Some(HcsFailure { kind, message: message.to_owned() });
        })
    };
    let missing = failed(HcsFailureKind::Missing, "no HCS");
    assert_eq!(missing, (Status::Failed, "no HCS".to_owned()));
    let unresponsive = failed(HcsFailureKind::Unresponsive, "refused");
    assert_eq!(unresponsive, (Status::Warning, "refused".to_owned()));
    let unknown = only(Subject::Hcs, |facts| facts.snapshot.host.hcs_schemas.clear());
    assert_eq!(unknown.0, Status::Skipped);
    let (status, what) = only(Subject::Hcs, |facts| {
        facts.snapshot.host.hcs_schemas = vec!["2.1".parse().unwrap()];
    });
    assert_eq!((status, what.starts_with("schema 2.1 does not ")), (Status::Warning, true));
    for (schemas, what) in [
        (
            &["1.0", "2.1"][..],
            "schemas 1.0, 2.1 do not support devices by location path (2.2 does)",
        ),
        (&["2.5"], "schema 2.5 supports devices by location path"),
        (&["2.1", "2.5"], "schemas 2.1, 2.5 support devices by location path"),
    ] {
        let (_, found) = only(Subject::Hcs, |facts| {
            let schemas = schemas.iter().map(|schema| schema.parse().unwrap());
            facts.snapshot.host.hcs_schemas = schemas.collect();
        });
        assert_eq!(found, what);
    }
}

/// Build and configuration decide what the plugin does.
#[test]
fn the_effect_of_an_old_schema_is_that_of_the_configuration() {
    const SERVER_2019: &str = "10.0.17763.1";
    let found = |build: &str, change: &dyn Fn(&mut NodeFacts)| {
        let checks = changed(Subject::Hcs, |facts| {
            facts.snapshot.host.build = Some(build.parse().unwrap());
            facts.snapshot.host.hcs_schemas = vec!["2.1".parse().unwrap()];
            change(facts);
        });
        let [check] = checks.as_slice() else { panic!("{checks:?}") };
        let hint = check.hint.iter().map(|hint| format!("\n  -> {hint}"));
        format!("{}: {}{}", check.status.verdict(), check.what, hint.collect::<String>())
    };
    let with_models = |models: &'static [DriverModel]| {
        move |facts: &mut NodeFacts| {
            let flags = Flags { driver_models: models.to_vec(), ..Flags::default() };
            facts.configuration = config::load(&flags, &EmptyEnvironment);
        }
    };
    let with_class = |facts: &mut NodeFacts| {
        let policy = &mut facts.configuration.as_mut().unwrap().policy;
        let class = "1024E4C9-47C9-48D3-B4A8-F9DF78523B53".parse().unwrap();
        Arc::make_mut(&mut policy.models[1].container).device_class = Some(class);
    };
    let invalid = |facts: &mut NodeFacts| {
        let what = "key `x`".to_owned();
        facts.configuration = Err(ConfigError::Conflict { what, hint: "did you mean y" });
    };
    let texts = [
        found(SERVER_2019, &|_| ()),
        found("10.0.18362.1", &|_| ()),
        found(SERVER_2019, &with_models(&[DriverModel::Wddm])),
        found(SERVER_2019, &with_models(&[DriverModel::Legacy])),
        found("10.0.20348.1", &with_models(&[DriverModel::Legacy])),
        found(SERVER_2019, &with_class),
        found(SERVER_2019, &invalid),
    ];
    insta::assert_snapshot!(texts.join("\n"));
}

#[test]
fn an_image_is_checked_when_both_versions_are_known() {
    let image =
        |image: &str| only(Subject::Image, |facts| facts.image = Some(image.parse().unwrap()));
    assert_eq!(image("10.0.20348.1").0, Status::Ok);
    assert_eq!(image("10.0.17763").0, Status::Failed);
    let newer = image("10.0.26100");
    assert_eq!(newer.0, Status::Failed);
    assert!(
        newer.1.starts_with("images of 10.0.26100 are newer than build 10.0.20348"),
        "{newer:?}"
    );
    let too_old = changed(Subject::Image, |facts| {
        facts.snapshot.host.build = Some("10.0.26100.1".parse().unwrap());
        facts.image = Some("10.0.17763.1".parse().unwrap());
    });
    assert!(too_old[0].what.starts_with("images of 10.0.17763 are too old for build 10.0.26100.1"));
    assert!(too_old[0].hint.as_ref().unwrap().contains("build 20348 to 26100"), "{too_old:?}");
    assert_eq!(only(Subject::Image, |facts| facts.image = None).0, Status::Skipped);
    let unknown = only(Subject::Image, |facts| facts.snapshot.host.build = None);
    assert_eq!(unknown.0, Status::Skipped);
}

#[test]
fn containerd_must_be_new_enough_with_its_cri_enabled() {
    let containerd = |version: Result<&str, &str>, disabled: Option<&[&str]>| {
        let found = Program::Found {
            path: r"C:\containerd.exe".to_owned(),
            version: version.map(|v| ProgramVersion::find(v).unwrap()).map_err(str::to_owned),
        };
        let disabled_plugins = disabled.map(|list| list.iter().map(|p| (*p).to_owned()).collect());
        let containerd = Containerd { program: found, disabled_plugins };
        only(Subject::Containerd, |facts| facts.snapshot.node.containerd = Some(containerd))
    };
    assert_eq!(containerd(Ok("1.6.36"), Some(&[])).0, Status::Failed);
    // Old releases work.
    for (version, text) in
        [("1.7.0", "(ended in September 2026)"), ("2.2.9", "(ended in November 2026)")]
    {
        let (status, what) = containerd(Ok(version), Some(&[]));
        assert_eq!((status, what.ends_with(text)), (Status::Warning, true), "{what}");
    }
    assert_eq!(containerd(Ok("2.3.2"), Some(&["io.containerd.internal.v1.opt"])).0, Status::Ok);
    for cri in ["cri", "io.containerd.grpc.v1.cri", "io.containerd.cri.v1.runtime"] {
        assert_eq!(containerd(Ok("1.7.0"), Some(&[cri])).0, Status::Failed, "{cri}");
    }
    let (status, what) = containerd(Ok("2.3.2"), None);
    assert_eq!((status, what.ends_with("is unknown")), (Status::Ok, true));
    assert_eq!(containerd(Err("no answer"), None).0, Status::Warning);
    let (status, what) = only(Subject::Containerd, |facts| {
        let program = Program::NotFound(vec!["PATH".to_owned()]);
        facts.snapshot.node.containerd = Some(Containerd { program, disabled_plugins: None });
    });
    assert_eq!((status, what.as_str()), (Status::Failed, "no containerd found in PATH"));
}

#[test]
fn kubelets_before_1_26_are_not_supported() {
    let kubelet =
        |program| only(Subject::Kubelet, |facts| facts.snapshot.node.kubelet = Some(program)).0;
    let found = |version: &str| Program::Found {
        path: r"C:\k\kubelet.exe".to_owned(),
        version: ProgramVersion::find(version).ok_or_else(|| "nonsense".to_owned()),
    };
    assert_eq!(kubelet(found("v1.25.16")), Status::Failed);
    assert_eq!(kubelet(found("v1.26.0")), Status::Ok);
    assert_eq!(kubelet(found("?")), Status::Skipped);
    assert_eq!(kubelet(Program::NotFound(vec![])), Status::Skipped);
}

#[test]
fn an_invalid_configuration_is_a_problem_and_leaves_resources_and_files_unchecked() {
    let what = "key `x`".to_owned();
    let error = || ConfigError::Conflict { what: what.clone(), hint: "did you mean y" };
    let checks = changed(Subject::Configuration, |facts| facts.configuration = Err(error()));
    assert_eq!(checks[0].status, Status::Failed);
    assert_eq!(checks[0].what, "key `x`");
    assert_eq!(checks[0].hint.as_deref(), Some("did you mean y"));
    for subject in [Subject::Resources, Subject::RuntimeFiles] {
        let found = only(subject, |facts| facts.configuration = Err(error()));
        assert_eq!(found.0, Status::Skipped);
    }
}

/// Additional mounts of one file for `vendor`.
fn mounts_for(vendor: Vendor) -> AdditionalMounts {
    [(vendor, vec![additional("extra.dll", "extra.dll")])].into()
}

#[test]
fn additional_mounts_are_judged_as_they_are_planned() {
    let files = |build: &str, runtime_mounts, vendor| {
        changed(Subject::RuntimeFiles, |facts| {
            facts.snapshot.host.build = Some(build.parse().unwrap());
            let policy = &mut facts.configuration.as_mut().unwrap().policy;
            policy.models[0].container = Arc::new(ContainerPolicy {
                runtime_mounts,
                additional: mounts_for(vendor),
                ..Default::default()
            });
        })
    };
    let auto = RuntimeMounts::Auto;
    let nvidia = Vendor::Nvidia;
    let amd = Vendor::Amd;
    let server_2022 = "10.0.20348.1547";
    let server_2025 = "10.0.26100.1742";

    let found = files(server_2025, auto, nvidia);
    let [none, warning] = found.as_slice() else { panic!("{found:?}") };
    assert_eq!(none.status, Status::Ok);
    assert!(none.what.starts_with("none is mounted: runtimeMounts is auto"), "{none:?}");
    assert_eq!(warning.status, Status::Warning);
    let what = "additional mounts are not applied: runtimeMounts is auto";
    assert!(warning.what.starts_with(what), "{warning:?}");
    assert!(warning.hint.as_ref().unwrap().contains("`runtimeMounts: extra`"), "{warning:?}");

    // The file of the configuration is missing from the folder.
    let missing = files(server_2022, auto, nvidia);
    assert_eq!((missing.len(), missing[0].status), (1, Status::Warning));
    assert!(missing[0].what.starts_with("1 of 18 missing from "), "{missing:?}");
    assert!(missing[0].what.ends_with("extra.dll"), "{missing:?}");

    // Nothing to warn of: another mode, no device of the vendor.
    for (build, mode, vendor) in [
        (server_2025, RuntimeMounts::Never, nvidia),
        (server_2025, auto, amd),
        (server_2022, auto, amd),
    ] {
        let found = files(build, mode, vendor);
        assert!(found.iter().all(|check| check.status == Status::Ok), "{mode:?}: {found:?}");
    }
}

#[test]
fn a_device_has_driver_version_date_and_problem_code() {
    let (status, what) = only(Subject::Device, |facts| {
        adapters(facts)[0].driver_version = Some("31.0.15.2849".parse().unwrap());
        adapters(facts)[0].pnp.as_mut().unwrap().driver_date = Some("2023-02-14".parse().unwrap());
    });
    assert_eq!(
        (status, what.as_str()),
        (Status::Ok, "gpu, driver version 31.0.15.2849, date 2023-02-14")
    );
    let (_, what) = only(Subject::Device, |_| ());
    assert_eq!(what, "gpu, driver version not known, date not known");
    let (status, what) = only(Subject::Device, |facts| {
        adapters(facts)[0].pnp.as_mut().unwrap().problem_code = 43;
    });
    assert_eq!(status, Status::Failed);
    assert!(what.starts_with("problem code 43: "), "{what}");
    assert_eq!(only(Subject::Device, |facts| adapters(facts).clear()).0, Status::Failed);
}

#[test]
fn unreadable_adapters_are_one_problem_and_other_subjects_are_still_checked() {
    let mut facts = healthy();
    unreadable(&mut facts);
    let checks = evaluate(&facts);
    let with = |status| {
        let subjects = checks.iter().filter(move |check| check.status == status);
        subjects.map(|check| check.name).collect::<Vec<_>>()
    };
    assert_eq!(with(Status::Failed), names(&[Subject::Device]));
    let unknown =
        [Subject::RuntimeFiles, Subject::Resources, Subject::Visibility, Subject::License];
    assert_eq!(with(Status::Skipped), names(&unknown));
    let nvml = only(Subject::Nvml, |facts| {
        unreadable(facts);
        facts.snapshot.node.nvml = Some(Nvml { library: None, gpus: Err(String::new()) });
    });
    assert_eq!(nvml.0, Status::Ok);
}

#[test]
fn an_adapter_that_is_read_in_part_is_a_warning() {
    let checks = changed(Subject::Device, |facts| {
        let warning =
            |effect, text: &str| AdapterWarning { luid: Luid(7), text: text.into(), effect };
        let snapshot = &mut facts.snapshot;
        snapshot.warnings.push(warning(WarningEffect::Incomplete, "its folder was not read"));
        snapshot.warnings.push(warning(WarningEffect::Unreadable, "it was not read at all"));
    });
    assert_eq!(checks.len(), 2, "{checks:?}");
    assert_eq!(checks[1].status, Status::Warning);
    assert_eq!(checks[1].what, "its folder was not read");
}

/// Beside another device, and on a host on which it is the only GPU.
#[test]
fn an_adapter_that_only_the_kernel_lists_is_a_warning_and_explains_a_host_without_devices() {
    let not_listed = |facts: &mut NodeFacts| {
        let text = "DXCore does not list NVIDIA H100".to_owned();
        let effect = WarningEffect::NotListed;
        facts.snapshot.warnings.push(AdapterWarning { luid: Luid(9), text, effect });
    };
    let alone = |facts: &mut NodeFacts| {
        adapters(facts).clear();
        facts.snapshot.node.nvml = None;
        not_listed(facts);
    };
    for change in [&not_listed as &dyn Fn(&mut NodeFacts), &alone] {
        let checks = changed(Subject::Device, change);
        let [device, missing] = checks.as_slice() else { panic!("{checks:?}") };
        assert_eq!((missing.status, missing.id), (Status::Warning, Some("adapter-not-listed")));
        assert_eq!(missing.object.as_deref(), Some("adapter with LUID 9"));
        let hint = missing.hint.as_ref().unwrap();
        assert!(hint.contains("newest driver") && !hint.contains("-dm"), "{hint}");
        if device.status == Status::Failed {
            let hint = "fix what the lines `device` report about each device";
            assert_eq!((device.id, device.hint.as_deref()), (Some("no-device"), Some(hint)));
        }
    }
    assert_eq!(changed(Subject::Device, alone)[0].status, Status::Failed);
    let in_mcdm_mode = changed(Subject::Device, |facts| {
        alone(facts);
        facts.snapshot.node.nvml = Some(nvml(&["MCDM"]));
    });
    let hint = in_mcdm_mode[1].hint.as_ref().unwrap();
    assert!(hint.contains("GPU 0 (NVIDIA Tesla T4) in MCDM mode can be switched"), "{hint}");
}

#[test]
fn runtime_files_are_judged_as_they_are_planned() {
    let files = |change: &dyn Fn(&mut NodeFacts)| only(Subject::RuntimeFiles, change);
    let all = "17 files mounted in containers (14 from the driver, 3 from the plugin's defaults)";
    assert_eq!(files(&|_| ()), (Status::Ok, all.to_owned()));
    let (status, what) = files(&|facts| {
        if let StoreFiles::Listed(files) = &mut store(facts).files {
            files.retain(|file| {
                !file.contains("nvcu") && !file.contains("OpenCL") && !file.contains("nvapi")
            });
        }
    });
    assert_eq!(status, Status::Warning);
    assert!(
        what.starts_with("9 of 17 missing from ") && what.ends_with(", OpenCL32.dll"),
        "{what}"
    );
    let unnamed = files(&|facts| {
        store(facts).copy_to_vm.clear();
        store(facts).files = StoreFiles::Listed([].into());
    });
    assert_eq!(unnamed.0, Status::Ok);
    let what = "none is mounted: the driver names no usable file; containers get only DirectX";
    assert_eq!(unnamed.1, what);
    let modern = files(&|facts| {
        facts.snapshot.host.build = Some("10.0.26100.1".parse().unwrap());
        adapters(facts)[0].driver_store = None;
    });
    assert_eq!(modern.0, Status::Ok);
    assert!(modern.1.starts_with("none is mounted: runtimeMounts is auto"), "{}", modern.1);
    let inside = files(&|facts| facts.snapshot.host.inside_container = true);
    assert_eq!(inside.0, Status::Warning);
    assert!(inside.1.contains("inside a container"), "{}", inside.1);
    let unknown = files(&|facts| adapters(facts)[0].driver_store = None);
    assert_eq!(unknown.0, Status::Warning);
    assert!(unknown.1.contains("is unknown, so no runtime files are mounted"), "{}", unknown.1);
    let elsewhere = files(&|facts| store(facts).path = r"\\server\share\nv".to_owned());
    assert_eq!(elsewhere.0, Status::Warning);
    let what = r"`\\server\share\nv` is not below C:\Windows";
    assert!(elsewhere.1.contains(what), "{}", elsewhere.1);
}

/// The container policy of the driver model `wddm`.
fn container(facts: &mut NodeFacts) -> &mut ContainerPolicy {
    let policy = &mut facts.configuration.as_mut().unwrap().policy;
    Arc::make_mut(&mut policy.models[0].container)
}

#[test]
fn files_that_are_left_out_have_the_reason_of_the_plan() {
    let files = |change: &dyn Fn(&mut NodeFacts)| {
        let (status, what) = only(Subject::RuntimeFiles, change);
        format!("{}: {what}", status.verdict())
    };
    let exclude = |facts: &mut NodeFacts, names: &[&str]| {
        container(facts).exclude_mounts = names.iter().map(|name| name.parse().unwrap()).collect();
    };
    let only_wow64 = |facts: &mut NodeFacts| {
        let is_wow64 = |key: &str| key.ends_with("Wow64");
        store(facts).copy_to_vm.retain(|key, _| is_wow64(&key.to_string()));
        if let StoreFiles::Listed(files) = &mut store(facts).files {
            files.retain(|file| !file.contains("nvidia-smi") && !file.contains("vulkaninfo"));
        }
    };
    let texts = [
        files(&|facts| store(facts).copy_to_vm.clear()),
        files(&|facts| exclude(facts, &["NVCUDA.dll", "vulkaninfo.exe"])),
        files(&|facts| container(facts).omit_wow64 = true),
        files(&|facts| facts.snapshot.host.wow64 = Wow64::Absent),
        files(&|facts| {
            only_wow64(facts);
            container(facts).omit_wow64 = true;
        }),
        files(&|facts| {
            only_wow64(facts);
            facts.snapshot.host.wow64 = Wow64::Absent;
        }),
        files(&|facts| {
            container(facts).additional =
                [(Vendor::Nvidia, vec![additional("nvapi64.dll", "nvcuda.dll")])].into();
        }),
        files(&|facts| {
            container(facts).runtime_mounts = RuntimeMounts::Extra;
            container(facts).additional =
                [(Vendor::Nvidia, vec![additional("nvapi64.dll", "nvcuda.dll")])].into();
        }),
        files(&|facts| {
            exclude(facts, &["nvcuda.dll"]);
            container(facts).visibility = Visibility::Launcher;
            container(facts).runtime_mounts = RuntimeMounts::Never;
        }),
    ];
    insta::assert_snapshot!(texts.join("\n"));
}

/// Another version of the driver has another folder, so that reinstalling the driver does not help.
#[test]
fn an_additional_mount_that_no_file_or_several_match_is_named_with_its_own_fix() {
    let finding = |source: &str, files: &[&str]| {
        let found = changed(Subject::RuntimeFiles, |facts| {
            container(facts).additional =
                [(Vendor::Nvidia, vec![additional(source, "vulkan-1.dll")])].into();
            container(facts).exclude_mounts = Vec::new();
            store(facts).copy_to_vm.clear();
            if let StoreFiles::Listed(listed) = &mut store(facts).files {
                listed.extend(files.iter().map(|file| (*file).to_owned()));
            }
        });
        let [finding] = found.as_slice() else { panic!("{found:?}") };
        (finding.status, finding.what.clone(), finding.hint.clone().unwrap_or_default())
    };
    let (status, what, hint) = finding(r"B*\vulkan64.dll", &[r"B1\vulkan64.dll"]);
    assert_eq!((status, &*hint), (Status::Ok, ""), "{what}");
    assert!(what.ends_with("1 from the configuration)"), "{what}");
    for (source, files, end) in [
        (r"B1\vulkan64.dll", &[r"B2\vulkan64.dll"][..], r": B1\vulkan64.dll"),
        (r"B*\vulkan64.dll", &[], r": B*\vulkan64.dll matches no file"),
        (
            r"B*\vulkan64.dll",
            &[r"B2\vulkan64.dll", r"B1\vulkan64.dll"],
            r": B*\vulkan64.dll matches several files: B1\vulkan64.dll, B2\vulkan64.dll",
        ),
    ] {
        let (status, what, hint) = finding(source, files);
        assert_eq!(status, Status::Warning);
        assert!(what.starts_with("1 of ") && what.ends_with(end), "{what}");
        assert!(hint.starts_with("correct additionalMounts"), "{hint}");
        assert!(!hint.contains("reinstall"), "{hint}");
    }
}

fn additional(source: &str, destination: &str) -> AdditionalMount {
    AdditionalMount { source: source.parse().unwrap(), destination: destination.parse().unwrap() }
}

#[test]
fn a_device_that_cannot_be_allocated_has_no_files() {
    let broken = changed(Subject::RuntimeFiles, |facts| {
        adapters(facts)[0].pnp.as_mut().unwrap().problem_code = 43;
    });
    assert_eq!(broken, []);
}

#[test]
fn registry_values_without_a_usable_file_are_a_warning_if_the_plugin_reads_them() {
    let with_runtime_mounts = |runtime_mounts| {
        changed(Subject::RuntimeFiles, |facts| {
            let values = store(facts).copy_to_vm.values_mut().next().unwrap();
            values.insert("99".to_owned(), CopyToVmValue::Single(r"..\evil.dll".to_owned()));
            container(facts).runtime_mounts = runtime_mounts;
        })
    };
    let checks = with_runtime_mounts(RuntimeMounts::Auto);
    assert_eq!(checks.len(), 2, "{checks:?}");
    assert_eq!(checks[1].status, Status::Warning);
    assert!(checks[1].what.starts_with("registry values are ignored: CopyToVmWhenNewer `99`"));
    for runtime_mounts in [RuntimeMounts::Never, RuntimeMounts::Extra] {
        let checks = with_runtime_mounts(runtime_mounts);
        assert_eq!(checks.len(), 1, "{checks:?}");
    }
}

#[test]
fn resources_are_counted_and_adapters_that_are_not_advertised_have_a_reason() {
    let found = |change: &dyn Fn(&mut NodeFacts)| {
        let checks = changed(Subject::Resources, change).into_iter();
        checks.map(|c| (c.status, c.object.unwrap_or_default(), c.what)).collect::<Vec<_>>()
    };
    let display = "directx.microsoft.com/display".to_owned();
    let first = |change: &dyn Fn(&mut NodeFacts)| found(change).swap_remove(0);
    assert_eq!(first(&|_| ()), (Status::Ok, display.clone(), "1 of 1 device healthy".to_owned()));
    let unhealthy = first(&|facts| adapters(facts)[0].pnp.as_mut().unwrap().problem_code = 10);
    assert_eq!(unhealthy, (Status::Failed, display, "0 of 1 device healthy".to_owned()));

    let away = found(&|facts| adapters(facts)[0].pnp.as_mut().unwrap().location_paths.clear());
    assert_eq!((away[0].0, away[1].0), (Status::Failed, Status::Warning));
    let integrated = found(&|facts| adapters(facts)[0].integrated = true);
    assert_eq!((integrated[0].0, integrated[1].0), (Status::Failed, Status::Warning));
    let orphan = found(&|facts| adapters(facts)[0].pnp = None);
    assert_eq!((orphan[0].0, orphan[1].0), (Status::Failed, Status::Warning));
    let software = found(&|facts| adapters(facts)[0].hardware = false);
    assert_eq!(software.len(), 1, "{software:?}");
}

#[test]
fn devices_with_the_same_location_path_are_a_warning_with_a_fix() {
    let findings = changed(Subject::Resources, |facts| {
        facts.snapshot = two_gpus();
        let paths = adapters(facts)[0].pnp.as_ref().unwrap().location_paths.clone();
        adapters(facts)[1].pnp.as_mut().unwrap().location_paths = paths;
    });
    let warnings: Vec<_> = findings.iter().filter(|f| f.status == Status::Warning).collect();
    assert_eq!(warnings.len(), 2, "{findings:?}");
    for warning in warnings {
        assert!(warning.what.contains("is also that of the device"), "{warning:?}");
        assert!(warning.hint.as_ref().unwrap().contains("restart the host"), "{warning:?}");
    }
}

#[test]
fn a_configured_launcher_that_is_missing_is_a_problem() {
    let file = "directx-visible-filter.dll";
    let with = |missing: &[&'static str], visibility| {
        changed(Subject::Visibility, |facts| {
            facts.missing_launcher_files = missing.to_vec();
            let Policy { models } = &mut facts.configuration.as_mut().unwrap().policy;
            Arc::make_mut(&mut models[0].container).visibility = visibility;
        })
    };
    for checks in [with(&[file], Visibility::Off), with(&[], Visibility::Launcher)] {
        assert!(checks.iter().all(|check| check.status == Status::Ok), "{checks:?}");
    }
    for (visibility, hint) in [
        (Visibility::Launcher, "visibility: off; until then containers do not get"),
        (Visibility::Required, "until then the devices are unhealthy"),
    ] {
        let checks = with(&[file], visibility);
        let problem = checks.iter().find(|check| check.status == Status::Failed).unwrap();
        let what = format!("visibility is {visibility}, but neither");
        assert!(problem.what.starts_with(&what) && problem.what.contains(file), "{problem:?}");
        assert!(problem.hint.as_ref().unwrap().contains(hint), "{problem:?}");
    }
}

#[test]
fn a_resource_whose_devices_wait_for_directx_visible_names_the_lines_about_it() {
    let checks = changed(Subject::Resources, |facts| {
        facts.snapshot.host.launcher = LauncherFiles::NotProvided;
        let Policy { models } = &mut facts.configuration.as_mut().unwrap().policy;
        Arc::make_mut(&mut models[0].container).visibility = Visibility::Required;
    });
    let resource = checks.iter().find(|check| check.status == Status::Failed).unwrap();
    assert_eq!(resource.what, "0 of 1 device healthy");
    assert!(resource.hint.as_ref().unwrap().contains("the lines `visibility` or"), "{resource:?}");
}

#[test]
fn a_listed_device_that_waits_for_directx_visible_refers_to_the_plugin() {
    let checks = changed(Subject::Plugin, |facts| {
        facts.plugin = Some(answers(&facts.snapshot, &configuration(), |report| {
            let device = &mut report.node.resources[0].devices[0];
            let text = devices::UnhealthyReason::NoLauncher.to_string();
            device.unhealthy = Some(Unhealthy { kind: UnhealthyKind::NoLauncher, text });
        }));
    });
    let device = checks.iter().find(|check| check.what.contains("waits for")).unwrap();
    let hint = "fix what the plugin reports about directx-visible";
    assert_eq!(device.hint.as_deref(), Some(hint));
}

#[test]
fn a_rule_without_a_device_is_a_warning() {
    let checks = changed(Subject::Resources, |facts| {
        let Policy { models } = &mut facts.configuration.as_mut().unwrap().policy;
        let rule = devices::ResourceRule {
            name: "example.com/none".parse().unwrap(),
            matches: devices::DeviceMatch { min_memory_mib: Some(1 << 40), ..Default::default() },
            replicas: None,
            allocation: None,
            visibility: None,
        };
        models[0].rules = Arc::new([rule]);
        models[0].publish_numa = false;
    });
    let idle = checks.iter().find(|check| check.status == Status::Warning).unwrap();
    assert_eq!(idle.object.as_deref(), Some("example.com/none"));
}

#[test]
fn containers_can_see_all_of_several_gpus() {
    let (status, what) = only(Subject::Visibility, |facts| {
        facts.snapshot.adapters = two_gpus().adapters;
    });
    assert_eq!((status, what.contains("see both GPUs")), (Status::Warning, true));
    let (_, what) = only(Subject::Visibility, |facts| {
        facts.snapshot.adapters = two_gpus().adapters;
        let mut third = adapters(facts)[0].clone();
        third.luid = Luid(3);
        third.pnp.as_mut().unwrap().id = host::PnpId::new(r"PCI\3");
        adapters(facts).push(third);
    });
    assert!(what.contains("see all 3 GPUs"), "{what}");
    let one = "the host has one GPU; containers can see no other".to_owned();
    assert_eq!(only(Subject::Visibility, |_| ()), (Status::Ok, one));
    let none = only(Subject::Visibility, |facts| adapters(facts).clear());
    assert_eq!(none, (Status::Ok, "the host lists no GPU".to_owned()));
}

#[test]
fn the_fix_for_visible_gpus_does_not_promise_variables_that_are_off() {
    let hint = |omit_environment_hints| {
        let checks = changed(Subject::Visibility, |facts| {
            facts.snapshot.adapters = two_gpus().adapters;
            container(facts).omit_environment_hints = omit_environment_hints;
        });
        checks[0].hint.clone().unwrap()
    };
    assert!(hint(false).starts_with("use one GPU per node"), "{}", hint(false));
    assert!(hint(true).starts_with("set `environmentHints: true`"), "{}", hint(true));
}

/// A GPU in MCDM mode has no display, and one without a `PnP` device is skipped.
#[test]
fn a_gpu_that_is_not_for_display_or_not_advertised_is_a_gpu() {
    for (attribute, vendor) in [(Attribute::D3d12CoreCompute, 0x10DE), (Attribute::Gpu, 0x8086)] {
        let (_, what) = only(Subject::Visibility, |facts| {
            let adapter = &mut adapters(facts)[0];
            adapter.attributes = Attributes::from_iter([attribute]);
            adapter.hardware_id.vendor = vendor;
        });
        assert_eq!(what, "the host has one GPU; containers can see no other", "{attribute:?}");
    }
    let without_pnp = |facts: &mut NodeFacts| adapters(facts)[0].pnp = None;
    let skipped = only(Subject::Visibility, without_pnp);
    assert_eq!(skipped.0, Status::Skipped);
    assert!(skipped.1.starts_with("containers can get no GPU of this host"), "{skipped:?}");
    let (status, what) = only(Subject::Device, without_pnp);
    assert_eq!(status, Status::Failed);
    assert_eq!(what, "containers can get none of the adapters that this host lists");
    for (is_this_machine, fix) in [(true, "run doctor again"), (false, "the key `pnp` with `id`")] {
        let findings = changed(Subject::Resources, |facts| {
            without_pnp(facts);
            facts.snapshot.host.is_this_machine = is_this_machine;
        });
        assert!(findings[1].hint.as_ref().unwrap().contains(fix), "{findings:?}");
    }
}

/// A host with `two_gpus`, of which the second one is changed.
fn second(facts: &mut NodeFacts, change: impl Fn(&mut Adapter)) {
    facts.snapshot = two_gpus();
    change(&mut adapters(facts)[1]);
}

/// An administrator runs doctor in a remote session.
#[test]
fn an_indirect_display_is_named_once_and_is_no_gpu() {
    type Change = fn(&mut Adapter);
    let name = |adapter: &mut Adapter| {
        adapter.pnp.as_mut().unwrap().description = "Parsec Virtual Display Adapter".to_owned();
    };
    let by_flag: Change = |adapter| adapter.indirect_display = true;
    let by_id: Change = |adapter| {
        adapter.pnp.as_mut().unwrap().id = PnpId::new(r"ROOT\DISPLAY\0000");
    };
    for change in [by_flag, by_id] {
        let host = |facts: &mut NodeFacts| {
            second(facts, |adapter| {
                name(adapter);
                change(adapter);
            });
            // What a live host could not read of it needs no fix.
            let luid = adapters(facts)[1].luid;
            let text = "cannot find the driver store folder".to_owned();
            let effect = WarningEffect::Incomplete;
            facts.snapshot.warnings = vec![AdapterWarning { luid, text, effect }];
        };
        let devices = changed(Subject::Device, host);
        assert_eq!(devices.len(), 1, "{devices:?}");
        let one = "the host has one GPU; containers can see no other".to_owned();
        assert_eq!(only(Subject::Visibility, host), (Status::Ok, one));
        let resources = changed(Subject::Resources, host);
        let named: Vec<_> = resources
            .iter()
            .filter(|found| found.object.as_ref().is_some_and(|o| o.starts_with("Parsec")))
            .map(|found| (found.status, found.what.as_str(), found.hint.as_deref()))
            .collect();
        let what = "not advertised: adapter is an indirect display, not a GPU";
        assert_eq!(named, [(Status::Ok, what, None)]);
        assert!(resources.iter().all(|found| found.status == Status::Ok), "{resources:?}");
    }
}

#[test]
fn a_host_with_only_basic_adapters_has_no_gpu() {
    for device in [0x008C, 0x5353] {
        for has_pnp in [true, false] {
            let basic = |facts: &mut NodeFacts| {
                facts.snapshot.node.nvml = None;
                let adapter = &mut adapters(facts)[0];
                adapter.hardware_id = HardwareId { vendor: 0x1414, device, ..Default::default() };
                adapter.pnp = adapter.pnp.take().filter(|_| has_pnp);
            };
            let none = (Status::Ok, "the host lists no GPU".to_owned());
            assert_eq!(only(Subject::Visibility, basic), none);
            let (status, what) = only(Subject::Device, basic);
            assert_eq!((status, &*what), (Status::Failed, "Windows lists no DirectX device"));
            let resources = changed(Subject::Resources, basic);
            let [none, adapter] = resources.as_slice() else { panic!("{resources:?}") };
            let hint = none.hint.as_ref().unwrap();
            assert!(hint.starts_with("install the GPU vendor's driver"), "{hint}");
            assert_eq!((none.status, adapter.status), (Status::Failed, Status::Ok));
            assert!(adapter.what.contains("one of Microsoft's basic adapters"), "{adapter:?}");
        }
    }
    // Beside a GPU, it needs no fix.
    let findings = changed(Subject::Resources, |facts| {
        second(facts, |adapter| {
            adapter.hardware_id =
                HardwareId { vendor: 0x1414, device: 0x5353, ..Default::default() };
        });
    });
    assert!(findings.iter().all(|found| found.status == Status::Ok), "{findings:?}");
}

/// Nothing is wrong with the GPUs of a host whose virtual display is switched off.
#[test]
fn a_virtual_display_without_an_adapter_is_no_fault() {
    for id in [
        r"ROOT\DISPLAY\0000",
        r"swd\IddSampleDriver\1",
        r"VMBUS\{DA0A7802-E377-4AAC-8E77-0558EB1073F8}\1",
    ] {
        let findings = changed(Subject::Device, |facts| {
            adapters(facts).clear();
            facts.snapshot.node.nvml = None;
            facts.snapshot.devices_without_adapter = vec![broken(id, 31)];
        });
        let [none, display] = findings.as_slice() else { panic!("{findings:?}") };
        let hint = none.hint.as_ref().unwrap();
        assert!(hint.starts_with("install the GPU vendor's driver"), "{hint}");
        let what = "problem code 31; this is a virtual display, not a GPU";
        assert_eq!((display.status, &*display.what), (Status::Ok, what));
    }
}

/// The finding of a resource, with its hint.
fn of_resource(name: &str, change: impl FnOnce(&mut NodeFacts)) -> (Status, String, String) {
    let findings = changed(Subject::Resources, change);
    let mut named = findings.iter().filter(|found| found.object.as_deref() == Some(name));
    let found = named.next().unwrap_or_else(|| panic!("{findings:?}"));
    assert!(named.next().is_none(), "{findings:?}");
    (found.status, found.what.clone(), found.hint.clone().unwrap_or_default())
}

const DISPLAY: &str = "directx.microsoft.com/display";

/// Two GPUs, of which the second is a neural processor.
fn gpu_and_npu(facts: &mut NodeFacts) {
    facts.snapshot = two_gpus();
    adapters(facts)[1].attributes = Attributes::from_iter([Attribute::Npu]);
}

/// Each resource is asked for separately: pods that request one do not get a device of another.
#[test]
fn a_resource_without_devices_names_the_adapters_that_the_configuration_excludes() {
    for (change, fix) in [
        ((|adapter| adapter.integrated = true) as fn(&mut Adapter), "`includeIntegrated: true`"),
        (|adapter| adapter.detachable = true, "`includeDetachable: true`"),
    ] {
        let excluded = |facts: &mut NodeFacts| {
            gpu_and_npu(facts);
            change(&mut adapters(facts)[0]);
        };
        let (status, what, hint) = of_resource(DISPLAY, excluded);
        assert_eq!(status, Status::Warning, "{what}");
        assert!(what.starts_with("capacity 0: ") && what.contains("Tesla T4 (LUID "), "{what}");
        assert!(hint.contains("Tesla T4 (LUID ") && hint.contains(fix), "{hint}");
        let compute = of_resource("directx.microsoft.com/compute", excluded);
        assert_eq!((compute.0, compute.1.as_str()), (Status::Ok, "1 of 1 device healthy"));
        let findings = changed(Subject::Resources, excluded);
        let adapters: Vec<_> =
            findings.iter().filter(|found| found.what.starts_with("not advertised")).collect();
        assert_eq!((adapters.len(), adapters[0].status), (1, Status::Ok), "{adapters:?}");
    }
    // A fault of the adapter has its fix in the adapter's line.
    let (status, _, hint) = of_resource(DISPLAY, |facts| {
        gpu_and_npu(facts);
        adapters(facts)[0].pnp.as_mut().unwrap().location_paths.clear();
    });
    assert_eq!(status, Status::Warning);
    assert!(hint.contains("fix what the line about NVIDIA Tesla T4"), "{hint}");
    // The host has no GPU, or another GPU is advertised.
    let (status, what, hint) = of_resource(DISPLAY, |facts| {
        gpu_and_npu(facts);
        adapters(facts).remove(0);
    });
    assert_eq!((status, hint.as_str()), (Status::Ok, ""), "{what}");
    let (status, what, hint) = of_resource(DISPLAY, |facts| {
        facts.snapshot = two_gpus();
        adapters(facts)[0].integrated = true;
    });
    assert_eq!((status, what.as_str()), (Status::Ok, "1 of 1 device healthy"));
    assert_eq!(hint, "");
}

fn rule(name: &str, matches: DeviceMatch) -> ResourceRule {
    let name = name.parse().unwrap();
    ResourceRule { name, matches, replicas: None, allocation: None, visibility: None }
}

fn with_rules(facts: &mut NodeFacts, rules: &[ResourceRule]) {
    for model in &mut facts.configuration.as_mut().unwrap().policy.models {
        model.rules = rules.into();
    }
}

/// An administrator chose the other name, so this is no warning.
#[test]
fn a_resource_whose_devices_a_rule_took_names_the_rule_and_what_else_could_be_advertised() {
    let vendor = Some(Vendor::Nvidia);
    let nvidia = rule("nvidia.com/gpu", DeviceMatch { vendor, ..DeviceMatch::default() });
    let taken = "capacity 0: rules advertise NVIDIA Tesla T4 as nvidia.com/gpu";
    let (status, what, hint) =
        of_resource(DISPLAY, |facts| with_rules(facts, std::slice::from_ref(&nvidia)));
    assert_eq!((status, what.as_str()), (Status::Ok, taken));
    assert!(hint.contains("change the match of the rule"), "{hint}");
    let (status, what, hint) = of_resource(DISPLAY, |facts| {
        facts.snapshot = two_gpus();
        adapters(facts)[1].hardware_id.vendor = 0x8086;
        adapters(facts)[1].integrated = true;
        with_rules(facts, std::slice::from_ref(&nvidia));
    });
    assert_eq!((status, what.as_str()), (Status::Ok, taken));
    assert!(hint.contains("`includeIntegrated: true`"), "{hint}");
}

#[test]
fn a_rule_without_a_device_names_what_comes_closest() {
    let amd = DeviceMatch { vendor: Some(Vendor::Amd), ..DeviceMatch::default() };
    let big = DeviceMatch { min_memory_mib: Some(1 << 40), ..amd.clone() };
    let nvidia = DeviceMatch { vendor: Some(Vendor::Nvidia), ..DeviceMatch::default() };
    let rules = [
        rule("amd.com/gpu", amd),
        rule("amd.com/big", big),
        rule("nvidia.com/gpu", nvidia.clone()),
        rule("nvidia.com/second", nvidia),
    ];
    let findings = changed(Subject::Resources, |facts| with_rules(facts, &rules));
    let unmatched = findings.iter().filter(|found| found.what.starts_with("a rule of this"));
    let hints: Vec<(&str, &str)> = unmatched
        .map(|found| (found.object.as_deref().unwrap(), found.hint.as_deref().unwrap()))
        .map(|(rule, hint)| (rule, hint.split_once(": ").unwrap().1))
        .collect();
    assert_eq!(
        hints,
        [
            ("amd.com/gpu", "NVIDIA Tesla T4 differs in `vendor`"),
            ("amd.com/big", "NVIDIA Tesla T4 differs in `vendor`, `minMemoryMiB`"),
            ("nvidia.com/second", "NVIDIA Tesla T4 already belongs to nvidia.com/gpu"),
        ]
    );
    // The driver model of the only match is not enabled. One line is enough.
    let only_compute = |facts: &mut NodeFacts| {
        gpu_and_npu(facts);
        adapters(facts)[1].hardware_id.vendor = 0x8086;
        with_rules(facts, &rules[2..3]);
        let policy = &mut facts.configuration.as_mut().unwrap().policy;
        policy.models.retain(|model| model.model == DriverModel::Mcdm);
    };
    let (status, _, hint) = of_resource("nvidia.com/gpu", only_compute);
    assert_eq!(status, Status::Warning);
    assert!(hint.contains("`--driver-model wddm`"), "{hint}");
}

#[test]
fn a_resource_whose_devices_are_all_out_of_service_is_not_a_fault_of_devices() {
    let (status, what, hint) = of_resource(DISPLAY, |facts| {
        let id = adapters(facts)[0].pnp.as_ref().unwrap().id.clone();
        facts.snapshot.cordoned = Cordons::Known(vec![id.as_str().parse().unwrap()]);
    });
    assert_eq!((status, what.as_str()), (Status::Failed, "0 of 1 device healthy"));
    assert!(hint.starts_with("return a device to service"), "{hint}");
}

#[test]
fn the_license_of_each_driver_is_checked_if_nvml_reports_it() {
    let license = |licenses: [Option<License>; 2]| {
        only(Subject::License, |facts| {
            facts.snapshot.adapters = two_gpus().adapters;
            for (adapter, license) in adapters(facts).iter_mut().zip(licenses) {
                adapter.nvidia.license = license;
            }
        })
    };
    let until = License::until("2026-12-01T10:00:00Z".parse().ok());
    let free = License::NOT_REQUIRED;
    for (licenses, status, text) in [
        ([Some(free), Some(free)], Status::Ok, "not required"),
        ([Some(until), Some(until)], Status::Ok, "licensed until 2026-12-01T10:00:00Z"),
        (
            [Some(until), Some(free)],
            Status::Ok,
            "licensed until 2026-12-01T10:00:00Z, not required",
        ),
        ([Some(until), None], Status::Skipped, "NVML does not report whether"),
        ([None, Some(License::MISSING)], Status::Warning, "the driver has no license for NVIDIA"),
    ] {
        let (found, what) = license(licenses);
        assert!(found == status && what.starts_with(text), "{what}");
    }
    let (_, what) = license([Some(until), Some(License::MISSING)]);
    assert_eq!(what.matches("NVIDIA Tesla T4").count(), 1, "{what}");
    let hint = hint_of(Subject::License, |facts| {
        adapters(facts)[0].nvidia.license = Some(License::MISSING);
    });
    assert!(hint.contains("ClientConfigToken") && hint.contains("port 443"), "{hint}");
    let without_nvidia = |gpus| {
        only(Subject::License, |facts| {
            adapters(facts)[0].hardware_id.vendor = 0x1002;
            facts.snapshot.node.nvml = Some(Nvml { library: None, gpus });
        })
    };
    let (status, what) = without_nvidia(Err("no nvidia-smi".to_owned()));
    assert_eq!((status, &*what), (Status::Ok, "not needed: the host lists no NVIDIA device"));
    assert_eq!(without_nvidia(Ok(vec![])).0, Status::Ok);
    // Such a GPU is in TCC mode, or only the graphics kernel lists it.
    let (status, what) = without_nvidia(nvml(&["TCC"]).gpus);
    assert_eq!(status, Status::Skipped);
    assert!(what.contains("GPU 0 (NVIDIA Tesla T4)"), "{what}");
    let in_inventory = |facts: &mut NodeFacts| {
        adapters(facts)[0].nvidia.license = None;
        facts.snapshot.node.nvml = None;
    };
    assert!(only(Subject::License, in_inventory).1.starts_with("the inventory does not"));
}

#[test]
fn nvml_is_needed_only_with_an_nvidia_device() {
    let status = |nvml: Nvml, nvidia: bool| {
        only(Subject::Nvml, |facts| {
            facts.snapshot.node.nvml = Some(nvml);
            if !nvidia {
                adapters(facts).clear();
            }
        })
        .0
    };
    let absent = || Nvml { library: None, gpus: Err("no nvidia-smi".to_owned()) };
    assert_eq!(status(absent(), true), Status::Warning);
    assert_eq!(status(absent(), false), Status::Ok);
    let broken = Nvml { gpus: Err("driver mismatch".to_owned()), ..nvml(&[]) };
    assert_eq!(status(broken, true), Status::Warning);
    for (modes, shown) in [
        (&["WDDM", "MCDM", "MCDM"] as &[&str], "reports 3 GPUs (MCDM and WDDM), NVIDIA driver "),
        (&["MCDM"], "reports 1 GPU (MCDM), NVIDIA driver "),
        (&[], "reports 0 GPUs, NVIDIA driver "),
    ] {
        let (status, what) = only(Subject::Nvml, |facts| {
            facts.snapshot.node.nvml = Some(nvml(modes));
        });
        assert!(status == Status::Ok && what.contains(shown), "{what}");
    }
    let (status, what) = only(Subject::Nvml, |facts| {
        facts.snapshot.node.nvml = Some(nvml(&["WDDM", "TCC"]));
    });
    assert_eq!(status, Status::Warning);
    assert!(what.ends_with("GPU 1 (NVIDIA Tesla T4)"), "{what}");
}

/// The hint of the only finding of `subject`.
fn hint_of(subject: Subject, change: impl FnOnce(&mut NodeFacts)) -> String {
    let findings = changed(subject, change);
    let [finding] = findings.as_slice() else { panic!("{findings:?}") };
    finding.hint.clone().unwrap_or_default()
}

/// NVIDIA's driver is installed, so no hint asks to install it.
#[test]
fn a_gpu_in_tcc_mode_is_the_cause_of_a_host_without_devices() {
    let tcc = |facts: &mut NodeFacts| {
        adapters(facts).clear();
        facts.snapshot.node.nvml = Some(nvml(&["TCC"]));
    };
    let cause = "GPU 0 (NVIDIA Tesla T4) is in TCC mode, which has no DirectX; the line `nvml` has the \
                 fix";
    assert_eq!(hint_of(Subject::Device, tcc), cause);
    assert_eq!(hint_of(Subject::Resources, tcc), cause);
    // Beside the graphics of a management controller, which needs no fix.
    let findings = changed(Subject::Resources, |facts| {
        management_controller(&mut adapters(facts)[0]);
        facts.snapshot.node.nvml = Some(nvml(&["TCC"]));
    });
    let [none, controller] = findings.as_slice() else { panic!("{findings:?}") };
    assert_eq!((none.hint.as_deref(), controller.status), (Some(cause), Status::Ok));
}

/// The display of a server without a driver of its vendor.
fn management_controller(adapter: &mut Adapter) {
    adapter.hardware_id = HardwareId { vendor: 0x1A03, device: 0x2000, ..Default::default() };
    adapter.attributes = Attributes::from_iter([Attribute::D3d11Graphics]);
    let pnp = adapter.pnp.as_mut().unwrap();
    pnp.id = PnpId::new(r"PCI\VEN_1A03&DEV_2000\1");
    pnp.description = "Microsoft Basic Display Adapter".to_owned();
}

/// The advice never names a mode that this Windows, or a GPU of this host, cannot have.
#[test]
fn a_gpu_in_tcc_mode_gets_the_modes_that_are_possible_here() {
    let hint = |build: &str, names: &[&str]| {
        hint_of(Subject::Nvml, |facts| {
            facts.snapshot.host.build = build.parse().ok();
            let mut nvml = nvml(&vec!["TCC"; names.len()]);
            for (gpu, name) in nvml.gpus.as_mut().unwrap().iter_mut().zip(names) {
                gpu.name = (*name).to_owned();
            }
            facts.snapshot.node.nvml = Some(nvml);
        })
    };
    let (server_2019, server_2022) = ("10.0.17763.6054", "10.0.20348.2966");
    for name in
        ["Tesla T4", "NVIDIA A100-PCIE-40GB", "NVIDIA L4", "Quadro RTX 6000", "NVIDIA T1000"]
    {
        let hint = hint(server_2022, &[name]);
        assert!(hint.contains("-dm 2` (MCDM") && hint.contains("-dm 0` (WDDM"), "{name}: {hint}");
    }
    for name in [
        "Tesla P4",
        "Tesla P100-PCIE-16GB",
        "Tesla V100-SXM2-16GB",
        "Tesla M60",
        "GRID M10-8Q",
        "Quadro P4000",
        "Quadro GV100",
        "NVIDIA GeForce GTX 1080",
        "NVIDIA GeForce GT 1010",
        "NVIDIA TITAN V",
        "Tesla K80",
        "P106-100",
    ] {
        let hint = hint(server_2022, &["Tesla T4", name]);
        let why = format!("drivers with MCDM do not support GPU 1 ({name})");
        assert!(!hint.contains("-dm 2") && hint.contains(&why), "{name}: {hint}");
    }
    let old = hint(server_2019, &["Tesla T4"]);
    assert!(!old.contains("-dm 2") && old.contains("this Windows has no MCDM"), "{old}");
}

#[test]
fn a_management_controller_is_no_gpu() {
    let beside = |facts: &mut NodeFacts| second(facts, management_controller);
    let (status, what) = only(Subject::Visibility, beside);
    assert_eq!((status, &*what), (Status::Ok, "the host has one GPU; containers can see no other"));
    let devices = changed(Subject::Device, beside);
    assert!(devices[1].what.starts_with("display controller, not a GPU"), "{devices:?}");
    let alone = |facts: &mut NodeFacts| management_controller(&mut adapters(facts)[0]);
    assert_eq!(only(Subject::Visibility, alone).1, "the host lists no GPU");
}

/// A GPU without compute: its driver, or the GPU.
#[test]
fn a_gpu_that_only_displays_needs_its_driver_or_has_no_direct3d_12() {
    let hint = |change: &dyn Fn(&mut Adapter)| {
        let findings = changed(Subject::Resources, |facts| {
            let adapter = &mut adapters(facts)[0];
            adapter.attributes = Attributes::from_iter([Attribute::D3d11Graphics]);
            change(adapter);
        });
        findings[1].hint.clone().unwrap()
    };
    let installed = hint(&|_| ());
    assert!(installed.contains("no Direct3D 12") && !installed.contains("install "), "{installed}");
    let of_windows: [&dyn Fn(&mut Adapter); 3] = [
        &|adapter| adapter.driver_version = "10.0.20348.1".parse().ok(),
        &|adapter| {
            adapter.driver_store.as_mut().unwrap().path =
                r"C:\Windows\System32\DriverStore\FileRepository\basicdisplay.inf_amd64_1"
                    .to_owned();
        },
        &|adapter| {
            adapter.pnp.as_mut().unwrap().description =
                "Microsoft Basic Display Adapter".to_owned();
        },
    ];
    for change in of_windows {
        let hint = hint(change);
        assert!(
            hint.ends_with("runs with a driver of Windows: install that of its vendor"),
            "{hint}"
        );
    }
    let media = hint(&|adapter| {
        adapter.attributes = Attributes::from_iter([Attribute::D3d12GenericMedia]);
    });
    assert!(!media.contains("install "), "{media}");
}

#[test]
fn a_host_without_devices_has_the_hint_that_fits_what_is_known() {
    let hint = |change: fn(&mut NodeFacts)| {
        let empty = |facts: &mut NodeFacts| {
            adapters(facts).clear();
            change(facts);
        };
        [Subject::Device, Subject::Resources]
            .map(|subject| changed(subject, empty)[0].hint.clone().unwrap())
    };
    let [running, advertised] = hint(|_| ());
    assert!(running.starts_with("NVIDIA driver 528.49 runs and reports GPU 0"), "{running}");
    assert_eq!(running, advertised);
    for text in hint(|facts| facts.snapshot.host.inside_container = true) {
        assert!(text.ends_with("in a HostProcess container"), "{text}");
    }
    let without_adapter = |facts: &mut NodeFacts| {
        facts.snapshot.devices_without_adapter = vec![broken(r"PCI\VEN_10DE\1", 28)];
    };
    for text in hint(without_adapter) {
        assert!(text.starts_with("fix what the lines `device` report"), "{text}");
    }
    for text in hint(|facts| facts.snapshot.node.nvml = None) {
        assert!(text.starts_with("install the GPU vendor's driver"), "{text}");
    }
}

/// A device without an adapter.
fn broken(id: &str, problem_code: u32) -> PnpDevice {
    let pnp = two_gpus().adapters.remove(0).pnp.unwrap();
    PnpDevice { id: PnpId::new(id), problem_code, ..pnp }
}

#[test]
fn a_device_without_an_adapter_is_listed_with_its_problem_and_the_fix() {
    let found = |code: u32, is_only: bool| {
        let findings = changed(Subject::Device, |facts| {
            facts.snapshot.devices_without_adapter = vec![broken(r"PCI\VEN_10DE\1", code)];
            if is_only {
                adapters(facts).clear();
            }
        });
        let [first, device] = findings.as_slice() else { panic!("{findings:?}") };
        let expected = if is_only { Status::Failed } else { Status::Ok };
        assert_eq!(first.status, expected, "{findings:?}");
        assert_eq!(device.object.as_deref(), Some(r"NVIDIA Tesla T4 (PCI\VEN_10DE\1)"));
        assert!(device.what.starts_with(&format!("problem code {code}: ")), "{device:?}");
        assert!(device.what.ends_with("Windows lists no adapter for it"), "{device:?}");
        (device.status, device.hint.clone().unwrap())
    };
    for (code, beside_another, fix) in [
        (43, Status::Failed, "restart the host"),
        (31, Status::Failed, "reinstall NVIDIA's driver"),
        (28, Status::Warning, "install NVIDIA's driver"),
        (22, Status::Ok, r"Enable-PnpDevice -InstanceId 'PCI\VEN_10DE\1'"),
    ] {
        let (status, hint) = found(code, false);
        assert_eq!(status, beside_another, "{code}");
        assert!(hint.contains(fix), "{hint}");
        let (status, alone) = found(code, true);
        assert!(status == Status::Failed && alone.contains(fix), "{alone}");
    }
    let other = "it must also support NVIDIA Tesla T4, whose driver it replaces";
    let (beside, alone) = (found(28, false).1, found(28, true).1);
    assert!(beside.contains(other) && !alone.contains(other), "{beside}");
}

const INTEL: &str = r"PCI\VEN_8086&DEV_56A0\1";

/// The hint of a code leaves out what this host excludes.
#[test]
fn a_problem_has_the_advice_that_this_host_can_follow() {
    use Hypervisor::{Guest, None as NoHypervisor, Own};
    let hint = |code: u32, id: &str, product: &str, hypervisor: Option<Hypervisor>| {
        let findings = changed(Subject::Device, |facts| {
            adapters(facts).clear();
            facts.snapshot.host.product = Some(product.to_owned());
            facts.snapshot.host.hypervisor = hypervisor;
            let mut device = broken(id, code);
            if id == INTEL {
                device.description = "Intel(R) Arc(TM) A770 Graphics".to_owned();
            }
            facts.snapshot.devices_without_adapter = vec![device];
        });
        findings[1].hint.clone().unwrap()
    };
    let (amd, intel, nvidia) = (r"PCI\VEN_1002&DEV_7590\1", INTEL, r"PCI\VEN_10DE&DEV_2684\1");
    let (server, client) = ("Microsoft Windows Server 2025 Standard", "Microsoft Windows 11 Pro");
    for (id, product, hypervisor, has, lacks) in [
        (amd, client, Some(Own), vec!["turn off Hyper-V"], vec!["Resizable BAR", "Windows Server"]),
        (
            amd,
            server,
            Some(NoHypervisor),
            vec!["Windows Server"],
            vec!["Hyper-V", "virtual machine"],
        ),
        (
            amd,
            client,
            Some(Guest),
            vec!["the machine that it runs on, and start both"],
            vec!["turn off"],
        ),
        (intel, server, Some(Own), vec!["turn off Hyper-V", "Resizable BAR"], vec![]),
        (nvidia, server, Some(Guest), vec!["refuses to run there"], vec!["turn off", "Resizable"]),
        (
            nvidia,
            client,
            Some(NoHypervisor),
            vec!["check the hardware"],
            vec!["virtual machine", "Server"],
        ),
        (nvidia, client, None, vec!["in a virtual machine"], vec!["turn off"]),
    ] {
        let hint = hint(43, id, product, hypervisor);
        assert!(hint.contains("row `code 43`"), "{hint}");
        assert!(has.iter().all(|text| hint.contains(text)), "{hint}");
        assert!(!lacks.iter().any(|text| hint.contains(text)), "{hint}");
    }
    assert!(hint(28, amd, server, None).contains("not every GPU has one for Windows Server"));
    assert!(!hint(28, amd, client, None).contains("Server"));
    assert!(hint(10, intel, client, None).contains("Resizable BAR"));
    assert!(!hint(10, nvidia, client, None).contains("Resizable BAR"));
    // The graphics of a processor.
    assert!(!hint(43, r"PCI\VEN_8086&DEV_7D67\1", client, None).contains("Resizable BAR"));
    assert_eq!(hint(14, nvidia, client, Some(Guest)), "restart this virtual machine");
    assert_eq!(hint(14, nvidia, client, Some(NoHypervisor)), "restart the host");
    assert_eq!(
        hint(12, nvidia, client, Some(NoHypervisor)),
        "enable `Above 4G decoding` in the firmware"
    );
}

#[test]
fn an_old_revision_of_server_2019_is_a_warning() {
    let page = include_str!("../../../../../docs/drivers.md");
    assert!(page.contains("(10.0.17763.1457)"), "the page names the revision below");
    let windows = |build: &str| {
        let findings =
            changed(Subject::Windows, |facts| facts.snapshot.host.build = build.parse().ok());
        (findings[0].status, findings[0].id)
    };
    let outdated = (Status::Warning, Some("windows-outdated"));
    for (build, expected) in [
        ("10.0.17763.1339", outdated),
        ("10.0.17763.1456", outdated),
        ("10.0.17763.1457", (Status::Ok, None)),
        ("10.0.17763.0", (Status::Ok, None)),
        ("10.0.20348.1", (Status::Ok, None)),
    ] {
        assert_eq!(windows(build), expected, "{build}");
    }
}

#[test]
fn a_device_that_lost_its_adapter_is_not_looked_for_in_its_slot() {
    let hint = |without_adapter: Vec<PnpDevice>| {
        let findings = changed(Subject::Plugin, |facts| {
            facts.snapshot.devices_without_adapter = without_adapter;
            facts.plugin = Some(answers(&facts.snapshot, &configuration(), |report| {
                let device = &mut report.node.resources[0].devices[0];
                device.id = PnpId::new(r"PCI\VEN_10DE\1");
                let text = "the host no longer reports the device".to_owned();
                device.unhealthy = Some(Unhealthy { kind: UnhealthyKind::Removed, text });
            }));
        });
        findings.last().unwrap().hint.clone().unwrap()
    };
    assert!(hint(vec![]).contains("check the device and its slot"));
    let lost = hint(vec![broken(r"PCI\VEN_10DE\1", 43)]);
    assert_eq!(lost, "fix what the lines `device` report about it");
}

/// The hint of a device with this problem code, paravirtualized by its ID or by its folder.
#[test]
fn a_paravirtualized_gpu_needs_the_driver_of_its_host() {
    let by_id = |facts: &mut NodeFacts| {
        let id = r"PCI\VEN_1414&DEV_008E&SUBSYS_00000000&REV_00\5&3A1CC9D5&0&0";
        adapters(facts)[0].pnp.as_mut().unwrap().id = PnpId::new(id);
    };
    let by_folder = |facts: &mut NodeFacts| {
        store(facts).path =
            r"C:\Windows\System32\HostDriverStore\FileRepository\nv.inf_amd64_1".to_owned();
    };
    let in_a_container = |facts: &mut NodeFacts| {
        by_folder(facts);
        facts.snapshot.host.inside_container = true;
    };
    let hint = |make: &dyn Fn(&mut NodeFacts), code: u32| {
        hint_of(Subject::Device, |facts| {
            make(facts);
            adapters(facts)[0].pnp.as_mut().unwrap().problem_code = code;
        })
    };
    let copy = "copy the host's current driver package to HostDriverStore";
    for code in [43, 31, 10] {
        for make in [&by_id as &dyn Fn(&mut NodeFacts), &by_folder] {
            let hint = hint(make, code);
            assert!(hint.contains(copy), "{code}: {hint}");
            assert!(!hint.contains("hardware") && !hint.contains("reinstall"), "{hint}");
        }
    }
    let without_nvml = |make: &dyn Fn(&mut NodeFacts)| {
        hint_of(Subject::Nvml, |facts| {
            make(facts);
            facts.snapshot.node.nvml = Some(Nvml { library: None, gpus: Err("none".to_owned()) });
        })
    };
    assert!(without_nvml(&by_id).contains("GPU-PV"));
    assert_eq!(without_nvml(&|_| ()), "reinstall NVIDIA's driver");
    assert!(hint(&by_id, 12).contains("HighMemoryMappedIoSpace"));
    assert!(hint(&in_a_container, 43).contains("check the hardware"));
    assert!(hint(&|_| (), 43).contains("check the hardware"));
    let missing = hint_of(Subject::Device, |facts| {
        by_folder(facts);
        store(facts).files = StoreFiles::Listed([].into());
    });
    assert!(missing.contains(copy), "{missing}");
    let nvml = hint_of(Subject::Nvml, |facts| {
        by_id(facts);
        facts.snapshot.node.nvml = Some(Nvml { library: None, gpus: Err(String::new()) });
    });
    assert!(nvml.contains("copy nvml.dll"), "{nvml}");
}

#[test]
fn nvml_that_does_not_respond_follows_from_a_broken_device() {
    let broken = hint_of(Subject::Nvml, |facts| {
        adapters(facts)[0].pnp.as_mut().unwrap().problem_code = 43;
        facts.snapshot.node.nvml = Some(Nvml { gpus: Err("no devices".to_owned()), ..nvml(&[]) });
    });
    assert!(broken.starts_with("fix what the lines `device` report"), "{broken}");
    let unlisted = changed(Subject::Nvml, |facts| {
        adapters(facts).clear();
        facts.snapshot.devices_without_adapter = vec![self::broken(r"PCI\VEN_10DE\1", 43)];
        facts.snapshot.node.nvml = Some(Nvml { gpus: Err("no devices".to_owned()), ..nvml(&[]) });
    });
    assert_eq!(unlisted[0].hint.as_deref(), Some(broken.as_str()));
}

#[test]
fn an_inventory_leaves_unchecked_what_it_does_not_contain() {
    let mut facts = healthy();
    facts.snapshot.node.containerd = None;
    facts.snapshot.node.kubelet = None;
    facts.snapshot.node.nvml = None;
    let checks = evaluate(&facts);
    let unchecked: Vec<_> =
        checks.iter().filter(|c| c.status == Status::Skipped).map(|c| c.name).collect();
    assert_eq!(unchecked, names(&[Subject::Containerd, Subject::Kubelet, Subject::Nvml]));
}

/// The finding with a reason has its fix, if nothing else is advertised.
#[test]
fn an_nvml_that_does_not_respond_has_the_fix_of_its_cause() {
    let hint = |change: &dyn Fn(&mut NodeFacts)| {
        hint_of(Subject::Nvml, |facts| {
            let nvml = facts.snapshot.node.nvml.as_mut().unwrap();
            nvml.gpus = Err("NVML_ERROR_GPU_IS_LOST".to_owned());
            change(facts);
        })
    };
    let broken_device = "fix what the lines `device` report about NVIDIA's devices";
    assert_eq!(hint(&|_| ()), "run nvidia-smi on the host and fix what it reports");
    assert_eq!(
        hint(&|facts| adapters(facts)[0].pnp.as_mut().unwrap().problem_code = 43),
        broken_device
    );
    let lost = |facts: &mut NodeFacts| {
        facts.snapshot.devices_without_adapter = vec![broken(r"PCI\VEN_10DE\1", 43)];
    };
    assert_eq!(hint(&lost), broken_device);
    let of_amd = |facts: &mut NodeFacts| {
        facts.snapshot.devices_without_adapter = vec![broken(r"PCI\VEN_1002\1", 43)];
    };
    assert_eq!(hint(&of_amd), "run nvidia-smi on the host and fix what it reports");
}

#[test]
fn the_only_adapter_has_a_line_with_what_advertises_it() {
    for (change, reason, fix) in [
        (
            (|facts| adapters(facts)[0].integrated = true) as fn(&mut NodeFacts),
            "adapter is integrated",
            "`includeIntegrated: true`",
        ),
        (
            |facts| adapters(facts)[0].detachable = true,
            "adapter is detachable",
            "`includeDetachable: true`",
        ),
        (
            |facts| {
                let policy = &mut facts.configuration.as_mut().unwrap().policy;
                policy.models.retain(|model| model.model == DriverModel::Mcdm);
            },
            "not matched by any enabled driver model (mcdm)",
            "`--driver-model wddm`",
        ),
    ] {
        let findings = changed(Subject::Resources, change);
        let [problem, adapter] = findings.as_slice() else { panic!("{findings:?}") };
        assert_eq!(
            problem.hint.as_deref(),
            Some("fix what the next lines report about each adapter")
        );
        assert_eq!(adapter.status, Status::Warning);
        assert!(adapter.what.starts_with(&format!("not advertised: {reason}")), "{adapter:?}");
        assert!(adapter.hint.as_ref().unwrap().contains(fix), "{adapter:?}");
    }
    let none = changed(Subject::Resources, |facts| {
        adapters(facts).clear();
        facts.snapshot.node.nvml = None;
    });
    assert!(none[0].hint.as_ref().unwrap().starts_with("install the GPU"), "{none:?}");
}

/// Faults need a fix in any case. What the configuration excludes, and a GPU without a usable driver,
/// need one only if pods can get no other device.
#[test]
fn every_reason_not_to_advertise_an_adapter_has_a_line_with_its_remedy() {
    let snapshot = two_gpus();
    for reason in NotAdvertisedReason::every() {
        let description = "GPU".to_owned();
        let adapter = NotAdvertised { luid: Luid(7), description, reason, resource: None };
        let line = |is_empty| not_advertised(&adapter, is_empty, &snapshot);
        let NotAdvertised { reason, .. } = &adapter;
        let (Some(only), Some(beside)) = (line(true), line(false)) else {
            assert_eq!(*reason, NotAdvertisedReason::Software);
            continue;
        };
        assert_eq!(only.what, format!("not advertised: {reason}"));
        let remedy = reason.remedy(&snapshot.host);
        let statuses = match remedy {
            // The graphics of a management controller, or Microsoft's own, need no driver.
            Remedy::None | Remedy::VendorDriver => [Status::Ok, Status::Ok],
            Remedy::Configure(_) => [Status::Warning, Status::Ok],
            Remedy::Repair(_) => [Status::Warning, Status::Warning],
        };
        assert_eq!([only.status, beside.status], statuses, "{reason}");
        if let Remedy::Configure(fix) | Remedy::Repair(fix) = remedy {
            assert!(only.hint.unwrap().ends_with(fix), "{reason}");
        }
    }
}

/// Status, object and text of each check of the plugin that answers after `change`.
fn of_plugin(change: impl FnOnce(&mut PluginReport)) -> Vec<(Status, String)> {
    let changed = changed(Subject::Plugin, |facts| {
        facts.plugin = Some(answers(&facts.snapshot, &configuration(), change));
    });
    changed.into_iter().map(|check| (check.status, check.sentence())).collect()
}

/// It may run with another configuration than this program.
#[test]
fn a_plugin_that_runs_decides_what_is_listed_and_this_program_says_what_is_not_advertised() {
    let resources = |change: &dyn Fn(&mut PluginReport)| -> Vec<(Status, String)> {
        let checks = changed(Subject::Resources, |facts| {
            let mut integrated = adapters(facts)[0].clone();
            integrated.luid = Luid(7);
            integrated.integrated = true;
            integrated.pnp.as_mut().unwrap().id = PnpId::new(r"PCI\VEN_10DE\2");
            integrated.pnp.as_mut().unwrap().location_paths.clear();
            adapters(facts).push(integrated);
            facts.plugin = Some(answers(&facts.snapshot, &configuration(), change));
        });
        checks.into_iter().map(|check| (check.status, check.sentence())).collect()
    };
    let not_advertised = "NVIDIA Tesla T4 (LUID 7): not advertised: adapter is integrated and \
                          includeIntegrated is false";
    let other = resources(&|report| {
        let resources = &mut report.node.resources;
        resources[0].replicas = 4.try_into().unwrap();
        let mut removed = resources[0].devices[0].clone();
        removed.id = PnpId::new("PCI\\GONE");
        let text = devices::UnhealthyReason::Removed.to_string();
        removed.unhealthy = Some(Unhealthy { kind: UnhealthyKind::Removed, text });
        resources[0].devices.push(removed);
    });
    let [display, compute, reason] = &other[..] else { panic!("{other:?}") };
    let expected = "directx.microsoft.com/display: 1 of 2 devices healthy, each shared by up to 4 \
                    containers";
    assert_eq!(display, &(Status::Ok, expected.to_owned()));
    assert!(compute.1.starts_with("directx.microsoft.com/compute: capacity 0"), "{compute:?}");
    assert_eq!(reason, &(Status::Ok, not_advertised.to_owned()));

    let none = resources(&|report| report.node.resources[0].devices.clear());
    let expected = "no device of this host is advertised to the kubelet".to_owned();
    assert_eq!(none[0], (Status::Failed, expected));
    assert!(none[1].1.starts_with(not_advertised), "{none:?}");
}

#[test]
fn the_plugin_reports_unhealthy_devices_notices_and_a_rejected_configuration() {
    let mut id = String::new();
    let found = of_plugin(|report| {
        let device = &mut report.node.resources[0].devices[0];
        device.unhealthy =
            Some(Unhealthy { kind: UnhealthyKind::ProblemCode, text: "code 43".to_owned() });
        id = device.id.to_string();
        report.notices = vec![format!("device {id} is unhealthy: code 43"), "no files".into()];
        report.rejected_configuration = Some("unknown key `x`".to_owned());
    });
    let expected = [
        (Status::Ok, "the plugin lists 1 device in 2 resources".to_owned()),
        (Status::Warning, format!("{id}: the plugin lists it as unhealthy: code 43")),
        (Status::Warning, "no files".to_owned()),
        (
            Status::Failed,
            "the plugin rejected its changed configuration: unknown key `x`".to_owned(),
        ),
    ];
    assert_eq!(found, expected);
}

#[test]
fn a_plugin_that_does_not_run_is_busy_or_of_another_version_is_told_apart() {
    let with = |answers: Option<Answers>| only(Subject::Plugin, |facts| facts.plugin = answers);
    let absent = with(Some(Answers::default()));
    assert_eq!(absent, (Status::Skipped, "no plugin serves devices on this node".to_owned()));
    assert_eq!(with(None).0, Status::Skipped);
    let answer = |answer| Some(Answers::of([(PathBuf::from("/x/wddm-1.sock"), answer)]));
    let busy = with(answer(Err(StatusError::Busy)));
    let what = "the plugin at /x/wddm-1.sock does not answer in time".to_owned();
    assert_eq!(busy, (Status::Warning, what));
    let resources = vec![ResourceStatus { name: "a/b".to_owned(), ..ResourceStatus::default() }];
    let document = br#"{"format": 2, "version": "99.0.0"}"#.to_vec();
    let other = with(answer(Ok(StatusReport { resources, document, instance: 1 })));
    let what = "the plugin at /x/wddm-1.sock is version 99.0.0 with a report of format 2, which this program cannot \
                read";
    assert_eq!(other, (Status::Warning, what.to_owned()));
    let pending = of_plugin(|report| report.pending = Some("reading adapters".to_owned()));
    assert_eq!(pending.len(), 1);
    assert!(pending[0].1.ends_with("does not know the devices yet: reading adapters"));
    let alone = of_plugin(|report| {
        report.driver_models = vec![DriverModel::Wddm];
        report.other_driver_models = vec![DriverModel::Mcdm];
    });
    let what = "the plugin for the driver model mcdm does not run".to_owned();
    assert_eq!(alone.last(), Some(&(Status::Warning, what)));
}
