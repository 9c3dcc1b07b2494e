//! The verdicts, table by table.

use std::sync::Arc;

use devices::{
    Adapter, AdapterWarning, CopyToVmValue, DriverStore, HostFacts, HostSnapshot, Luid,
    NumaTopology, PnpId, Policy, StoreFiles, WarningEffect, Wow64,
};
use win32::DriverDate;

use super::judge;
use crate::doctor::check::{Check, Subject, Verdict};
use crate::doctor::observed::{
    Complaint, Configuration, Containerd, Directory, DirectoryState, Hcs, Machine, NvidiaGpu, Nvml,
    Observed, Program, Seen, SocketState,
};
use crate::doctor::version::Version;

const TWO_T4: &str = include_str!("../../../../../fixtures/inventories/aws-t4-two.yaml");

/// A node where everything is as it should be: Server 2022 with one T4.
fn healthy() -> Observed {
    let mut snapshot = two_gpus();
    snapshot.adapters.truncate(1);
    let found = |path: &str, version| Program::Found {
        path: path.to_owned(),
        version: Version::find(version).ok_or_else(String::new),
    };
    Observed {
        machine: Machine {
            host: snapshot.host.clone(),
            hcs: Hcs::Schemas(snapshot.host.hcs_schemas.clone()),
            containerd: Seen::Looked(Containerd {
                program: found(r"C:\containerd.exe", "1.7.22"),
                disabled: Some(vec![]),
            }),
            kubelet: Seen::Looked(found(r"C:\k\kubelet.exe", "v1.31.1")),
            driver_dates: vec![(id(&snapshot).clone(), date())],
            nvml: Seen::Looked(nvml(&["WDDM"])),
            adapters: Ok(snapshot),
        },
        image: Some("10.0.20348.x".parse().unwrap()),
        directory: Seen::Looked(directory(DirectoryState::Present, SocketState::Answers)),
        configuration: Ok(configuration()),
    }
}

fn two_gpus() -> HostSnapshot {
    inventory::parse("aws-t4-two.yaml", TWO_T4).unwrap()
}

fn id(snapshot: &HostSnapshot) -> &PnpId {
    &snapshot.adapters[0].pnp.as_ref().unwrap().id
}

fn date() -> DriverDate {
    // 2023-02-14.
    DriverDate::from_filetime((134_774 + 19_402) * 864_000_000_000)
}

fn configuration() -> Configuration {
    struct Bare;
    impl settings::Environment for Bare {
        fn variable(&self, _: &str) -> Option<std::ffi::OsString> {
            None
        }
        fn variable_names(&self) -> Vec<String> {
            Vec::new()
        }

        fn working_directory(&self) -> std::io::Result<std::path::PathBuf> {
            Ok("/".into())
        }
        fn read(&self, _: &std::path::Path) -> std::io::Result<Vec<u8>> {
            Err(std::io::ErrorKind::NotFound.into())
        }
    }
    let policy = settings::load(&settings::Flags::default(), &Bare).unwrap().policy;
    Configuration { policy, set: vec![], notices: vec![] }
}

fn directory(state: DirectoryState, socket: SocketState) -> Directory {
    Directory { path: r"C:\var\lib\kubelet\device-plugins".to_owned(), state, socket }
}

fn nvml(models: &[&str]) -> Nvml {
    let gpu = |(n, model): (usize, &&str)| NvidiaGpu {
        index: n.to_string(),
        name: "NVIDIA Tesla T4".to_owned(),
        driver: "528.49".to_owned(),
        model: (*model).to_owned(),
    };
    Nvml {
        library: Some(r"C:\Windows\System32\nvml.dll".to_owned()),
        gpus: Ok(models.iter().enumerate().map(gpu).collect()),
    }
}

