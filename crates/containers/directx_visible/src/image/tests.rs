//! What is printed for images. The Wine suite starts it, and a test of kustomize applies it.

use serde_json::json;

use super::*;

const BUILDKIT: &str =
    r#"{"os":"windows","config":{"Cmd":["cmd","/S","/C","a \"b\" $HOME"],"ArgsEscaped":true}}"#;

fn printed(configuration: &str, options: &Options) -> Result<String, String> {
    text(configuration.as_bytes(), options).map_err(|failure| failure.to_string())
}

/// What is printed for an image with these fields.
fn of(config: &Value) -> String {
    let image = json!({"architecture": "amd64", "config": config, "os": "windows"});
    printed(&image.to_string(), &Options::default()).unwrap()
}

#[test]
fn words_stay_words() {
    assert_eq!(
        of(&json!({"Entrypoint": ["C:\\a b\\server.exe", "--say", ""], "Cmd": ["\"hi\""]})),
        "command: [\"directx-visible\", \"--\", \"C:\\\\a b\\\\server.exe\", \"--say\", \"\"]\n\
         args: [\"\\\"hi\\\"\"]\n"
    );
    assert_eq!(
        of(&json!({"Entrypoint": ["a"], "Cmd": null, "ArgsEscaped": false})),
        "command: [\"directx-visible\", \"--\", \"a\"]\n"
    );
    assert_eq!(
        of(&json!({"Entrypoint": null, "Cmd": ["a", "b"], "ArgsEscaped": null})),
        "command: [\"directx-visible\", \"--\"]\nargs: [\"a\", \"b\"]\n"
    );
}

#[test]
fn the_first_word_is_a_raw_line() {
    assert_eq!(
        of(&json!({"Entrypoint": ["cmd /S /C a \"b\""], "Cmd": ["c d"], "ArgsEscaped": true})),
        "command: [\"directx-visible\", \"--command-line\", \"cmd /S /C a \\\"b\\\"\", \"--\"]\n\
         args: [\"c d\"]\n"
    );
    // BuildKit sets `ArgsEscaped` for every CMD, also if there is an ENTRYPOINT.
    assert_eq!(
        of(&json!({"Entrypoint": ["C:\\a b.exe", "x y"], "Cmd": ["z"], "ArgsEscaped": true})),
        "command: [\"directx-visible\", \"--command-line\", \"C:\\\\a b.exe\", \"--\", \"x y\"]\n\
         args: [\"z\"]\n"
    );
    assert_eq!(
        printed(BUILDKIT, &Options::default()).unwrap(),
        "command: [\"directx-visible\"]\n\
         args: [\"--command-line\", \"cmd\", \"--\", \"/S\", \"/C\", \"a \\\"b\\\" $$HOME\"]\n"
    );
}

/// The `args` of a pod replace the CMD of the image, and are never a raw line.
#[test]
fn the_args_of_the_container_stay() {
    let of = |config: Value| {
        let image = json!({"os": "windows", "config": config}).to_string();
        printed(&image, &Options { has_args: true, is_required: true, ..Options::default() })
    };
    let start = "command: [\"directx-visible\", \"--require\"";
    for (config, expected) in [
        (json!({"Cmd": ["cmd /S /C a"], "ArgsEscaped": true}), ", \"--\"]\n"),
        (json!({}), ", \"--\"]\n"),
        (json!({"Entrypoint": ["a"], "Cmd": ["b"]}), ", \"--\", \"a\"]\n"),
        (
            json!({"Entrypoint": ["a b"], "Cmd": ["b"], "ArgsEscaped": true}),
            ", \"--command-line\", \"a b\", \"--\"]\n",
        ),
    ] {
        assert_eq!(of(config).unwrap(), format!("{start}{expected}"));
    }
}

#[test]
fn every_dollar_is_doubled_and_the_rest_is_printable() {
    assert_eq!(
        of(&json!({"Cmd": ["$a $$(B) %C% ${d}", "\u{1b}\u{7f}\n\u{202e}\u{feff}\u{e0001}ä😀"]})),
        "command: [\"directx-visible\", \"--\"]\nargs: [\"$$a $$$$(B) %C% $${d}\", \
         \"\\u001b\\u007f\\n\\u202e\\ufeff\\U000e0001ä😀\"]\n"
    );
}

