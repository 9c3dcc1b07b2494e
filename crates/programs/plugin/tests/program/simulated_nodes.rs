//! The labels and conditions of a node that `simulate` shows.

use std::fmt::Write as _;

use serde_json::Value;

use crate::harness::{Simulation, inventories, outcome, pod, program, recorded};

const T4: &str = "aws-t4-two.yaml";
/// The keys of a condition.
const CONDITION: [&str; 4] = ["type", "status", "reason", "message"];

/// The conditions of a document, each with status, reason and message.
fn conditions(document: &Value) -> Vec<String> {
    let text = |condition: &Value, key: &str| condition[key].as_str().unwrap().to_owned();
    let conditions = document["conditions"].as_array().unwrap().iter();
    conditions.map(|condition| CONDITION.map(|key| text(condition, key)).join(" ")).collect()
}

/// The rows as kubectl prints a table.
fn table<const N: usize>(rows: &[[&str; N]]) -> String {
    let mut text = String::new();
    for row in rows {
        let mut line = String::from(" ");
        for (column, cell) in row.iter().enumerate() {
            let width = rows.iter().map(|row| row[column].len()).max().unwrap();
            write!(line, " {cell:width$} ").unwrap();
        }
        writeln!(text, "{}", line.trim_end()).unwrap();
    }
    text
}

/// What `kubectl describe node` shows of the simulated node, as far as this project writes it.
fn described(document: &Value) -> String {
    let labels = document["labels"].as_object().unwrap().iter();
    let labels: Vec<String> =
        labels.map(|(name, value)| format!("{name}={}\n", value.as_str().unwrap())).collect();
    let labels = labels.join(&" ".repeat(20));
    let mut conditions =
        vec![["Type", "Status", "Reason", "Message"], ["----", "------", "------", "-------"]];
    for condition in document["conditions"].as_array().unwrap() {
        conditions.push(CONDITION.map(|key| condition[key].as_str().unwrap()));
    }
    let resources = || document["resources"].as_array().unwrap().iter();
    let numbers = |key: &str| -> String {
        let rows: Vec<_> = resources()
            .map(|r| [format!("{}:", r["name"].as_str().unwrap()), r[key].to_string()])
            .collect();
        table(&rows.iter().map(|row| row.each_ref().map(String::as_str)).collect::<Vec<_>>())
    };
    let mut allocated =
        vec![["Resource", "Requests", "Limits"], ["--------", "--------", "------"]];
    let requests: Vec<(&str, String)> = resources()
        .map(|resource| {
            let pods = document["pods"].as_array().unwrap().iter();
            let pods = pods.filter(|pod| pod["resource"] == resource["name"]);
            let requests: u64 = pods.map(|pod| pod["count"].as_u64().unwrap()).sum();
            (resource["name"].as_str().unwrap(), requests.to_string())
        })
        .collect();
    // Requests and limits of extended resources are equal.
    allocated.extend(requests.iter().map(|(name, number)| [*name, number, number]));
    format!(
        "Labels:             {labels}Conditions:\n{}Capacity:\n{}Allocatable:\n{}Allocated \
         resources:\n{}",
        table(&conditions),
        numbers("capacity"),
        numbers("allocatable"),
        table(&allocated),
    )
}

#[test]
fn the_guide_shows_a_node_as_it_is_simulated() {
    let flags = &["--pod", "one=directx.microsoft.com/display:1"];
    let document = Simulation { host: T4, flags, ..Default::default() }.run();
    let begin = "<!-- generated from the output of simulate by cargo xtask update -->\n";
    let example = format!("```text\n{}```\n", described(&document));
    doc_pages::assert_part("installation.md", begin, &example);
}

#[test]
fn readme_and_guide_show_what_a_simulated_pod_prints() {
    let flags = &["--pod", "gpu=directx.microsoft.com/display:1"];
    let document = Simulation { host: T4, flags, ..Default::default() }.run();
    let variables = pod(&document, "gpu")["container"]["envs"].as_object().unwrap().iter();
    let mut printed: Vec<String> =
        variables.map(|(name, value)| format!("{name}={}", value.as_str().unwrap())).collect();
    printed.sort();
    assert_eq!(shown("docs/use-a-gpu.md"), printed);
    // README.md shows some lines, in the order of Windows' `set`.
    let some = shown("README.md");
    assert_eq!(some.len(), 4, "{some:?}");
    let mut printed = printed.iter();
    for line in some {
        assert!(printed.any(|other| *other == line), "no pod prints, in this order: {line}");
    }
}