/// The checks of `subject` once `change` happened to a healthy node.
fn changed(subject: Subject, change: impl FnOnce(&mut Observed)) -> Vec<Check> {
    let mut seen = healthy();
    change(&mut seen);
    judge(&seen).into_iter().filter(|check| check.subject == subject).collect()
}

/// The only check of `subject`, as verdict, text and advice.
fn only(subject: Subject, change: impl FnOnce(&mut Observed)) -> (Verdict, String) {
    let checks = changed(subject, change);
    let [check] = checks.as_slice() else { panic!("{checks:?}") };
    if check.verdict >= Verdict::Warning {
        assert!(check.advice.is_some(), "no advice with {check:?}");
    }
    (check.verdict, check.what.clone())
}

fn adapters(seen: &mut Observed) -> &mut Vec<Adapter> {
    &mut seen.machine.adapters.as_mut().unwrap().adapters
}

fn store(seen: &mut Observed) -> &mut DriverStore {
    adapters(seen)[0].driver_store.as_mut().unwrap()
}

#[test]
fn a_healthy_node_is_well_in_every_subject() {
    let checks = judge(&healthy());
    for subject in Subject::ALL {
        assert!(checks.iter().any(|check| check.subject == subject), "no check of {subject}");
    }
    let ill: Vec<_> = checks.iter().filter(|check| check.verdict != Verdict::Ok).collect();
    assert!(ill.is_empty(), "{ill:?}");
    let order: Vec<Subject> = checks.iter().map(|check| check.subject).collect();
    assert!(order.is_sorted(), "{order:?}");
}

#[test]
fn windows_needs_dxcore_and_says_who_brings_the_files() {
    let build = |build: &str| {
        only(Subject::Windows, |seen| seen.machine.host.build = Some(build.parse().unwrap()))
    };
    for (of, verdict, says) in [
        ("10.0.17763.4010", Verdict::Problem, "cannot list"),
        ("10.0.18363.1", Verdict::Problem, "cannot list"),
        ("10.0.19041.1", Verdict::Ok, "the plugin mounts"),
        ("10.0.20348.1547", Verdict::Ok, "the plugin mounts"),
        ("10.0.26100.1", Verdict::Ok, "mounts none unless"),
    ] {
        let (found, what) = build(of);
        assert_eq!(found, verdict, "{of}");
        assert!(what.contains(says) && what.contains(of), "{what}");
    }
    let unknown = only(Subject::Windows, |seen| seen.machine.host = HostFacts::default());
    assert_eq!(unknown.0, Verdict::NotChecked);
}

#[test]
fn hcs_is_missing_silent_old_or_unknown() {
    let hcs = |hcs: Hcs| only(Subject::Hcs, |seen| seen.machine.hcs = hcs);
    assert_eq!(hcs(Hcs::Missing("no HCS".to_owned())), (Verdict::Problem, "no HCS".to_owned()));
    assert_eq!(hcs(Hcs::Silent("refused".to_owned())), (Verdict::Warning, "refused".to_owned()));
    assert_eq!(hcs(Hcs::Schemas(vec![])).0, Verdict::NotChecked);
    let (verdict, what) = only(Subject::Hcs, |seen| {
        let old = vec!["2.1".parse().unwrap()];
        seen.machine.host.hcs_schemas.clone_from(&old);
        seen.machine.hcs = Hcs::Schemas(old);
    });
    assert_eq!((verdict, what.starts_with("schema 2.1 ")), (Verdict::Warning, true));
}

#[test]
fn an_image_is_compared_when_both_versions_are_known() {
    let image =
        |image: &str| only(Subject::Image, |seen| seen.image = Some(image.parse().unwrap()));
    assert_eq!(image("10.0.20348.1").0, Verdict::Ok);
    assert_eq!(image("10.0.17763").0, Verdict::Problem);
    assert_eq!(image("10.0.26100").0, Verdict::Problem);
    let (verdict, what) = only(Subject::Image, |seen| {
        seen.machine.host.build = Some("10.0.14393.2".parse().unwrap());
        seen.image = Some("10.0.14393.1".parse().unwrap());
    });
    assert_eq!(verdict, Verdict::Warning);
    assert!(what.contains("10.0.14393.2") && what.contains("10.0.14393.1"), "{what}");
    assert_eq!(only(Subject::Image, |seen| seen.image = None).0, Verdict::NotChecked);
    let unknown = only(Subject::Image, |seen| seen.machine.host.build = None);
    assert_eq!(unknown.0, Verdict::NotChecked);
}

