//! What containerd's configuration turns off.

use std::path::Path;

use super::programs::answer;

/// The plugins that are turned off in the configuration `config`, or in containerd's
/// default one; `None` where it cannot be read.
pub(super) fn disabled_plugins(containerd: &Path, config: Option<&str>) -> Option<Vec<String>> {
    let mut arguments = vec!["config", "dump"];
    if let Some(config) = config {
        arguments.splice(0..0, ["--config", config]);
    }
    match answer(containerd, &arguments) {
        Ok(dump) => read(&dump),
        Err(why) => {
            tracing::debug!(why, "containerd does not show its configuration");
            None
        }
    }
}

/// The list `disabled_plugins` of a TOML document that containerd wrote.
fn read(dump: &str) -> Option<Vec<String>> {
    let at_key = dump.lines().scan(0, |at, line| {
        let start = *at;
        *at += line.len() + 1;
        Some((start, line))
    });
    let (start, _) = at_key.into_iter().find(|(_, line)| {
        line.split_once('=').is_some_and(|(key, _)| key.trim() == "disabled_plugins")
    })?;
    let list = dump.get(start..)?.split_once('[')?.1.split_once(']')?.0;
    let plugins = list.split(',').map(|plugin| plugin.trim().trim_matches(['"', '\'']));
    Some(plugins.filter(|plugin| !plugin.is_empty()).map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_read_as_both_generations_write_it() {
        let version_1 = "disabled_plugins = []\nimports = [\"x\"]\n[plugins]\n";
        assert_eq!(read(version_1).unwrap(), [""; 0]);
        let version_2 = "version = 3\nroot = 'C:\\ProgramData'\ndisabled_plugins = ['io.containerd.cri.v1.runtime', 'cri']\n";
        assert_eq!(read(version_2).unwrap(), ["io.containerd.cri.v1.runtime", "cri"]);
        let by_hand = "  disabled_plugins = [\n  \"cri\",\n]\n";
        assert_eq!(read(by_hand).unwrap(), ["cri"]);
        assert_eq!(read("imports = []\n"), None);
        assert_eq!(read("disabled_plugins = "), None);
    }

    #[cfg(unix)]
    #[test]
    fn containerd_is_asked_with_the_services_configuration() {
        let folder = tempfile::tempdir().unwrap();
        let text = r#"[ "$1 $2 $3" = "--config b.toml config" ] && echo "disabled_plugins = ['cri']" || exit 1"#;
        let program =
            crate::doctor::look::programs::tests::script(folder.path(), "containerd", text);
        assert_eq!(disabled_plugins(&program, Some("b.toml")).unwrap(), ["cri"]);
        assert_eq!(disabled_plugins(&program, None), None);
    }
}