/// The lines of a pod's log in a page.
fn shown(page: &str) -> Vec<String> {
    let page = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..").join(page);
    let text = std::fs::read_to_string(page).unwrap();
    text.lines().filter(|line| line.starts_with("DIRECTX_")).map(str::to_owned).collect()
}

/// The labels of the host [`T4`].
fn labels_of_t4() -> Value {
    Simulation { host: T4, ..Default::default() }.run()["labels"].take()
}

#[test]
fn a_node_has_the_labels_of_nvidia_on_request() {
    let flags = &["--gfd-labels"];
    let mut document = Simulation { host: T4, flags, ..Default::default() }.run();
    let labels = document["labels"].as_object_mut().unwrap();
    assert_eq!(labels["nvidia.com/gpu.count"], "2");
    labels.retain(|name, _| !name.starts_with("nvidia.com/"));
    assert_eq!(document["labels"], labels_of_t4());
}

#[test]
fn the_labels_of_shared_devices_say_so() {
    let config = "multitenancy: 4";
    let document = Simulation { host: T4, config, ..Default::default() }.run();
    let mut expected = labels_of_t4();
    expected["directx.microsoft.com/replicas"] = "4".into();
    expected["directx.microsoft.com/sharing-strategy"] = "time-slicing".into();
    assert_eq!(document["labels"], expected);
}

#[test]
fn a_node_without_devices_is_not_ready_and_nothing_is_known_of_their_health() {
    // The driver model decides which devices are advertised.
    let mcdm = &["--driver-model", "mcdm"][..];
    for (host, flags) in [("generated/no-adapters.yaml", &[][..]), (T4, mcdm)] {
        let document = Simulation { host, flags, ..Default::default() }.run();
        assert_eq!(document["labels"]["directx.microsoft.com/count"], "0", "{host}");
        assert_eq!(
            conditions(&document),
            [
                "DirectXDevicesHealthy Unknown NoDevices no device is advertised",
                "DirectXDevicesReady False NoHealthyDevices no device is advertised",
            ],
            "{host}"
        );
    }
}

#[test]
fn an_unhealthy_device_is_named_and_pods_can_use_the_others() {
    let host = "made-up-npu-beside-gpu.yaml";
    let document = Simulation { host, ..Default::default() }.run();
    assert_eq!(
        conditions(&document),
        [
            "DirectXDevicesHealthy False UnhealthyDevices 1 of 2 devices are unhealthy: \
             PCI\\VEN_10DE&DEV_2684&SUBSYS_88E21043&REV_A1\\4&2283F625&0&0008 (NVIDIA GeForce RTX \
             4090): Windows reports problem code 43",
            "DirectXDevicesReady True DevicesReady pods can use directx.microsoft.com/compute",
        ]
    );
}

/// Without a license, a device is slowed down, and neither its health nor what pods get shows that.
#[test]
fn a_device_without_a_license_is_a_note_and_no_fault() {
    let document = Simulation { host: "made-up-vgpu.yaml", ..Default::default() }.run();
    let device = r"PCI\VEN_10DE&DEV_2236&SUBSYS_148210DE&REV_A1\6&2C7D114F&0&0";
    let note = format!("{device}: the driver has no license, so the GPU is slowed down");
    assert_eq!(document["notes"], serde_json::json!([note]));
    let [healthy, _] = conditions(&document).try_into().unwrap();
    assert_eq!(healthy, "DirectXDevicesHealthy True AllHealthy 2 of 2 devices are healthy");
}

#[test]
fn a_device_that_is_out_of_service_is_no_fault() {
    let config = "cordonedDevices: ['PCIROOT(0)#PCI(1B00)']";
    let document = Simulation { host: T4, config, ..Default::default() }.run();
    assert_eq!(document["labels"], labels_of_t4(), "it is still advertised");
    let [healthy, ready] = conditions(&document).try_into().unwrap();
    let out_of_service =
        "DirectXDevicesHealthy True CordonedDevices 1 of 2 devices are out of service: ";
    assert!(healthy.starts_with(out_of_service), "{healthy}");
    assert!(ready.starts_with("DirectXDevicesReady True DevicesReady "), "{ready}");

    let config = "cordonedDevices: ['PCIROOT(0)#PCI(1B00)', 'PCIROOT(0)#PCI(1C00)']";
    let document = Simulation { host: T4, config, ..Default::default() }.run();
    let ready = conditions(&document).pop().unwrap();
    let expected = "DirectXDevicesReady False NoHealthyDevices no advertised device is healthy";
    assert_eq!(ready, expected);
}