#[test]
fn containerd_must_be_new_enough_and_have_its_cri() {
    let containerd = |version: Result<&str, &str>, disabled: Option<&[&str]>| {
        let found = Program::Found {
            path: r"C:\containerd.exe".to_owned(),
            version: version.map(|v| Version::find(v).unwrap()).map_err(str::to_owned),
        };
        let disabled = disabled.map(|list| list.iter().map(|p| (*p).to_owned()).collect());
        let containerd = Containerd { program: found, disabled };
        only(Subject::Containerd, |seen| seen.machine.containerd = Seen::Looked(containerd))
    };
    assert_eq!(containerd(Ok("1.6.36"), Some(&[])).0, Verdict::Problem);
    assert_eq!(containerd(Ok("1.7.0"), Some(&[])).0, Verdict::Ok);
    assert_eq!(containerd(Ok("2.3.2"), Some(&["io.containerd.internal.v1.opt"])).0, Verdict::Ok);
    for cri in ["cri", "io.containerd.grpc.v1.cri", "io.containerd.cri.v1.runtime"] {
        assert_eq!(containerd(Ok("1.7.0"), Some(&[cri])).0, Verdict::Problem, "{cri}");
    }
    let (verdict, what) = containerd(Ok("1.7.0"), None);
    assert_eq!((verdict, what.ends_with("could not be read")), (Verdict::Ok, true));
    assert_eq!(containerd(Err("it did not answer"), None).0, Verdict::Warning);
    let (verdict, what) = only(Subject::Containerd, |seen| {
        let program = Program::NotFound(vec!["PATH".to_owned()]);
        seen.machine.containerd = Seen::Looked(Containerd { program, disabled: None });
    });
    assert_eq!((verdict, what.as_str()), (Verdict::Problem, "no containerd found in PATH"));
}

#[test]
fn kubelets_before_1_21_take_no_plugins() {
    let kubelet =
        |program| only(Subject::Kubelet, |seen| seen.machine.kubelet = Seen::Looked(program)).0;
    let found = |version: &str| Program::Found {
        path: r"C:\k\kubelet.exe".to_owned(),
        version: Version::find(version).ok_or_else(|| "nonsense".to_owned()),
    };
    assert_eq!(kubelet(found("v1.20.15")), Verdict::Problem);
    assert_eq!(kubelet(found("v1.21.0")), Verdict::Ok);
    assert_eq!(kubelet(found("?")), Verdict::NotChecked);
    assert_eq!(kubelet(Program::NotFound(vec![])), Verdict::NotChecked);
}

#[test]
fn the_kubelets_directory_and_socket_must_be_usable() {
    let looked = |subject, state: DirectoryState, socket: SocketState| {
        only(subject, |seen| seen.directory = Seen::Looked(directory(state, socket))).0
    };
    let of_directory = |state| looked(Subject::KubeletDirectory, state, SocketState::Missing);
    assert_eq!(of_directory(DirectoryState::Missing), Verdict::Problem);
    assert_eq!(of_directory(DirectoryState::Unusable("a file".to_owned())), Verdict::Problem);
    assert_eq!(of_directory(DirectoryState::Present), Verdict::Ok);
    let of_socket = |socket| looked(Subject::KubeletSocket, DirectoryState::Present, socket);
    for dead in [
        SocketState::Missing,
        SocketState::Dead("refused".to_owned()),
        SocketState::Denied("denied".to_owned()),
        SocketState::Unsupported,
    ] {
        assert_eq!(of_socket(dead.clone()), Verdict::Problem, "{dead:?}");
    }
}

