//! Wrong arguments.

use std::fs;

use crate::image::{Builder, error};

#[test]
fn errors_name_the_option_and_the_value() {
    let builder = Builder::new();
    for (arguments, expected) in [
        (&["--push", "owner/image"][..], "error: invalid value 'owner/image' for '--push"),
        (&["--push", "host.test/a@sha256:1"], "error: --push names a digest\n"),
        (&["--push", "host.test/a:1", "--tag", "2"], "error: --tag is `2` and --push names"),
        (&["--base", "host.test/a:1"], "error: the following required arguments were not provided"),
        (&["--examples", "--base", "server"], "error: invalid value 'server' for '--base"),
        (&["--examples", "--linux"], "error: the argument '--examples' cannot be used with"),
    ] {
        let found = builder.error(1, arguments);
        assert!(found.starts_with(expected), "{arguments:?}: {found}");
    }
    let found = error(builder.command(1, &[]).env("SOURCE_DATE_EPOCH", "yesterday"));
    let expected =
        "error: invalid SOURCE_DATE_EPOCH `yesterday`\nhint: set it to seconds since 1970\n";
    assert!(found.ends_with(expected), "{found}");
}

#[test]
fn other_files_are_not_replaced() {
    let builder = Builder::new();
    let folder = builder.output().join("directx-device-plugin");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("file"), "").unwrap();
    let found = builder.error(1, &[]);
    assert!(found.contains("exists and is not an image layout\nhint: "), "{found}");
    assert!(folder.join("file").exists());
}

#[test]
fn a_missing_program_is_named() {
    let builder = Builder::new();
    let path = builder.programs().join("gpu-probe.exe");
    fs::remove_file(&path).unwrap();
    let found = builder.error(1, &[]);
    let expected = format!("error: cannot read {}: No such file", path.display());
    assert!(found.starts_with(&expected), "{found}");
    assert!(found.ends_with("\nhint: --programs names a folder with a build\n"), "{found}");
}

#[test]
fn without_skopeo_nothing_is_built() {
    let builder = Builder::new();
    let nowhere = builder.programs();
    let mut push = builder.command(1, &["--push", "127.0.0.1:1/plugin:1.0"]);
    let found = error(push.env("PATH", nowhere));
    let expected = "error: cannot run skopeo, which connects to registries\n\
                    hint: install it; in Debian the package is `skopeo`\n";
    assert_eq!(found, expected);
    assert!(!builder.output().exists());
}
