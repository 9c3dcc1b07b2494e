//! `serve` with `visibility: launcher`: the folder of the host with `directx-visible`. The rights
//! that Wine can express are tested by the crate `device-plugin`.

use std::fs;
use std::path::PathBuf;

use super::daemon::Daemon;
use super::host::Host;
use super::output::{output, text};
use super::paths::{FILTER, copy, copy_filters, fixture, windows_build, windows_path};

const PLUGIN: &str = "directx-device-plugin.exe";
const LAUNCHER: &str = "directx-visible.exe";

#[test]
#[ignore = "needs Wine: cargo xtask test wine"]
fn files_are_written_to_the_host_and_repaired() {
    let host = Host::of(&fixture("aws-t4-two"));
    let release = host.empty_folder("release");
    copy(&windows_build(PLUGIN), &release);
    copy(&windows_build(LAUNCHER), &release);
    copy_filters(&release);
    let config = release.join("config.yaml");
    fs::write(&config, "visibility: launcher\n").unwrap();
    let plugin = release.join(PLUGIN);
    let config = windows_path(&config);
    let provided = host.drive_c().join("ProgramData/directx-device-plugin");
    let installed = host.drive_c().join("Program Files/directx-visible");
    for folder in [&provided, &installed] {
        let _ = fs::remove_dir_all(folder);
    }

    let serve = || {
        let mut command = host.lasting_command(&plugin);
        // Windows always sets `ProgramFiles`; this Wine prefix does not.
        command.env("ProgramFiles", r"C:\Program Files");
        Daemon::start(command.args(["serve", "--config", config.as_str()]))
    };
    // The only folder of the files of `directx-visible`.
    let provided_folder = || -> PathBuf {
        let folders = fs::read_dir(provided.join("visible")).unwrap();
        let folders: Vec<PathBuf> = folders.map(|entry| entry.unwrap().path()).collect();
        assert_eq!(folders.len(), 1, "{folders:?}");
        folders[0].clone()
    };
    for _ in 0..2 {
        let mut daemon = serve();
        // The daemon writes the files before it logs this line.
        daemon.expect_line(&["starting"]);
        for name in [LAUNCHER, FILTER] {
            let equal = fs::read(provided_folder().join(name)).unwrap()
                == fs::read(release.join(name)).unwrap();
            assert!(equal, "{name} differs");
        }
        daemon.expect_running();
        drop(daemon);
        // The next start replaces a damaged copy.
        fs::write(provided_folder().join(FILTER), "damaged").unwrap();
    }

    let doctor = || {
        let mut doctor = host.command(&plugin);
        doctor.env("COLUMNS", "1000").env("ProgramFiles", r"C:\Program Files");
        text(&output(doctor.args(["doctor", "--config", config.as_str()])).stdout)
    };
    let healthy = doctor();
    assert!(!healthy.contains("visibility is launcher, but"), "{healthy}");
    fs::remove_file(release.join(FILTER)).unwrap();
    let mut daemon = serve();
    daemon.expect_line(&["cannot provide directx-visible", FILTER, "hint"]);
    daemon.expect_line(&["starting"]);
    daemon.expect_running();
    let problem = doctor();
    let missing = format!(r"nor %ProgramFiles%\directx-visible has {FILTER}");
    assert!(problem.contains(&missing), "{problem}");
    // The chart copies the files there, while the plugin runs.
    fs::create_dir_all(&installed).unwrap();
    copy(&windows_build(LAUNCHER), &installed);
    copy_filters(&installed);
    daemon.expect_line(&["directx-visible is provided again"]);
    let healthy = doctor();
    assert!(!healthy.contains("visibility is launcher, but"), "{healthy}");
    fs::remove_dir_all(&installed).unwrap();
}
