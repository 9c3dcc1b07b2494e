//! `--demonstration`: made-up devices on a Linux node.

use crate::harness::{outcome, program, recorded};

#[cfg(windows)]
#[test]
fn it_is_refused_on_windows() {
    let mut command = program();
    command.args(["serve", "--demonstration", "--inventory"]).arg(recorded("aws-t4-two.yaml"));
    let (status, _, err) = outcome(&command.output().unwrap());
    assert_eq!(
        (status, err.as_str()),
        (
            Some(2),
            "error: `--demonstration` is for Linux nodes, and this host runs Windows\n\
             hint: remove it to serve the devices of this host\n"
        )
    );
}

#[cfg(unix)]
mod on_linux {
    use kubelet_double::PodRequest;

    use super::*;
    use crate::daemon::{DISPLAY, Daemon, display, until};
    use crate::monitoring::{address, assert_has, until_page};

    const NOTICE: &str =
        "demonstration: the devices are made up, and containers get only variables";

    #[tokio::test]
    async fn containers_get_only_variables_and_the_rest_is_real() {
        let daemon = Daemon::start(&["--demonstration", "--listen", "127.0.0.1:0"]);
        let address = address(&daemon);
        let kubelet = daemon.kubelet();
        until(&kubelet, "registered", |v| display(v) == Some((2, 2))).await;
        let container = kubelet.admit(PodRequest::single("one", DISPLAY, 1)).await.unwrap();
        assert!(container.devices.is_empty() && container.mounts.is_empty(), "{container:?}");
        assert!(container.envs.contains_key("DIRECTX_VISIBLE_DEVICES"), "{:?}", container.envs);
        let line = daemon.wait_for_line("demonstration: a container gets only variables");
        assert!(line.ends_with(&format!("resource={DISPLAY}")), "{line}");

        let mut status = program();
        status.arg("status").arg("--device-plugin-dir").arg(daemon.directory());
        let (code, text, _) = outcome(&status.output().unwrap());
        assert!(code == Some(0) && text.ends_with(&format!("\n{NOTICE}\n")), "{text}");
        let mut doctor = program();
        doctor.args(["doctor", "--inventory"]).arg(recorded("aws-t4-two.yaml"));
        doctor.arg("--device-plugin-dir").arg(daemon.directory());
        let (_, text, _) = outcome(&doctor.output().unwrap());
        let text: Vec<&str> = text.split_whitespace().collect();
        assert!(text.join(" ").contains(&format!("plugin {NOTICE}")), "{text:?}");

        let load = "load: {utilizationPercent: 40, usedMemoryMiB: 6144}\n  dedicatedMemoryMiB";
        daemon.rewrite(|text| text.replacen("dedicatedMemoryMiB", load, 1));
        let text = until_page(address, "/metrics", 200, "directx_device_memory_used_bytes{");
        let used =
            text.lines().filter(|line| line.starts_with("directx_device_memory_used_bytes{"));
        let used: Vec<&str> = used.collect();
        assert!(used.len() == 1 && used[0].ends_with(" 6442450944.0"), "{used:?}");
        until_page(address, "/metrics", 200, "directx_device_engine_busy_seconds_total{");

        daemon.rewrite(|text| text.replacen("problemCode: 0", "problemCode: 43", 1));
        until(&kubelet, "unhealthy", |v| display(v) == Some((2, 1))).await;
        daemon.rewrite(|text| text.replace("problemCode: 43", "problemCode: 0"));
        until(&kubelet, "healthy again", |v| display(v) == Some((2, 2))).await;
        let (_, metrics) = crate::monitoring::get(address, "/metrics");
        assert_has(
            &metrics,
            &format!("directx_device_plugin_allocations_total{{resource=\"{DISPLAY}\"}} 1"),
        );
        let (status, log) = daemon.terminate();
        assert!(status == Some(0) && log.contains(&format!("WARN daemon::run: {NOTICE}")), "{log}");
    }

    #[tokio::test]
    async fn visibility_is_refused_at_the_start_and_later() {
        let folder = tempfile::tempdir().unwrap();
        let config = folder.path().join("config.yaml");
        let path = config.to_str().unwrap();
        let refused = |file: &str| {
            std::fs::write(&config, file).unwrap();
            let mut command = program();
            command.args(["serve", "--demonstration", "--config", path, "--inventory"]);
            let output = command.arg(recorded("aws-t4-two.yaml")).output().unwrap();
            let (status, _, err) = outcome(&output);
            assert_eq!(status, Some(2), "{err}");
            err
        };
        let error = refused("multitenancy: 2\nvisibility: launcher\n");
        assert_eq!(
            error,
            format!(
                "error: {path}:2: visibility: a demonstration has no `visibility`, because its \
                 containers get no files\nhint: remove visibility, or set it to off\n"
            )
        );
        refused("resources: [{name: a/b, match: {vendor: nvidia}, visibility: required}]");
        std::fs::write(&config, "multitenancy: 2\n").unwrap();
        let daemon = Daemon::start(&["--demonstration", "--config", path]);
        let kubelet = daemon.kubelet();
        until(&kubelet, "registered", |v| display(v) == Some((4, 4))).await;
        std::fs::write(&config, "visibility: launcher\n").unwrap();
        daemon.wait_for_line("a demonstration has no `visibility`");
        assert_eq!(display(&kubelet.resources()), Some((4, 4)));
    }

    #[test]
    fn it_needs_an_inventory() {
        let (status, _, err) =
            outcome(&program().args(["serve", "--demonstration"]).output().unwrap());
        assert!(status == Some(2) && err.contains("--inventory <FILE>"), "{err}");
    }
}