#[test]
fn a_configuration_that_serve_refuses_is_a_problem_and_hides_only_resources() {
    let complaint = Complaint { what: "key `x`".to_owned(), advice: Some("did you mean y".into()) };
    let checks = changed(Subject::Configuration, |seen| {
        seen.configuration = Err(complaint.clone());
    });
    assert_eq!(checks[0].verdict, Verdict::Problem);
    assert_eq!(checks[0].what, "key `x`");
    assert_eq!(checks[0].advice.as_deref(), Some("did you mean y"));
    let resources = only(Subject::Resources, |seen| seen.configuration = Err(complaint));
    assert_eq!(resources.0, Verdict::NotChecked);
}

#[test]
fn what_is_set_and_what_has_no_effect_is_told() {
    let checks = changed(Subject::Configuration, |seen| {
        let configuration = seen.configuration.as_mut().unwrap();
        configuration.set = vec!["wddm multitenancy = 4 (a.yaml:1)".into(), "b".into()];
        configuration.notices = vec!["`x` has no effect".to_owned()];
    });
    let told: Vec<_> = checks.iter().map(|c| (c.verdict, c.what.as_str())).collect();
    let expected = [
        (Verdict::Ok, "wddm multitenancy = 4 (a.yaml:1); b"),
        (Verdict::Warning, "`x` has no effect"),
    ];
    assert_eq!(told, expected);
}

#[test]
fn devices_are_told_with_driver_date_and_problem() {
    let (verdict, what) = only(Subject::Device, |seen| {
        adapters(seen)[0].driver_version = Some("31.0.15.2849".parse().unwrap());
    });
    assert_eq!((verdict, what.as_str()), (Verdict::Ok, "driver 31.0.15.2849 of 2023-02-14"));
    let (_, what) = only(Subject::Device, |seen| seen.machine.driver_dates.clear());
    assert_eq!(what, "driver version and date not known");
    let (verdict, what) = only(Subject::Device, |seen| {
        adapters(seen)[0].pnp.as_mut().unwrap().problem_code = 43;
    });
    assert_eq!(verdict, Verdict::Problem);
    assert!(what.starts_with("problem code 43: "), "{what}");
    assert_eq!(only(Subject::Device, |seen| adapters(seen).clear()).0, Verdict::Problem);
}

#[test]
fn adapters_that_cannot_be_read_are_one_problem_and_hide_nothing_else() {
    let mut seen = healthy();
    seen.machine.adapters = Err(Complaint { what: "no dxcore.dll".to_owned(), advice: None });
    let checks = judge(&seen);
    let with = |verdict| {
        let subjects = checks.iter().filter(move |check| check.verdict == verdict);
        subjects.map(|check| check.subject).collect::<Vec<_>>()
    };
    assert_eq!(with(Verdict::Problem), [Subject::Device]);
    let unknown = [Subject::RuntimeFiles, Subject::Resources, Subject::Visibility];
    assert_eq!(with(Verdict::NotChecked), unknown);
    let nvml = only(Subject::Nvml, |seen| {
        seen.machine.adapters = Err(Complaint { what: "no dxcore.dll".to_owned(), advice: None });
        seen.machine.nvml = Seen::Looked(Nvml { library: None, gpus: Err(String::new()) });
    });
    assert_eq!(nvml.0, Verdict::NotChecked);
}

