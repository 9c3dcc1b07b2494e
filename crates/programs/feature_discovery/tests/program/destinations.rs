//! What is printed, and what is refused.

use crate::run;

#[test]
fn print_needs_a_plugin() {
    let folder = tempfile::tempdir().unwrap();
    let directory = folder.path().display().to_string();
    let (status, out, err) = run(&["--print", "--device-plugin-dir", &directory]);
    assert_eq!((status, out.as_str()), (Some(1), ""));
    let expected = format!("error: no device plugin serves devices in `{directory}`\nhint: ");
    assert!(err.starts_with(&expected) && err.contains("simulate --gfd-labels"), "{err}");
}

#[test]
fn what_the_plugin_decides_is_no_option_here() {
    for option in ["--config", "--driver-model", "--inventory"] {
        for arguments in [&[option, "x"][..], &["--print", option, "x"]] {
            refuses(
                arguments,
                &[&format!("no option `{option}`"), "reports what the device plugin", "hint: "],
            );
        }
    }
}

#[test]
fn a_key_of_the_plugin_and_a_word_for_an_option_have_a_fix() {
    let serve = "directx-device-plugin serve --config FILE";
    refuses(&["--multitenancy=4"], &["`multitenancy` belongs at the top of the file", serve]);
    for word in ["version", "help"] {
        refuses(&[word], &[&format!("tip: write `directx-feature-discovery --{word}`")]);
    }
}

/// Fails with status 2 and these parts in its error.
fn refuses(arguments: &[&str], parts: &[&str]) {
    let (status, out, err) = run(arguments);
    assert_eq!((status, out.as_str()), (Some(2), ""), "{err}");
    for part in parts {
        assert!(err.contains(part), "{part}: {err}");
    }
}

#[test]
fn what_is_missing_is_named_with_a_hint() {
    refuses(&[], &["the name of the node is unknown", "hint: use `--node-name NAME`"]);
    refuses(
        &["--node-name", "n"],
        &["KUBERNETES_SERVICE_HOST is not set", "hint: name a kubeconfig file"],
    );
    refuses(
        &["--node-name", "n", "--kubeconfig", "/no/such/file"],
        &["cannot use `/no/such/file`", "hint: "],
    );
    refuses(&["cleanup"], &["KUBERNETES_SERVICE_HOST is not set", "hint: name a kubeconfig file"]);
    refuses(&["--print", "cleanup"], &["cannot be used with"]);
    refuses(&["--print", "--kubeconfig", "x"], &["cannot be used with"]);
    refuses(&["--output", "json"], &["--print"]);
}

#[test]
fn a_kubeconfig_file_that_cannot_be_used_is_refused_with_the_file_and_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("config");
    let valid = "\
current-context: a
contexts: [{name: a, context: {cluster: b, user: c}}]
clusters: [{name: b, cluster: {server: 'https://127.0.0.1:1', certificate-authority-data: eA==}}]
users: [{name: c, user: {token: t}}]
";
    for (from, to, part) in [
        ("current-context: a", "current-context: z", "context: z"),
        ("cluster: b, user", "cluster: z, user", "cluster of context: z"),
        ("https://", "https:///", "cluster url"),
        ("token: t", "exec: {}", "command must be specified"),
        ("token: t", "tokenFile: missing", "missing"),
        ("eA==", "'!'", "certificate authority"),
        ("contexts: [", "contexts: {", "YAML"),
    ] {
        std::fs::write(&file, valid.replacen(from, to, 1)).unwrap();
        let path = file.display().to_string();
        refuses(&["--node-name", "n", "--kubeconfig", &path], &[part, &path, "hint: "]);
    }
}
