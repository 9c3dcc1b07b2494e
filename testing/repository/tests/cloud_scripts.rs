//! What the scripts of the cloud guides ask the clouds for. The clouds' programs are doubles that
//! print their arguments.

#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "part of the tests")]

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output};

/// Runs a script of the folder `cloud` with variables, and with doubles in place of the programs
/// that it calls.
fn run(script: &str, arguments: &[&str], variables: &[(&str, &str)]) -> Output {
    let doubles = tempfile::tempdir().unwrap();
    for name in ["aws", "az", "eksctl"] {
        let double = doubles.path().join(name);
        fs::write(&double, "#!/bin/sh\nprintf '%s\\n' \"$@\"\n").unwrap();
        fs::set_permissions(&double, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../cloud").join(script);
    let path = format!("{}:/usr/bin:/bin", doubles.path().display());
    let mut command = Command::new(script);
    command.args(arguments).env_clear().env("PATH", path).envs(variables.iter().copied());
    command.output().unwrap()
}

fn stdout(output: &Output) -> String {
    assert!(output.status.success(), "{}", stderr(output));
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// AKS rejects pools of Windows Server 2025 without it.
#[test]
fn only_pools_of_windows_server_2025_are_in_fips_mode() {
    let pool = |sku: Option<&str>| {
        let cluster = [("RESOURCE_GROUP", "group"), ("CLUSTER", "cluster")];
        let variables = cluster.into_iter().chain(sku.map(|sku| ("OS_SKU", sku)));
        run("aks/create-node-pool.sh", &[], &variables.collect::<Vec<_>>())
    };
    for (sku, named, has_fips) in [
        (None, "Windows2022", false),
        (Some("Windows2022"), "Windows2022", false),
        (Some("Windows2025"), "Windows2025", true),
    ] {
        let arguments = stdout(&pool(sku));
        assert!(arguments.contains(&format!("\n--os-sku\n{named}\n")), "{arguments}");
        assert_eq!(arguments.contains("\n--enable-fips-image\n"), has_fips, "{arguments}");
        assert!(arguments.contains("\n--gpu-driver\nnone\n"), "{arguments}");
    }
    let refused = pool(Some("Windows2019"));
    assert_eq!(refused.status.code(), Some(2));
    assert!(stderr(&refused).contains("hint: use Windows2022 or Windows2025"));
}

/// EKS has no AMI of Windows Server 2025 for older versions.
#[test]
fn windows_server_2025_on_eks_needs_kubernetes_1_35() {
    let config = |windows, kubernetes: Option<&'static str>| {
        let variables = [("AWS_REGION", "region"), ("AMI_ID", "ami"), ("WINDOWS", windows)];
        let kubernetes = kubernetes.map(|version| ("KUBERNETES_VERSION", version));
        let variables: Vec<_> = variables.into_iter().chain(kubernetes).collect();
        run("eks/cluster.sh", &["config"], &variables)
    };
    for (windows, kubernetes) in
        [("2022", None), ("2022", Some("1.34")), ("2025", None), ("2025", Some("1.35"))]
    {
        let text = stdout(&config(windows, kubernetes));
        assert!(
            text.contains(&format!("amiFamily: WindowsServer{windows}FullContainer")),
            "{text}"
        );
        let version = format!("version: \"{}\"", kubernetes.unwrap_or("1.35"));
        assert!(text.contains(&version), "{text}");
    }
    for (windows, kubernetes, error) in [
        ("2025", "1.34", "no AMI of Windows Server 2025 for Kubernetes 1.34"),
        ("2019", "1.34", "unknown version `2019` of Windows Server"),
        ("2022", "1.35.1", "invalid Kubernetes version `1.35.1`"),
    ] {
        let ami = [
            ("AWS_REGION", "region"),
            ("INSTANCE_PROFILE", "profile"),
            ("DRIVER_KEY", "key"),
            ("WINDOWS", windows),
            ("KUBERNETES_VERSION", kubernetes),
        ];
        for refused in [config(windows, Some(kubernetes)), run("eks/build-ami.sh", &[], &ami)] {
            assert_eq!(refused.status.code(), Some(2));
            assert!(stderr(&refused).contains(error), "{}", stderr(&refused));
            assert!(refused.stdout.is_empty());
        }
    }
}

/// The cluster autoscaler knows of an empty group only what its tags say.
#[test]
fn tags_of_the_windows_nodes_on_eks_repeat_their_labels() {
    let variables = [("AWS_REGION", "region"), ("AMI_ID", "ami")];
    let config = stdout(&run("eks/cluster.sh", &["config"], &variables));
    let (_, group) = config.split_once("- name: windows-gpu\n").unwrap();
    let (labels, tags) = group.split_once("  tags:\n").unwrap();
    let (_, labels) = labels.split_once("  labels:\n").unwrap();
    let prefix = "k8s.io/cluster-autoscaler/node-template";
    let labels = labels.lines().map(str::trim).chain(["kubernetes.io/os: windows"]);
    for label in labels {
        assert!(tags.contains(&format!("    {prefix}/label/{label}\n")), "{label}\n{tags}");
    }
    for resource in ["directx.microsoft.com/display", "vpc.amazonaws.com/PrivateIPv4Address"] {
        assert!(tags.contains(&format!("{prefix}/resources/{resource}: \"1\"")), "{tags}");
    }
}
