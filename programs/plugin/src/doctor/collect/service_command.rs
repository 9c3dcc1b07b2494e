//! The command line of a Windows service, in the form in which the registry holds it.

/// A program and its arguments.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct ServiceCommand {
    /// The program.
    pub(super) program: String,
    /// Its arguments.
    pub(super) arguments: Vec<String>,
}

impl ServiceCommand {
    pub(super) fn parse(text: &str) -> ServiceCommand {
        let (program, rest) = split_program(text.trim());
        ServiceCommand { program: program.to_owned(), arguments: split_arguments(rest) }
    }

    /// The value of the first option in `names`, given as `--config X` or `--config=X`.
    pub(super) fn option(&self, names: &[&str]) -> Option<&str> {
        let mut arguments = self.arguments.iter();
        while let Some(argument) = arguments.next() {
            if names.contains(&argument.as_str()) {
                return arguments.next().map(String::as_str);
            }
            if let Some((name, value)) = argument.split_once('=')
                && names.contains(&name)
            {
                return Some(value);
            }
        }
        None
    }
}

/// The program and the rest. The program is quoted, or ends with `.exe` (its path may
/// then contain spaces), or is one word.
fn split_program(text: &str) -> (&str, &str) {
    if let Some((program, rest)) = text.strip_prefix('"').and_then(|text| text.split_once('"')) {
        return (program, rest);
    }
    let lower = text.to_ascii_lowercase();
    let ends = lower.match_indices(".exe").map(|(at, found)| at + found.len());
    let mut ends = ends.filter(|end| matches!(text.as_bytes().get(*end), None | Some(b' ')));
    match ends.next() {
        Some(end) => text.split_at(end),
        None => text.split_once(' ').unwrap_or((text, "")),
    }
}

/// Splits at whitespace outside quotes.
fn split_arguments(text: &str) -> Vec<String> {
    let mut arguments = Vec::new();
    let mut argument: Option<String> = None;
    let mut quoted = false;
    for c in text.chars() {
        match c {
            '"' => {
                quoted = !quoted;
                argument.get_or_insert_default();
            }
            c if c.is_whitespace() && !quoted => arguments.extend(argument.take()),
            c => argument.get_or_insert_default().push(c),
        }
    }
    arguments.extend(argument);
    arguments
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parse(text: &str) -> (String, Vec<String>) {
        let ServiceCommand { program, arguments } = ServiceCommand::parse(text);
        (program, arguments)
    }

    #[test]
    fn the_program_is_found_with_and_without_quotes() {
        let containerd = r"C:\Program Files\containerd\containerd.exe";
        for text in [
            r#""C:\Program Files\containerd\containerd.exe" --run-service"#,
            r"C:\Program Files\containerd\containerd.exe --run-service",
            r"C:\Program Files\containerd\containerd.exe  --run-service ",
        ] {
            assert_eq!(parse(text), (containerd.to_owned(), vec!["--run-service".to_owned()]));
        }
        assert_eq!(parse(r"C:\k\nssm.exe"), (r"C:\k\nssm.exe".to_owned(), vec![]));
        assert_eq!(parse(r"C:\a.exe.d\b.EXE -v").0, r"C:\a.exe.d\b.EXE");
        assert_eq!(
            parse("rke2 agent service"),
            ("rke2".to_owned(), vec!["agent".into(), "service".into()])
        );
        assert_eq!(parse(""), (String::new(), vec![]));
    }

    #[test]
    fn options_are_found_in_both_forms() {
        let option = |text: &str| {
            let line = ServiceCommand::parse(text);
            line.option(&["--config", "-c"]).map(str::to_owned)
        };
        assert_eq!(option(r#"a.exe --x --config "C:\a b\c.toml" -l"#).unwrap(), r"C:\a b\c.toml");
        assert_eq!(option(r"a.exe --config=C:\c.toml").unwrap(), r"C:\c.toml");
        assert_eq!(option(r"a.exe -c C:\c.toml").unwrap(), r"C:\c.toml");
        assert_eq!(option("a.exe --config"), None);
        assert_eq!(option("a.exe --configuration x"), None);
    }

    proptest! {
        #[test]
        fn quoted_arguments_parse_back(words in proptest::collection::vec("[a-z \\\\.=-]{1,12}", 1..5)) {
            let line: Vec<String> = words.iter().map(|word| format!("\"{word}\"")).collect();
            let (program, arguments) = parse(&line.join(" "));
            prop_assert_eq!(&program, &words[0]);
            prop_assert_eq!(arguments, &words[1..]);
        }

        #[test]
        fn any_text_is_parsed(text: String) {
            parse(&text);
        }
    }
}