/// The text of a simulation of a host with an unhealthy device.
fn text(flags: &[&str]) -> String {
    let mut simulate = program();
    simulate.env("COLUMNS", "1000").args(["simulate", "--inventory"]);
    simulate.arg(recorded("made-up-npu-beside-gpu.yaml")).args(flags);
    let (status, out, err) = outcome(&simulate.output().unwrap());
    assert_eq!((status, err.as_str()), (Some(0), ""));
    out
}

#[test]
fn the_text_shows_labels_and_conditions_on_request_between_pods_and_notes() {
    let short = text(&[]);
    assert!(!short.contains("conditions of the node"), "{short}");
    assert!(short.ends_with(", and the node's labels and conditions\n"), "{short}");

    let requested = text(&["--gfd-labels"]);
    let from = requested.find("\nlabels of the node\n").unwrap();
    let to = requested.find("\n\nnote: ").unwrap();
    insta::assert_snapshot!("labels-and-conditions-as-text", &requested[from..to]);
    assert!(requested.find("\npod-2 ").unwrap() < from, "{requested}");

    let verbose = text(&["--verbose"]);
    let own_labels = requested[from..to].lines().filter(|line| !line.contains("nvidia.com/"));
    let expected = own_labels.collect::<Vec<_>>().join("\n");
    assert!(verbose.contains(&format!("{expected}\n\nnote: ")), "{verbose}");
    let pod = verbose.find("\npod pod-2 requests ").unwrap();
    assert!(pod < verbose.find(&expected).unwrap(), "{verbose}");
}

/// The node object of a simulation.
fn manifest(host: &str, flags: &[&str]) -> String {
    let mut simulate = program();
    simulate.args(["simulate", "--output", "node", "--inventory"]).arg(recorded(host)).args(flags);
    let (status, out, err) = outcome(&simulate.output().unwrap());
    assert_eq!((status, err.as_str()), (Some(0), ""), "{host}");
    out
}

#[test]
fn a_node_object_has_comments_for_notes_and_is_always_the_same() {
    let object = manifest("made-up-npu-beside-gpu.yaml", &["--gfd-labels"]);
    assert_eq!(manifest("made-up-npu-beside-gpu.yaml", &["--gfd-labels"]), object);
    insta::assert_snapshot!("node-object", object);
}

/// The text of this simulation has a note that it has fewer pods than the host has replicas.
#[test]
fn a_node_object_has_no_note_about_pods() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("config.yaml");
    std::fs::write(&config, "multitenancy: 20\n").unwrap();
    let object = manifest(T4, &["--config", config.to_str().unwrap()]);
    assert!(object.starts_with("---\napiVersion: v1\n"), "{object}");
    assert!(object.contains("directx.microsoft.com/display: \"40\"\n"), "{object}");
}

#[test]
fn a_node_object_says_the_same_as_the_json_document() {
    for host in inventories() {
        let mut document = Simulation { host: &host, ..Default::default() }.run();
        let text = manifest(&host, &[]);
        let mut object: Value = serde_saphyr::from_str(&text).unwrap();
        let of_kubelet = [
            ("kubernetes.io/arch", "amd64"),
            ("kubernetes.io/hostname", "windows-gpu-0"),
            ("kubernetes.io/os", "windows"),
        ];
        let labels = object["metadata"]["labels"].as_object_mut().unwrap();
        for (name, value) in of_kubelet {
            assert_eq!(labels.remove(name).unwrap(), value, "{host}");
        }
        let build = labels.remove("node.kubernetes.io/windows-build");
        assert_eq!(object["metadata"]["labels"], document["labels"], "{host}");
        let expected = document["host"]["build"].as_str();
        let begin = build.as_ref().map(|build| format!("{}.", build.as_str().unwrap()));
        assert_eq!(begin.is_some(), expected.is_some(), "{host}");
        assert!(expected.unwrap_or_default().starts_with(&begin.unwrap_or_default()), "{host}");

        let status = &mut object["status"];
        for key in ["capacity", "allocatable"] {
            let numbers = status[key].as_object_mut().unwrap();
            for other in ["cpu", "memory", "pods"] {
                numbers.remove(other).unwrap();
            }
            let resources = document["resources"].as_array().unwrap().iter();
            let expected: serde_json::Map<String, Value> = resources
                .map(|r| (r["name"].as_str().unwrap().to_owned(), r[key].to_string().into()))
                .collect();
            assert_eq!(*numbers, expected, "{host}");
        }
        assert_eq!(status["conditions"], document["conditions"].take(), "{host}");
        assert_eq!(status["nodeInfo"]["operatingSystem"], "windows");
        let notes = document["notes"].as_array().unwrap().len();
        assert_eq!(
            text.lines().filter(|line| line.starts_with("# note: ")).count(),
            notes,
            "{host}"
        );
    }
}
