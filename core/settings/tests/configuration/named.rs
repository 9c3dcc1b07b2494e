//! Named configurations, of which one is selected.

use devices::DriverModel;
use settings::{Config, ConfigChoice, ConfigName, ConfigNameError, Flags, NamedConfigs, Origin};

use crate::environment::{TestEnvironment, report};

/// Two configurations, and the content of the selection.
fn environment(selection: Option<&[u8]>) -> TestEnvironment {
    let mut environment = TestEnvironment::default()
        .file("/named/default", "multitenancy: 2")
        .file("/named/shared", "multitenancy: 4")
        .file("/here/wddm.yaml", "multitenancy: 9");
    if let Some(bytes) = selection {
        environment.files.insert("/selection".into(), bytes.to_vec());
    }
    environment
}

fn flags(default: Option<&str>) -> Flags {
    let named = NamedConfigs {
        directory: "/named".into(),
        selection: Some("/selection".into()),
        default: default.map(|name| name.parse().expect("a valid name")),
    };
    let driver_models = vec![DriverModel::Wddm];
    Flags { driver_models, config: ConfigChoice::Named(named), ..Flags::default() }
}

fn replicas(config: &Config) -> u32 {
    config.policy.models[0].sharing.replicas.get()
}

#[test]
fn the_selected_configuration_is_used_or_the_default_one() {
    let utf16: Vec<u8> = "\u{FEFF}shared\r\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    for (selection, default, expected) in [
        (None, None, 2),
        (Some(&b""[..]), None, 2),
        (Some(b" \r\n"), None, 2),
        (Some(b""), Some("shared"), 4),
        (Some(b"shared"), None, 4),
        (Some(b"shared\n"), Some("default"), 4),
        (Some(&utf16), None, 4),
        (Some(b"default"), Some("shared"), 2),
    ] {
        let config = settings::load(&flags(default), &environment(selection)).unwrap();
        assert_eq!(replicas(&config), expected, "{selection:?} {default:?}");
    }
}

#[test]
fn the_name_and_what_selects_it_are_effective_values() {
    let named = |selection: Option<&[u8]>, default| {
        let config = settings::load(&flags(default), &environment(selection)).unwrap();
        let value = config.effective.into_iter().find(|value| value.key == "config").unwrap();
        (value.value, value.origin)
    };
    let selected = (String::from("shared"), Origin::Selection("/selection".into()));
    assert_eq!(named(Some(b"shared"), None), selected);
    let default = (String::from("shared"), Origin::Flag("--config-default"));
    assert_eq!(named(None, Some("shared")), default);
    assert_eq!(named(None, None), (String::from("default"), Origin::Default));
}

#[test]
fn a_variable_takes_precedence_over_a_named_configuration_but_names_no_file() {
    let environment = environment(Some(b"shared"))
        .file("/other.yaml", "multitenancy: 8")
        .variable("WDDM_DEVICE_PLUGIN_CONFIG_FILE", "/other.yaml");
    assert_eq!(replicas(&settings::load(&flags(None), &environment).unwrap()), 4);
    let environment = environment.variable("WDDM_DEVICE_PLUGIN_MULTITENANCY", "7");
    assert_eq!(replicas(&settings::load(&flags(None), &environment).unwrap()), 7);
}

#[test]
fn errors_name_the_configuration_and_what_selects_it() {
    let error = |selection: Option<&[u8]>, default| {
        let error = settings::load(&flags(default), &environment(selection));
        let source = error.as_ref().err().and_then(std::error::Error::source);
        let source = source.map(|source| format!(": {source}")).unwrap_or_default();
        report(error).replacen('\n', &format!("{source}\n"), 1)
    };
    insta::assert_snapshot!(
        [
            error(Some(b"exclusive"), None),
            error(Some(b"../default"), None),
            error(Some(b"shared\ndefault"), None),
            error(None, Some("exclusive")),
            error(Some(b"\xFF"), None),
        ]
        .join("\n")
    );
    let mut environment = environment(None);
    environment.files.remove(std::path::Path::new("/named/default"));
    insta::assert_snapshot!(report(settings::load(&flags(None), &environment)));
}

#[test]
fn a_name_is_the_value_of_a_label_and_a_file_name_on_windows() {
    let longest = "a".repeat(settings::MAX_CONFIG_NAME);
    for name in ["default", "A100", "gpu-v1.2_shared", "0", &longest] {
        assert_eq!(name.parse::<ConfigName>().map(|n| n.to_string()), Ok(name.to_owned()));
    }
    let too_long = longest.clone() + "a";
    for text in [
        "",
        ".",
        "..",
        "..data",
        "a.",
        "-a",
        "a_",
        "a/b",
        r"a\b",
        "a:b",
        "C:",
        "a b",
        "ä",
        "NUL",
        "com1.yaml",
        "aux",
        "a\n",
        &too_long,
    ] {
        assert!(text.parse::<ConfigName>().is_err(), "{text:?}");
    }
    let error: ConfigNameError = "\u{1b}[2J".parse::<ConfigName>().unwrap_err();
    assert!(!error.to_string().contains('\u{1b}'), "{error}");
}