/// crane and skopeo print the configuration in the registry, docker a list, and PowerShell may
/// change the encoding.
#[test]
fn every_program_describes_the_same_image() {
    let inspected = r#"[{"Id":"sha256:1","Os":"windows","Config":{"Env":["A=b"],"Entrypoint":null,
        "Cmd":["cmd","/S","/C","a \"b\" $HOME"],"ArgsEscaped":true}}]"#;
    let single = &inspected[1..inspected.len() - 1];
    let expected = printed(BUILDKIT, &Options::default());
    for text in [inspected, single, &format!("\u{feff}{BUILDKIT}\r\n")] {
        assert_eq!(printed(text, &Options::default()), expected);
    }
    let marked = format!("\u{feff}{BUILDKIT}");
    let utf_16: Vec<u8> = marked.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let text = text(&utf_16, &Options::default());
    assert_eq!(text.map_err(|failure| failure.to_string()), expected);
}

#[test]
fn a_patch_names_the_container() {
    let patch = |container| {
        let patched = Some(Container::parse(container).unwrap());
        printed(BUILDKIT, &Options { patched, ..Options::default() }).unwrap()
    };
    let fields = "command: [\"directx-visible\"]\n";
    let pod = patch("pod/app/1");
    let expected = format!(
        "apiVersion: v1\nkind: Pod\nmetadata:\n  name: \"app\"\nspec:\n  containers:\n  \
         - name: \"1\"\n    {fields}    args: ["
    );
    assert!(pod.starts_with(&expected), "{pod}");
    let job = patch("CRONJOB/app/a");
    let expected = format!(
        "apiVersion: batch/v1\nkind: CronJob\nmetadata:\n  name: \"app\"\nspec:\n  jobTemplate:\n    \
         spec:\n      template:\n        spec:\n          containers:\n          - name: \"a\"\n            \
         {fields}            args: ["
    );
    assert!(job.starts_with(&expected), "{job}");
}

#[test]
fn what_is_no_image_for_windows_is_an_error() {
    let cannot = "error: cannot use the configuration of the image: ";
    for (configuration, message, hint) in [
        ("", format!("{cannot}it is empty"), "write what one of these prints: crane config"),
        ("{\"os\":", format!("{cannot}EOF while parsing"), "write what one of these"),
        ("error", format!("{cannot}expected value at line 1 column 1"), "write what"),
        ("3", format!("{cannot}invalid type: integer `3`"), "write what"),
        // An index of images, and what `docker inspect` prints about a container.
        (r#"{"schemaVersion":2,"manifests":[]}"#, format!("{cannot}it has no `os`"), "write what"),
        (
            r#"[{"Platform":"windows","Config":{}}]"#,
            format!("{cannot}it has no `os`"),
            "write what",
        ),
        // `skopeo inspect` without `--config`.
        (r#"{"Name":"a","Os":"windows"}"#, format!("{cannot}it has no `config`"), "write what"),
        (
            r#"{"os":"linux","config":{"Cmd":["a"]}}"#,
            "error: the image is for `linux`, not for windows".to_owned(),
            "write what one of these prints: crane config --platform windows/amd64 IMAGE",
        ),
        (
            r#"{"os":"windows","config":{"Cmd":null,"Entrypoint":[]}}"#,
            "error: the image has neither ENTRYPOINT nor CMD".to_owned(),
            "write the program into the manifest, as in command: [\"directx-visible\", \"--\", ",
        ),
        (
            r#"{"os":"windows","config":{"Cmd":"a b"}}"#,
            format!("{cannot}invalid type: string \"a b\", expected a sequence"),
            "write what",
        ),
        ("[]", "error: the configuration describes 0 images".to_owned(), "write that of one"),
        ("[{},{}]", "error: the configuration describes 2 images".to_owned(), "write that of one"),
    ] {
        let error = printed(configuration, &Options::default()).unwrap_err();
        let (first, second) = error.split_once("\nhint: ").unwrap();
        assert!(first.starts_with(&message) && second.starts_with(hint), "{error}");
    }
    let failure = text(b"\xff\xfe\x00", &Options::default()).unwrap_err();
    assert_eq!(failure.code, OTHER);
    assert!(failure.to_string().starts_with(&format!("{cannot}it is not UTF-8")));
}
