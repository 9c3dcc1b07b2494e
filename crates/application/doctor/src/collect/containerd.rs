//! The plugins that containerd's configuration disables.

use std::path::Path;

use super::programs::stdout_of;

/// The plugins that are disabled in the configuration file `config`, or in containerd's
/// default one; `None` where it cannot be read.
pub(super) fn disabled_plugins(containerd: &Path, config: Option<&str>) -> Option<Vec<String>> {
    let mut arguments = vec!["config", "dump"];
    if let Some(config) = config {
        arguments.splice(0..0, ["--config", config]);
    }
    parse(&stdout_of(containerd, &arguments).ok()?)
}

/// The list `disabled_plugins` of the TOML document that `containerd config dump` prints.
fn parse(dump: &str) -> Option<Vec<String>> {
    let (_, value) = dump.split_once("disabled_plugins")?;
    let (list, _) = value.split_once('[')?.1.split_once(']')?;
    let plugins = list.split(',').map(|plugin| plugin.trim().trim_matches(['"', '\'']));
    Some(plugins.filter(|plugin| !plugin.is_empty()).map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_parsed_as_containerd_1_and_2_print_it() {
        let containerd_1 = "disabled_plugins = []\nimports = [\"x\"]\n[plugins]\n";
        assert_eq!(parse(containerd_1).unwrap(), [""; 0]);
        let containerd_2 = "version = 3\nroot = 'C:\\ProgramData'\ndisabled_plugins = ['io.containerd.cri.v1.runtime', 'cri']\n";
        assert_eq!(parse(containerd_2).unwrap(), ["io.containerd.cri.v1.runtime", "cri"]);
        let several_lines = "  disabled_plugins = [\n  \"cri\",\n]\n";
        assert_eq!(parse(several_lines).unwrap(), ["cri"]);
        assert_eq!(parse("imports = []\n"), None);
        assert_eq!(parse("disabled_plugins = "), None);
    }

    #[cfg(unix)]
    #[test]
    fn containerd_is_run_with_the_configuration_of_its_service() {
        let folder = tempfile::tempdir().unwrap();
        let text = r#"[ "$1 $2 $3" = "--config b.toml config" ] && echo "disabled_plugins = ['cri']" || exit 1"#;
        let program = crate::collect::programs::tests::script(folder.path(), "containerd", text);
        assert_eq!(disabled_plugins(&program, Some("b.toml")).unwrap(), ["cri"]);
        assert_eq!(disabled_plugins(&program, None), None);
    }
}
