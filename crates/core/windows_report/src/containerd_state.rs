//! Where containerd keeps the state of running containers.

use crate::service_command::ServiceCommand;

/// The folder with a folder for each container of Kubernetes, below containerd's state folder.
pub const TASKS: &str = r"io.containerd.runtime.v2.task\k8s.io";

/// The state folder of the containerd that a service runs, if its command line or its configuration
/// file names one. Without an option, containerd reads the file `default_config`. `read` returns the
/// text of a file.
pub fn state_folder(
    service: &ServiceCommand,
    default_config: &str,
    read: impl Fn(&str) -> Option<String>,
) -> Option<String> {
    if let Some(state) = service.option(&["state"]) {
        return Some(state.to_owned());
    }
    let config = service.option(&["config", "c"]).unwrap_or(default_config);
    state_in(&read(config)?)
}

/// The value of the top-level key `state` of a TOML document.
fn state_in(config: &str) -> Option<String> {
    let config = config.trim_start_matches('\u{FEFF}');
    let lines = config.lines().map(str::trim);
    let mut top_level = lines.take_while(|line| !line.starts_with('['));
    let value = top_level.find_map(|line| {
        let (key, value) = line.split_once('=')?;
        (key.trim().trim_matches(['"', '\'']) == "state").then(|| value.trim())
    })?;
    let text = match value.strip_prefix('\'') {
        Some(literal) => literal.split_once('\'')?.0.to_owned(),
        None => basic_string(value.strip_prefix('"')?)?,
    };
    Some(text).filter(|text| !text.is_empty())
}

/// The text of a basic string up to its quote. Paths have no other escapes than those of a character
/// that stands for itself.
fn basic_string(rest: &str) -> Option<String> {
    let mut text = String::new();
    let mut characters = rest.chars();
    loop {
        match characters.next()? {
            '"' => return Some(text),
            '\\' => text.push(characters.next()?),
            other => text.push(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const DEFAULT: &str = r"C:\Program Files\containerd\config.toml";

    /// The folder for a command line and a file with this path and content.
    fn found(command: &str, path: &str, config: &str) -> Option<String> {
        let service = ServiceCommand::parse(command, |_| None);
        state_folder(&service, DEFAULT, |read| (read == path).then(|| config.to_owned()))
    }

    #[test]
    fn the_command_line_is_preferred_to_the_configuration() {
        let config = r"state = 'D:\file'";
        let both = r"containerd.exe --config D:\c.toml --state D:\option --run-service";
        assert_eq!(found(both, r"D:\c.toml", config).as_deref(), Some(r"D:\option"));
        let one = r"containerd.exe --config D:\c.toml --run-service";
        assert_eq!(found(one, r"D:\c.toml", config).as_deref(), Some(r"D:\file"));
        assert_eq!(found(one, DEFAULT, config), None, "the file of the service does not exist");
        let service = "containerd.exe --run-service";
        assert_eq!(found(service, DEFAULT, config).as_deref(), Some(r"D:\file"));
    }

    #[test]
    fn only_the_key_of_the_document_itself_counts() {
        let state = |config: &str| state_in(config);
        let printed = "version = 3\r\nroot = 'C:\\root'\r\nstate = 'C:\\a b'\r\ntemp = ''\r\n";
        assert_eq!(state(printed).as_deref(), Some(r"C:\a b"));
        let escaped = r#"state = "C:\\var\\state" # comment"#;
        assert_eq!(state(escaped).as_deref(), Some(r"C:\var\state"));
        assert_eq!(state("\u{FEFF}\"state\"='C:\\s'").as_deref(), Some(r"C:\s"));
        let list = "disabled_plugins = [\n  \"cri\",\n]\nstate = 'C:\\s'";
        assert_eq!(state(list).as_deref(), Some(r"C:\s"));
        for none in [
            "[plugins.x]\nstate = 'C:\\s'",
            "# state = 'C:\\s'",
            "state = ''",
            "state = 7",
            "state = \"C:",
            "states = 'C:\\s'",
            "",
        ] {
            assert_eq!(state(none), None, "{none}");
        }
    }

    proptest! {
        #[test]
        fn every_path_reads_back(path in "[^'\0\r\n]{1,30}") {
            let escaped = path.replace('\\', r"\\").replace('"', r#"\""#);
            let quoted = [format!("state = '{path}'"), format!("state = \"{escaped}\"")];
            for config in quoted {
                prop_assert_eq!(state_in(&config), Some(path.clone()));
            }
        }

        #[test]
        fn any_text_is_parsed(text: String) {
            state_in(&text);
        }
    }
}
