//! The command line of a Windows service, in the form in which the registry holds it.

#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct ServiceCommand {
    pub(super) program: String,
    pub(super) arguments: Vec<String>,
}

impl ServiceCommand {
    pub(super) fn parse(text: &str) -> ServiceCommand {
        let mut words = split(text);
        // The path of a program may contain spaces without being quoted.
        let last = words.iter().position(|word| word.to_ascii_lowercase().ends_with(".exe"));
        let arguments = words.split_off(words.len().min(last.unwrap_or(0) + 1));
        ServiceCommand { program: words.join(" "), arguments }
    }

    /// The value of `--config X`, `-c X` or `--config=X`.
    pub(super) fn config(&self) -> Option<&str> {
        let joined = self.arguments.iter().find_map(|argument| argument.strip_prefix("--config="));
        let mut pairs = self.arguments.windows(2);
        let separate = pairs.find(|pair| ["--config", "-c"].contains(&pair[0].as_str()));
        joined.or(separate.map(|pair| pair[1].as_str()))
    }
}

/// Splits at whitespace outside quotes.
fn split(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quoted = false;
    for c in text.chars() {
        match c {
            '"' => {
                quoted = !quoted;
                word.get_or_insert_default();
            }
            c if c.is_whitespace() && !quoted => words.extend(word.take()),
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

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
            line.config().map(str::to_owned)
        };
        assert_eq!(option(r#"a.exe --x --config "C:\a b\c.toml" -l"#).unwrap(), r"C:\a b\c.toml");
        assert_eq!(option(r"a.exe --config=C:\c.toml").unwrap(), r"C:\c.toml");
        assert_eq!(option(r"a.exe -c C:\c.toml").unwrap(), r"C:\c.toml");
        assert_eq!(option("a.exe --config"), None);
        assert_eq!(option("a.exe --configuration x"), None);
    }

    proptest! {
        #[test]
        fn quoted_arguments_parse_back(words in proptest::collection::vec("[a-w \\\\.=-]{1,12}", 1..5)) {
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
