//! What `directx-visible command` prints for images, as a container of Kubernetes starts it.
//!
//! `wine_bed/containerd` makes the command lines with the functions of the kubelet and of
//! containerd.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use serde_json::{Value, json};

use super::output::{output, stdout, text};
use super::paths::{copy, native_build, root, windows_build, windows_path};
use super::visible::{FILTERED, HIDDEN, LISTS, Launcher, SHOWN};

/// Words that lose something if they are escaped once too often, or not often enough.
const WORDS: [&str; 8] = [
    "a b",
    "",
    "c\\",
    "d e\\\\",
    "\"f\" g\\\"",
    "$HOME $(NAME) $$ $$(NAME) $(",
    "%NAME% ä😀",
    "--",
];

/// The program that starts containers.
static CONTAINERD: LazyLock<PathBuf> = LazyLock::new(|| {
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("containerd.exe");
    let mut go = Command::new("go");
    go.current_dir(root().join("testing/wine_bed/containerd"));
    go.env("GOOS", "windows").env("GOARCH", "amd64").env("CGO_ENABLED", "0");
    stdout(go.args(["build", "-o"]).arg(&program).arg("."));
    program
});

/// A folder with the launcher, the program that starts containers, and programs of images.
struct Bed {
    launcher: Launcher,
    containerd: PathBuf,
    /// `wine_bed` without and with a blank in its path.
    programs: [String; 2],
}

/// A command line and what its program prints.
#[derive(PartialEq, Debug)]
struct Ran {
    line: String,
    printed: String,
}

impl Bed {
    fn new() -> Bed {
        let launcher = Launcher::new();
        // Windows looks for `directx-visible` in the folder of the program that starts it.
        let containerd = copy(&CONTAINERD, &launcher.folder);
        let folder = launcher.folder.join("a b");
        fs::create_dir(&folder).unwrap();
        let program = windows_build("wine_bed.exe");
        fs::copy(&program, launcher.folder.join("powershell.exe")).unwrap();
        let programs = [&launcher.folder, &folder].map(|to| windows_path(&copy(&program, to)));
        Bed { launcher, containerd, programs }
    }

    /// Runs a container of an image without a command, and with what is printed for the image.
    fn run(&self, config: &Value) -> [Ran; 2] {
        let image = self.launcher.folder.join("image.json");
        let fields = self.launcher.folder.join("container.yaml");
        let configuration = json!({"architecture": "amd64", "os": "windows", "config": config});
        fs::write(&image, configuration.to_string()).unwrap();
        let mut command = Command::new(native_build("directx-visible"));
        fs::write(&fields, stdout(command.arg("command").arg(&image))).unwrap();
        let files = [image, fields].map(|file| windows_path(&file));
        [1, 2].map(|count| {
            let mut command = self.launcher.host.command(&self.containerd);
            command.args(&files[..count]).env("DIRECTX_VISIBLE_DEVICES", SHOWN);
            let result = output(&mut command);
            let out = text(&result.stdout);
            let error = text(&result.stderr);
            assert!(result.status.success() && error.is_empty(), "{config}: {out}{error}");
            let (line, printed) = out.split_once('\n').unwrap();
            Ran { line: line.to_owned(), printed: printed.to_owned() }
        })
    }
}

#[test]
#[ignore = "needs Wine and Go: cargo xtask test wine"]
fn the_program_of_an_image_gets_the_command_line_of_the_image() {
    let bed = Bed::new();
    let [program, blank] = &bed.programs;
    let name = "command-line";
    let line = format!("cmd /S /C {program} {name} a \"b  c\" $(NAME) $$");
    let script = format!("{name} -Command $Error = 'Stop'; & \"a b\" $(NAME) $$; $env:PATH");
    let entrypoint = [&[&**blank, name], &WORDS[..]].concat();
    let cases = [
        json!({"Entrypoint": entrypoint, "Cmd": WORDS}),
        json!({"Entrypoint": entrypoint}),
        json!({"Cmd": entrypoint, "ArgsEscaped": false}),
        json!({"Entrypoint": ["powershell", name, script]}),
        // BuildKit sets `ArgsEscaped` for every CMD. Windows finds a path with blanks that is not
        // quoted.
        json!({"Entrypoint": entrypoint, "Cmd": WORDS, "ArgsEscaped": true}),
        json!({"Cmd": entrypoint, "ArgsEscaped": true}),
        json!({"Cmd": ["cmd", "/S", "/C", &line[10..]], "ArgsEscaped": true}),
        // Docker's classic builder.
        json!({"Cmd": [line], "ArgsEscaped": true}),
        json!({"Entrypoint": [line], "Cmd": WORDS, "ArgsEscaped": true}),
        json!({"Cmd": [format!("powershell {script}")], "ArgsEscaped": true}),
    ];
    for config in cases {
        let [image, visible] = bed.run(&config);
        if config["ArgsEscaped"] == true {
            assert!(visible.line.starts_with("directx-visible --command-line "), "{visible:?}");
        } else {
            assert_eq!(visible.line, format!("directx-visible -- {}", image.line));
        }
        assert!(image.printed.contains(name), "{config}: {image:?}");
        assert_eq!(visible.printed, image.printed, "{config}");
    }
}

#[test]
#[ignore = "needs Wine and Go: cargo xtask test wine"]
fn the_program_of_an_image_sees_only_the_allocated_adapter() {
    let bed = Bed::new();
    let [program, blank] = &bed.programs;
    let line = format!("{program} {}", LISTS.join(" "));
    for config in [
        json!({"Entrypoint": [blank], "Cmd": LISTS}),
        json!({"Entrypoint": [blank], "Cmd": LISTS, "ArgsEscaped": true}),
        json!({"Cmd": ["cmd", "/S", "/C", line], "ArgsEscaped": true}),
        json!({"Cmd": [format!("cmd /S /C {line}")], "ArgsEscaped": true}),
    ] {
        let [image, visible] = bed.run(&config);
        assert!(image.printed.contains(&format!("{HIDDEN},{SHOWN}")), "{config}: {image:?}");
        assert_eq!(visible.printed, FILTERED, "{config}");
    }
}
