//! Programs that are shell scripts.
#![allow(clippy::unwrap_used, reason = "a test that cannot set up should panic")]

use super::*;

/// Creates a shell script. Another process writes it: while this one has it open, a process
/// that another test starts may inherit it, and then it cannot be run (`ETXTBSY`).
pub(in crate::collect) fn script(folder: &Path, name: &str, text: &str) -> PathBuf {
    let path = folder.join(name);
    let mut write = sh(r#"printf '#!/bin/sh\n%s\n' "$1" > "$0" && chmod +x "$0""#);
    assert!(write.arg(&path).arg(text).status().unwrap().success());
    path
}

fn sh(text: &str) -> std::process::Command {
    let mut command = std::process::Command::new("sh");
    command.args(["-c", text]);
    command
}

#[test]
fn the_service_is_searched_first_then_folders_then_path() {
    let folder = tempfile::tempdir().unwrap();
    let folders = [folder.path().join("a"), folder.path().to_owned()];
    let search = |service: Option<PathBuf>| {
        let service =
            service.map(|path| ServiceCommand::parse(&path.display().to_string(), |_| None));
        find("no-such-tool", service.as_ref(), &folders)
    };
    let mut searched = vec!["the service `no-such-tool`".to_owned()];
    searched.extend(folders.iter().map(|folder| folder.display().to_string()));
    searched.push("PATH".to_owned());
    assert_eq!(search(None), Program::NotFound(searched));

    let version = |service| match search(service) {
        Program::Found { version, .. } => version.map(|version| version.to_string()),
        Program::NotFound(places) => panic!("not in {places:?}"),
    };
    script(folder.path(), "no-such-tool", "echo tool v1.2.3 abc");
    assert_eq!(version(None).unwrap(), "1.2.3");
    std::fs::create_dir(folder.path().join("s")).unwrap();
    let of_service = script(&folder.path().join("s"), "no-such-tool", "echo tool v1.2.4");
    assert_eq!(version(Some(of_service)).unwrap(), "1.2.4");
    let wrapper = script(folder.path(), "nssm", "echo nssm 9.9.9");
    assert_eq!(version(Some(wrapper)).unwrap(), "1.2.3");
    script(folder.path(), "no-such-tool", "echo nonsense");
    assert_eq!(version(None).unwrap_err(), "no version in its output `nonsense`");
    let in_path = find("sh", None, &[]);
    assert!(matches!(in_path, Program::Found { .. }), "{in_path:?}");
}

#[test]
fn a_program_that_fails_or_hangs_is_an_error() {
    let stdout = |text: &str| stdout_within(sh(text).into(), Duration::from_mins(1));
    assert_eq!(stdout("echo a").unwrap(), "a\n");
    assert_eq!(stdout("exit 3").unwrap_err(), "exited with exit status: 3");
    assert_eq!(stdout("echo why; exit 3").unwrap_err(), "exited with exit status: 3: why");
    let slow = stdout_within(sh("exec sleep 60").into(), Duration::from_millis(50)).unwrap_err();
    assert_eq!(slow, "no result within 0.05 s");
    assert!(stdout_of(Path::new("/nonexistent/tool"), &[]).is_err());
}