#[test]
fn what_could_not_be_read_of_a_device_is_told_beside_it() {
    let checks = changed(Subject::Device, |seen| {
        let warning =
            |effect, text: &str| AdapterWarning { luid: Luid(7), text: text.into(), effect };
        let snapshot = seen.machine.adapters.as_mut().unwrap();
        snapshot.warnings.push(warning(WarningEffect::Incomplete, "its folder was not read"));
        snapshot.warnings.push(warning(WarningEffect::Skipped, "it was not read at all"));
    });
    assert_eq!(checks.len(), 2, "{checks:?}");
    assert_eq!(checks[1].verdict, Verdict::Warning);
    assert_eq!(checks[1].what, "its folder was not read");
}

#[test]
fn named_files_are_compared_with_the_folder() {
    let files = |change: &dyn Fn(&mut Observed)| only(Subject::RuntimeFiles, change);
    assert_eq!(files(&|_| ()), (Verdict::Ok, "14 named, all there".to_owned()));
    let (verdict, what) = files(&|seen| {
        if let StoreFiles::Listed(files) = &mut store(seen).files {
            files.retain(|file| {
                !file.contains("nvcu") && !file.contains("OpenCL") && !file.contains("nvapi")
            });
        }
    });
    assert_eq!(verdict, Verdict::Warning);
    assert!(what.starts_with("9 of 14 missing") && what.ends_with("and 4 more"), "{what}");
    let modern = files(&|seen| {
        seen.machine.host.build = Some("10.0.26100.1".parse().unwrap());
        store(seen).files = StoreFiles::Listed([].into());
    });
    assert_eq!(modern.0, Verdict::Ok);
    let unlisted = files(&|seen| store(seen).files = StoreFiles::EveryNamed);
    assert_eq!(unlisted.0, Verdict::NotChecked);
    let unread = files(&|seen| store(seen).files = StoreFiles::OnDisk);
    assert_eq!(unread.0, Verdict::NotChecked);
    assert_eq!(files(&|seen| store(seen).copy_to_vm.clear()).0, Verdict::Ok);
    let inside = files(&|seen| store(seen).path = r"C:\Windows\System32\HostDriverStore\x".into());
    assert_eq!(inside.0, Verdict::Warning);
    assert_eq!(files(&|seen| adapters(seen)[0].driver_store = None).0, Verdict::Warning);
    let unneeded = files(&|seen| {
        adapters(seen)[0].driver_store = None;
        seen.machine.host.build = Some("10.0.26100.1".parse().unwrap());
    });
    assert_eq!(unneeded.0, Verdict::Ok);
}

#[test]
fn a_host_without_syswow64_needs_no_files_for_it() {
    let without = only(Subject::RuntimeFiles, |seen| seen.machine.host.wow64 = Wow64::Absent);
    assert_eq!(without, (Verdict::Ok, "8 named, all there".to_owned()));
}

#[test]
fn registry_values_that_name_no_file_are_told() {
    let checks = changed(Subject::RuntimeFiles, |seen| {
        let values = store(seen).copy_to_vm.values_mut().next().unwrap();
        values.insert("99".to_owned(), CopyToVmValue::Single(r"..\evil.dll".to_owned()));
    });
    assert_eq!(checks.len(), 2, "{checks:?}");
    assert_eq!(checks[1].verdict, Verdict::Warning);
    assert!(checks[1].what.starts_with("1 registry value is left out: CopyToVmWhenNewer `99`"));
}

