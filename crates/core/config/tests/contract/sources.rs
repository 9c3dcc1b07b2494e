//! Where values come from, and which source wins.

use config::{Config, Flags, Trust};
use devices::{DriverModel, MultiDevice, RuntimeMounts, Visibility};

use crate::environment::{TestEnvironment, beside_inputs, effective, report};

const BOTH: [DriverModel; 2] = [DriverModel::Wddm, DriverModel::Mcdm];

fn replicas(config: &Config) -> Vec<u32> {
    config.policy.models.iter().map(|m| m.sharing.replicas.get()).collect()
}

#[test]
fn without_input_wddm_and_mcdm_have_the_defaults() {
    insta::assert_snapshot!(effective(&TestEnvironment::default().load(&[]).unwrap()));
}

#[test]
fn legacy_behaves_as_the_plugin_of_2019() {
    let config = TestEnvironment::default().load(&[DriverModel::Legacy]).unwrap();
    insta::assert_snapshot!(effective(&config));
    assert_eq!(config.policy.models[0].match_name.as_deref(), Some("nvidia"));
    let environment = TestEnvironment::default()
        .variable("DIRECTX_GPU_MATCH_NAME", "Radeon")
        .variable("PLUGIN_SOCK_DIR", r"c:\var\lib\kubelet\device-plugins\")
        .variable("LEGACY_DEVICE_PLUGIN_RESOURCE_NAME", "windows.alibabacloud.com/directx");
    let config = environment.load(&[DriverModel::Legacy]).unwrap();
    let policy = &config.policy.models[0];
    assert_eq!(policy.match_name.as_deref(), Some("Radeon"));
    assert_eq!(policy.resource.as_str(), "windows.alibabacloud.com/directx");
    let directory = config.device_plugin_dir.unwrap();
    assert_eq!(directory.as_os_str(), r"c:\var\lib\kubelet\device-plugins\");
    // The variable was the earlier plugin's own: the others never heeded it.
    assert_eq!(environment.load(&BOTH).unwrap().device_plugin_dir, None);
}

#[test]
fn legacy_cannot_be_combined() {
    let environment = TestEnvironment::default();
    insta::assert_snapshot!(report(environment.load(&[DriverModel::Legacy, DriverModel::Wddm])));
    assert!(environment.load(&[DriverModel::Legacy, DriverModel::Legacy]).is_ok());
}

#[test]
fn a_variable_takes_precedence_over_the_file() {
    let text = "multitenancy: 2\nincludeIntegrated: true\nincludeDetachable: true\nresourceName: a/file\n\
                runtimeMounts: always\nmultiDevice: reject\nvisibility: off\n";
    let file = TestEnvironment::default().file("/here/wddm.yaml", text);
    let config = file.load(&[DriverModel::Wddm]).unwrap();
    assert_eq!(replicas(&config), [2]);
    let both = file
        .variable("WDDM_DEVICE_PLUGIN_MULTITENANCY", "3")
        .variable("WDDM_DEVICE_PLUGIN_INCLUDE_INTEGRATED", "false")
        .variable("WDDM_DEVICE_PLUGIN_INCLUDE_DETACHABLE", "0")
        .variable("WDDM_DEVICE_PLUGIN_MULTI_DEVICE", "First")
        .variable("WDDM_DEVICE_PLUGIN_VISIBILITY", "launcher")
        .variable("WDDM_DEVICE_PLUGIN_RESOURCE_NAME", "a/variable")
        .variable("WDDM_DEVICE_PLUGIN_SKIP_RUNTIME_MOUNTS", "true");
    let config = both.load(&BOTH).unwrap();
    assert_eq!(replicas(&config), [3, 1]);
    let wddm = &config.policy.models[0];
    assert_eq!((wddm.include_integrated, wddm.include_detachable), (false, false));
    assert_eq!(wddm.resource.as_str(), "a/variable");
    assert_eq!(wddm.container.runtime_mounts, RuntimeMounts::Never);
    assert_eq!(wddm.container.multi_device, MultiDevice::First);
    assert_eq!(wddm.container.visibility, Visibility::Launcher);
    assert_eq!(config.policy.models[1].container.runtime_mounts, RuntimeMounts::Auto);
}

#[test]
fn the_file_and_the_variables_of_each_driver_model_are_named() {
    let environment = TestEnvironment::default()
        .file("/here/wddm.yaml", "multitenancy: 2\nremovalGraceSeconds: 600")
        .file(r"C:\etc\mcdm.yaml", "")
        .variable("WDDM_DEVICE_PLUGIN_MULTITENANCY", "3")
        .variable("WDDM_DEVICE_PLUGIN_VISIBILITY", " ")
        .variable("MCDM_DEVICE_PLUGIN_CONFIG_FILE", r"C:\etc\mcdm.yaml")
        .variable("LEGACY_DEVICE_PLUGIN_MULTITENANCY", "4")
        .variable("PLUGIN_SOCK_DIR", "/kubelet")
        .variable("DIRECTX_OTHER_DRIVER_MODELS", "mcdm");
    let summaries = |models: &[DriverModel]| {
        let models = environment.load(models).unwrap().models;
        models.iter().map(|model| model.to_string().replace('\\', "/")).collect::<Vec<_>>()
    };
    assert_eq!(
        summaries(&BOTH),
        [
            "wddm multitenancy = 3 (/here/wddm.yaml, variable WDDM_DEVICE_PLUGIN_MULTITENANCY, \
             variable DIRECTX_OTHER_DRIVER_MODELS)",
            "every value of mcdm is a default (C:/etc/mcdm.yaml, \
             variable DIRECTX_OTHER_DRIVER_MODELS)",
        ]
    );
    assert_eq!(
        summaries(&[DriverModel::Legacy]),
        ["legacy multitenancy = 4 (variable LEGACY_DEVICE_PLUGIN_MULTITENANCY, \
             variable PLUGIN_SOCK_DIR, variable DIRECTX_OTHER_DRIVER_MODELS)"]
    );
}

#[test]
fn a_default_file_that_others_may_change_is_ignored_with_a_notice() {
    let environment = TestEnvironment::default()
        .file("/here/wddm.yaml", "multitenancy: nonsense")
        .file("/here/wddm.json", r#"{"multitenancy": 3}"#)
        .file("/here/wddm.yml", "multitenancy: 4")
        .trust("/here/wddm.yaml", Trust::Distrusted("Users may change it".to_owned()))
        // The file was created between the check and the read.
        .trust("/here/wddm.yml", Trust::Absent);
    let config = environment.load(&[DriverModel::Wddm]).unwrap();
    assert_eq!(replicas(&config), [3], "the next file is read");
    let notices = config.notices.join("\n").replace('\\', "/");
    let expected = "the configuration file `/here/wddm.yaml` is ignored: Users may change it";
    assert_eq!(notices, expected);
    // An explicit file is trusted.
    let named = TestEnvironment::default()
        .file("c.yaml", "multitenancy: 2")
        .trust("c.yaml", Trust::Distrusted("Users may change it".to_owned()));
    let flags = Flags { config: Some("c.yaml".into()), ..Flags::default() };
    assert_eq!(replicas(&config::load(&flags, &named).unwrap()), [2, 2]);
}

#[test]
fn skip_runtime_mounts_false_lets_the_file_decide() {
    let environment = TestEnvironment::default()
        .file("/here/mcdm.yaml", "runtimeMounts: always")
        .variable("MCDM_DEVICE_PLUGIN_SKIP_RUNTIME_MOUNTS", "false");
    let config = environment.load(&[DriverModel::Mcdm]).unwrap();
    assert_eq!(config.policy.models[0].container.runtime_mounts, RuntimeMounts::Always);
}

#[test]
fn the_directory_flag_takes_precedence_over_the_variable() {
    let environment = TestEnvironment::default().variable("PLUGIN_SOCK_DIR", "/variable");
    let flags = Flags {
        driver_models: vec![DriverModel::Legacy],
        device_plugin_dir: Some("/flag".into()),
        ..Flags::default()
    };
    let config = config::load(&flags, &environment).unwrap();
    assert_eq!(config.device_plugin_dir.as_deref(), Some("/flag".as_ref()));
}

#[test]
fn default_files_are_per_model_and_the_working_directory_comes_first() {
    let machine = if cfg!(windows) {
        r"D:\etc\directx-device-plugins"
    } else {
        "/etc/directx-device-plugins"
    };
    let machine = |name: &str| std::path::Path::new(machine).join(name).display().to_string();
    let environment = TestEnvironment::default()
        .variable("SystemDrive", "D:")
        .file("/here/wddm.yaml", "multitenancy: 2")
        .file(&machine("wddm.yaml"), "multitenancy: 3")
        .file(&machine("mcdm.yaml"), "multitenancy: 4");
    assert_eq!(replicas(&environment.load(&BOTH).unwrap()), [2, 4]);
}

#[cfg(not(windows))]
#[test]
fn a_path_that_is_absolute_here_is_absolute() {
    let environment = TestEnvironment::default()
        .file("/named.yaml", "multitenancy: 3")
        .variable("WDDM_DEVICE_PLUGIN_CONFIG_FILE", "/named.yaml");
    assert_eq!(replicas(&environment.load(&BOTH).unwrap()), [3, 1]);
}

#[test]
fn a_named_file_replaces_the_default_file() {
    let environment = TestEnvironment::default()
        .file("/here/wddm.yaml", "multitenancy: 2")
        .file(r"\\server\share\named.yaml", "multitenancy: 3")
        .file(r"C:\etc\mcdm.yaml", "multitenancy: 4")
        .file("flag.yaml", "multitenancy: 5")
        .variable("WDDM_DEVICE_PLUGIN_CONFIG_FILE", r"\\server\share\named.yaml")
        .variable("MCDM_DEVICE_PLUGIN_CONFIG_FILE", r"C:\etc\mcdm.yaml");
    assert_eq!(replicas(&environment.load(&BOTH).unwrap()), [3, 4]);
    let config = Some("flag.yaml".into());
    let flags = Flags { config, ..Flags::default() };
    assert_eq!(replicas(&config::load(&flags, &environment).unwrap()), [5, 5]);
}

#[test]
fn an_empty_variable_is_not_set() {
    let mut environment = TestEnvironment::default().file("/here/wddm.yaml", "multitenancy: 2");
    for name in config::VARIABLES {
        environment = environment.variable(&name.replace("{MODEL}", "WDDM"), "");
    }
    assert_eq!(replicas(&environment.load(&[DriverModel::Wddm]).unwrap()), [2]);
}

#[test]
fn booleans_have_several_spellings() {
    let name = "WDDM_DEVICE_PLUGIN_INCLUDE_INTEGRATED";
    for (text, scope) in [
        ("true", true),
        ("TRUE", true),
        ("1", true),
        ("t", true),
        (" yes ", true),
        ("False", false),
        ("0", false),
        ("off", false),
    ] {
        let config = TestEnvironment::default().variable(name, text).load(&BOTH).unwrap();
        assert_eq!(config.policy.models[0].include_integrated, scope, "{text}");
    }
}

#[test]
fn multitenancy_0_means_1() {
    let environment = TestEnvironment::default()
        .file("/here/mcdm.yaml", "multitenancy: 0")
        .variable("WDDM_DEVICE_PLUGIN_MULTITENANCY", "0");
    assert_eq!(replicas(&environment.load(&BOTH).unwrap()), [1, 1]);
}

#[test]
fn bad_variables_are_named_with_value_and_hint() {
    let table = [
        ("WDDM_DEVICE_PLUGIN_MULTITENANCY", "-1"),
        ("WDDM_DEVICE_PLUGIN_MULTITENANCY", "many"),
        ("WDDM_DEVICE_PLUGIN_MULTITENANCY", "1.5"),
        ("WDDM_DEVICE_PLUGIN_MULTITENANCY", "1025"),
        ("MCDM_DEVICE_PLUGIN_MULTITENANCY", "99999999999999999999"),
        ("WDDM_DEVICE_PLUGIN_INCLUDE_INTEGRATED", "2"),
        ("MCDM_DEVICE_PLUGIN_INCLUDE_DETACHABLE", "maybe"),
        ("MCDM_DEVICE_PLUGIN_SKIP_RUNTIME_MOUNTS", "treu"),
        ("WDDM_DEVICE_PLUGIN_CONFIG_FILE", "wddm.yaml"),
        ("WDDM_DEVICE_PLUGIN_CONFIG_FILE", r"C:wddm.yaml"),
        ("WDDM_DEVICE_PLUGIN_CONFIG_FILE", r"C:\not\there.yaml"),
        ("MCDM_DEVICE_PLUGIN_CONFIG_FILE", r"C:\etc\locked.yaml"),
        ("MCDM_DEVICE_PLUGIN_MULTI_DEVICE", "all"),
        ("WDDM_DEVICE_PLUGIN_VISIBILITY", "on"),
        ("WDDM_DEVICE_PLUGIN_RESOURCE_NAME", "gpu"),
        ("WDDM_DEVICE_PLUGIN_RESOURCE_NAME", "kubernetes.io/gpu"),
    ];
    let errors =
        table.map(|(name, value)| TestEnvironment::default().variable(name, value).report(&BOTH));
    insta::assert_snapshot!(beside_inputs(errors));
}

#[cfg(unix)]
#[test]
fn a_variable_that_is_not_unicode_is_refused() {
    use std::os::unix::ffi::OsStringExt;
    let mut environment = TestEnvironment::default();
    let value = std::ffi::OsString::from_vec(vec![b'1', 0xFF]);
    environment.variables.insert("WDDM_DEVICE_PLUGIN_MULTITENANCY".to_owned(), value);
    insta::assert_snapshot!(report(environment.load(&BOTH)));
}

#[test]
fn unreadable_files_are_named() {
    let flags = |path: &str| Flags { config: Some(path.into()), ..Flags::default() };
    for path in ["not-there.yaml", "locked.yaml"] {
        let error = config::load(&flags(path), &TestEnvironment::default()).unwrap_err();
        assert_eq!(error.to_string(), format!("cannot read the configuration file `{path}`"));
        assert!(std::error::Error::source(&error).is_some());
    }
    let default = TestEnvironment { unreadable: "/here/wddm.yaml".into(), ..Default::default() };
    let error = report(default.load(&BOTH));
    assert_eq!(error, "cannot read the configuration file `/here/wddm.yaml`");
    let mut environment = TestEnvironment::default();
    environment.files.insert("/here/wddm.yaml".into(), b"multitenancy: 1\n\xFF".to_vec());
    let error = report(environment.load(&BOTH));
    assert_eq!(error, "/here/wddm.yaml:2: the file is not valid UTF-8");
}

/// The real environment and disk, through the same port.
#[test]
fn the_environment_of_the_process() {
    use config::{Environment as _, ProcessEnvironment};
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("c.yaml");
    std::fs::write(&path, "multitenancy: 7").unwrap();
    let flags = Flags { config: Some(path), ..Flags::default() };
    assert_eq!(replicas(&config::load(&flags, &ProcessEnvironment).unwrap()), [7, 7]);
    assert!(
        ProcessEnvironment.variable("PATH").is_some()
            && ProcessEnvironment.working_directory().is_ok()
    );
}

#[test]
fn default_files_may_be_yaml_yml_or_json() {
    let model = [DriverModel::Wddm];
    for name in ["wddm.yaml", "wddm.yml", "wddm.json"] {
        let environment =
            TestEnvironment::default().file(&format!("/here/{name}"), "{\"multitenancy\": 3}");
        let config = environment.load(&model).unwrap();
        assert_eq!(config.policy.models[0].sharing.replicas.get(), 3, "{name}");
    }
    let both = TestEnvironment::default()
        .file("/here/wddm.yml", "multitenancy: 2")
        .file("/here/wddm.yaml", "multitenancy: 1");
    assert_eq!(both.load(&model).unwrap().policy.models[0].sharing.replicas.get(), 1);
}

#[test]
fn a_misspelled_variable_is_a_warning_with_the_nearest_name() {
    let environment = TestEnvironment::default()
        .variable("WDDM_DEVICE_PLUGIN_MULTITENACY", "4")
        .variable("MCDM_DEVICE_PLUGIN_INCLUDE_INTEGRATED", "true")
        .variable("DIRECTX_GPU_MATCHNAME", "amd")
        // Kubernetes sets such a variable for a Service of that name.
        .variable("WDDM_DEVICE_PLUGIN_SERVICE_HOST", "10.0.0.1")
        .variable("DIRECTX_DEVICE_PLUGIN_SERVICE_HOST", "10.0.0.1")
        .variable("DIRECTX_DEVICE_PLUGIN_PORT", "tcp://10.0.0.1:9400")
        .variable("DIRECTX_DEVICE_PLUGIN_MULTITENANCY", "4")
        .variable("DIRECTX_DEVICE_PLUGIN_VISIBLITY", "launcher")
        .variable("PATH", "/bin");
    let notices = environment.load(&BOTH).unwrap().notices;
    assert_eq!(
        notices,
        [
            "variable DIRECTX_DEVICE_PLUGIN_MULTITENANCY has no effect; \
             did you mean WDDM_DEVICE_PLUGIN_MULTITENANCY?",
            "variable DIRECTX_DEVICE_PLUGIN_VISIBLITY has no effect; \
             did you mean WDDM_DEVICE_PLUGIN_VISIBILITY?",
            "variable DIRECTX_GPU_MATCHNAME has no effect; did you mean DIRECTX_GPU_MATCH_NAME?",
            "variable WDDM_DEVICE_PLUGIN_MULTITENACY has no effect; \
             did you mean WDDM_DEVICE_PLUGIN_MULTITENANCY?",
        ]
    );
}

#[test]
fn the_driver_models_of_another_daemon_are_a_list() {
    let load = |value: &str| {
        let environment = TestEnvironment::default();
        environment.variable("DIRECTX_OTHER_DRIVER_MODELS", value).load(&[DriverModel::Wddm])
    };
    for (value, expected) in [("", &[][..]), (" MCDM ", &[DriverModel::Mcdm])] {
        assert_eq!(load(value).unwrap().other_driver_models, expected, "{value:?}");
    }
    for (value, error) in [
        ("mcdm,", "variable DIRECTX_OTHER_DRIVER_MODELS=\"mcdm,\": "),
        ("legacy", "legacy runs beside no other driver model"),
    ] {
        let text = load(value).unwrap_err().to_string();
        assert!(text.contains(error), "{text}");
    }
}

/// Kubernetes' own test of device plugins on Windows sets a blank, which every name contains that
/// has two words. The plugin of 2019 searched for the text as it was.
#[test]
fn blanks_are_a_part_of_text_and_not_of_a_number_or_a_word() {
    let legacy = [DriverModel::Legacy];
    for (text, searched) in [("", "nvidia"), (" ", " "), ("AMD ", "AMD "), ("\tAMD", "\tAMD")] {
        let environment = TestEnvironment::default().variable("DIRECTX_GPU_MATCH_NAME", text);
        let config = environment.load(&legacy).unwrap();
        assert_eq!(config.policy.models[0].match_name.as_deref(), Some(searched), "{text:?}");
        let without_effect = !environment.load(&BOTH).unwrap().notices.is_empty();
        assert_eq!(without_effect, !text.is_empty(), "{text:?}");
    }
    let blank = TestEnvironment::default().variable("DIRECTX_GPU_MATCH_NAME", " ");
    let model = &blank.load(&legacy).unwrap().models[0];
    assert_eq!(
        model.to_string(),
        "legacy DIRECTX_GPU_MATCH_NAME = \" \" (variable DIRECTX_GPU_MATCH_NAME)"
    );

    let directory = TestEnvironment::default().variable("PLUGIN_SOCK_DIR", "/kubelet /x ");
    let directory = directory.load(&legacy).unwrap().device_plugin_dir.unwrap();
    assert_eq!(directory.as_os_str(), "/kubelet /x ");
    let file = TestEnvironment::default()
        .file(r"C:\my files\c.yaml ", "multitenancy: 3")
        .variable("WDDM_DEVICE_PLUGIN_CONFIG_FILE", r"C:\my files\c.yaml ");
    assert_eq!(replicas(&file.load(&BOTH).unwrap()), [3, 1]);
    let words = TestEnvironment::default()
        .variable("WDDM_DEVICE_PLUGIN_MULTITENANCY", " 4 ")
        .variable("MCDM_DEVICE_PLUGIN_MULTITENANCY", " ")
        .variable("WDDM_DEVICE_PLUGIN_VISIBILITY", " launcher\n");
    let config = words.load(&BOTH).unwrap();
    assert_eq!(replicas(&config), [4, 1]);
    assert_eq!(config.policy.models[0].container.visibility, Visibility::Launcher);

    let refused = [
        ("WDDM_DEVICE_PLUGIN_CONFIG_FILE", " "),
        ("WDDM_DEVICE_PLUGIN_CONFIG_FILE", r" C:\c.yaml"),
        ("WDDM_DEVICE_PLUGIN_RESOURCE_NAME", " "),
        ("WDDM_DEVICE_PLUGIN_RESOURCE_NAME", "example.com/gpu "),
    ];
    for (name, value) in refused {
        let error = TestEnvironment::default().variable(name, value).load(&BOTH).unwrap_err();
        let start = format!("variable {name}={value:?}: ");
        assert!(error.to_string().starts_with(&start), "{error}");
    }
}
