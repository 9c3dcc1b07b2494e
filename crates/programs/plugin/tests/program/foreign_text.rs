//! Untrusted text never reaches a terminal unescaped.

use std::io::Write as _;

use serde_json::Value;

use crate::harness::{outcome, program};

/// What may end a line, move the cursor, change colors, or reorder text.
const HOSTILE: &str = "\\e[31m\\n\\r\\t\\b\\a\\0\\x7F\\x9B\\u202E\\u2066\\u2028\\u200B\\uFEFF";

/// What Windows accepts in the name of a file.
const FILE_NAME: &str = "\\u202E\\u2066\\u2028\\u200B\\uFEFF";

/// Whether no character but the ends of lines controls a terminal.
fn is_harmless(text: &str) -> bool {
    !text.chars().any(|c| c != '\n' && host::printable::is_unsafe(c))
}

/// An inventory with such text wherever it may have text.
fn inventory() -> tempfile::NamedTempFile {
    let text = format!(
        r#"
schema: directx-inventory/v1
host: {{product: "P{HOSTILE}", displayVersion: "V{HOSTILE}", build: 10.0.20348.1, hcsSchemas: ['2.5']}}
adapters:
- luid: 1
  attributes: [d3d12-graphics, d3d12-core-compute]
  hardware: true
  hardwareId: {{vendor: 0x10DE, device: 1}}
  driverDescription: "D{HOSTILE}"
  pnp:
    id: "PCI\\X{HOSTILE}"
    description: "N{HOSTILE}"
    manufacturer: "M{HOSTILE}"
    driverKey: "K{HOSTILE}"
    locationPaths: ["L{HOSTILE}"]
  driverStore:
    path: "C:\\Windows\\System32\\DriverStore\\FileRepository\\s{HOSTILE}"
    files: ["f{HOSTILE}"]
    copyToVm:
      CopyToVmOverwrite: {{"v{HOSTILE}": ["f{HOSTILE}", "t{HOSTILE}"]}}
- luid: 2
  attributes: [d3d12-graphics]
  hardware: false
  hardwareId: {{vendor: 0x1414, device: 0x8C}}
  driverDescription: "S{HOSTILE}"
- luid: 3
  attributes: [d3d12-graphics, d3d12-core-compute]
  hardware: true
  hardwareId: {{vendor: 0x10DE, device: 1}}
  pnp: {{id: "PCI\\Y", driverKey: "K", locationPaths: [L]}}
  driverStore:
    path: "C:\\Windows\\System32\\DriverStore\\FileRepository\\s{FILE_NAME}"
    files: ["f{FILE_NAME}"]
    copyToVm:
      CopyToVmOverwrite: {{v: ["f{FILE_NAME}", "t{FILE_NAME}.dll"]}}
- luid: 4
  attributes: [d3d12-graphics, d3d12-core-compute]
  hardware: true
  hardwareId: {{vendor: 0x10DE, device: 1}}
  pnp: {{id: "PCI\\Z{HOSTILE}", description: "U{HOSTILE}", problemCode: 43, locationPaths: [M]}}
"#
    );
    let mut file = tempfile::Builder::new().suffix(".yaml").tempfile().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    file
}

#[test]
fn no_command_prints_control_characters_of_an_inventory() {
    let inventory = inventory();
    let path = inventory.path().to_str().unwrap();
    for command in ["devices", "simulate", "doctor"] {
        for format in ["text", "json"] {
            let mut run = program();
            run.args([command, "--output", format, "--log-level", "info", "--inventory", path]);
            let (_, out, err) = outcome(&run.output().unwrap());
            assert!(is_harmless(&out), "{command} {format}: {out:?}");
            assert!(is_harmless(&err), "{command} {format}: {err:?}");
            assert!(out.contains("u{202e}") || format == "json", "{command}: {out} {err}");
            if format == "json" {
                let json: Value = serde_json::from_str(&out).unwrap();
                assert!(json.to_string().contains('\u{202e}'), "{command}: {json}");
            }
        }
    }
}

#[test]
fn a_node_object_stays_valid_with_control_characters_of_an_inventory() {
    let inventory = inventory();
    let mut run = program();
    run.args(["simulate", "--output", "node", "--inventory"]).arg(inventory.path());
    let (_, out, err) = outcome(&run.output().unwrap());
    assert!(is_harmless(&out), "{out:?}");
    let node: Value = serde_saphyr::from_str(&out).unwrap();
    let message = node["status"]["conditions"][0]["message"].as_str().unwrap();
    assert!(message.contains(r"(U\u{1b}[31m"), "{message} {err}");
    assert!(
        out.starts_with("---\n# note: ") && out.contains("\napiVersion: v1\nkind: Node\n"),
        "{out}"
    );
}

#[test]
fn a_simulation_prints_the_names_of_mounted_files() {
    let inventory = inventory();
    let path = inventory.path().to_str().unwrap();
    let mut run = program();
    run.env("COLUMNS", "1000").args(["simulate", "--verbose", "--inventory", path]);
    let (_, out, err) = outcome(&run.output().unwrap());
    let file = r"\u{202e}\u{2066}\u{2028}\u{200b}\u{feff}";
    assert!(out.contains(&format!(r"f{file} -> C:\Windows\System32\t{file}.dll")), "{out} {err}");
}

/// The message of a condition contains the names of unhealthy devices.
#[test]
fn a_simulation_prints_conditions_without_control_characters() {
    let inventory = inventory();
    let mut run = program();
    run.env("COLUMNS", "1000").args(["simulate", "--verbose", "--inventory"]).arg(inventory.path());
    let (_, out, err) = outcome(&run.output().unwrap());
    let condition = out.lines().find(|line| line.starts_with("  DirectXDevicesHealthy=False"));
    assert!(condition.is_some_and(|line| line.contains(r"(U\u{1b}[31m")), "{out} {err}");
    assert!(is_harmless(&out), "{out:?}");
}

#[test]
fn environment_variables_have_no_control_characters() {
    let inventory = inventory();
    let path = inventory.path().to_str().unwrap();
    let mut run = program();
    run.args(["simulate", "--output", "json", "--inventory", path]);
    let (_, out, err) = outcome(&run.output().unwrap());
    let json: Value = serde_json::from_str(&out).unwrap();
    let variables = json["pods"][0]["container"]["envs"].as_object().unwrap();
    assert!(variables.values().any(|value| value.as_str().unwrap().contains("u{202e}")), "{err}");
    for value in variables.values() {
        assert!(!value.as_str().unwrap().chars().any(host::printable::is_unsafe), "{value:?}");
    }
}

#[test]
fn errors_do_not_print_control_characters_of_files() {
    for text in [
        format!("schema: \"{HOSTILE}\"\nadapters: []"),
        format!("schema: directx-inventory/v1\nadapters: []\n\"{HOSTILE}\": 1"),
        format!("schema: directx-inventory/v1\nadapters: [{{luid: \"{HOSTILE}\"}}]"),
        "schema: directx-inventory/v1\nadapters: []\n\u{1b}[31m\u{202e}: 1".to_owned(),
    ] {
        let mut file = tempfile::Builder::new().suffix(".yaml").tempfile().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        let output = program().arg("devices").arg("--inventory").arg(file.path()).output().unwrap();
        let (status, out, err) = outcome(&output);
        assert_ne!(status, Some(0), "{out}");
        assert!(is_harmless(&err), "{err:?}");
    }
}