#[test]
fn resources_are_counted_and_what_is_not_offered_has_its_reason() {
    let told = |change: &dyn Fn(&mut Observed)| {
        let checks = changed(Subject::Resources, change).into_iter();
        checks.map(|c| (c.verdict, c.object.unwrap_or_default(), c.what)).collect::<Vec<_>>()
    };
    let display = "directx.microsoft.com/display".to_owned();
    let first = |change: &dyn Fn(&mut Observed)| told(change).swap_remove(0);
    assert_eq!(first(&|_| ()), (Verdict::Ok, display.clone(), "1 of 1 device healthy".to_owned()));
    let sick = first(&|seen| adapters(seen)[0].pnp.as_mut().unwrap().problem_code = 10);
    assert_eq!(sick, (Verdict::Problem, display, "0 of 1 device healthy".to_owned()));

    let away = told(&|seen| adapters(seen)[0].pnp.as_mut().unwrap().location_paths.clear());
    assert_eq!((away[0].0, away[1].0), (Verdict::Problem, Verdict::Warning));
    let integrated = told(&|seen| adapters(seen)[0].placement = devices::Placement::Integrated);
    assert_eq!((integrated[0].0, integrated[1].0), (Verdict::Problem, Verdict::Ok));
    let orphan = told(&|seen| adapters(seen)[0].pnp = None);
    assert_eq!((orphan[0].0, orphan[1].0), (Verdict::Problem, Verdict::Warning));
    let software = told(&|seen| adapters(seen)[0].kind = devices::AdapterKind::Software);
    assert_eq!(software.len(), 1, "{software:?}");
}

#[test]
fn a_rule_without_a_device_is_a_warning() {
    let checks = changed(Subject::Resources, |seen| {
        let Policy { models } = &mut seen.configuration.as_mut().unwrap().policy;
        let rule = devices::ResourceRule {
            name: "example.com/none".parse().unwrap(),
            matches: devices::DeviceMatch { min_memory_mib: Some(1 << 40), ..Default::default() },
            replicas: None,
            allocation: None,
        };
        models[0].rules = Arc::new([rule]);
        models[0].numa = NumaTopology::Withhold;
    });
    let idle = checks.iter().find(|check| check.verdict == Verdict::Warning).unwrap();
    assert_eq!(idle.object.as_deref(), Some("example.com/none"));
}

#[test]
fn several_gpus_are_all_visible() {
    let (verdict, what) = only(Subject::Visibility, |seen| {
        seen.machine.adapters = Ok(two_gpus());
    });
    assert_eq!((verdict, what.contains("all 2 GPUs")), (Verdict::Warning, true));
    assert_eq!(only(Subject::Visibility, |seen| adapters(seen).clear()).0, Verdict::Ok);
}

#[test]
fn nvml_matters_where_nvidia_is() {
    let told = |nvml: Nvml, nvidia: bool| {
        only(Subject::Nvml, |seen| {
            seen.machine.nvml = Seen::Looked(nvml);
            if !nvidia {
                adapters(seen).clear();
            }
        })
        .0
    };
    let absent = || Nvml { library: None, gpus: Err("no nvidia-smi".to_owned()) };
    assert_eq!(told(absent(), true), Verdict::Warning);
    assert_eq!(told(absent(), false), Verdict::Ok);
    let broken = Nvml { gpus: Err("driver mismatch".to_owned()), ..nvml(&[]) };
    assert_eq!(told(broken, true), Verdict::Warning);
    assert_eq!(told(nvml(&["WDDM", "MCDM"]), true), Verdict::Ok);
    let (verdict, what) = only(Subject::Nvml, |seen| {
        seen.machine.nvml = Seen::Looked(nvml(&["WDDM", "TCC"]));
    });
    assert_eq!(verdict, Verdict::Warning);
    assert!(what.ends_with("GPU 1 (NVIDIA Tesla T4)"), "{what}");
}

#[test]
fn a_recording_leaves_unchecked_what_only_the_node_knows() {
    let mut seen = healthy();
    seen.machine.containerd = Seen::Recorded;
    seen.machine.kubelet = Seen::Recorded;
    seen.machine.nvml = Seen::Recorded;
    seen.directory = Seen::Recorded;
    let checks = judge(&seen);
    let unchecked: Vec<_> =
        checks.iter().filter(|c| c.verdict == Verdict::NotChecked).map(|c| c.subject).collect();
    let expected = [
        Subject::Containerd,
        Subject::Kubelet,
        Subject::KubeletDirectory,
        Subject::KubeletSocket,
        Subject::Nvml,
    ];
    assert_eq!(unchecked, expected);
}
