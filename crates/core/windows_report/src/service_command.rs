//! The command line of a Windows service, in the form in which the registry holds it.

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ServiceCommand {
    pub program: String,
    /// The arguments, without quotes.
    pub arguments: Vec<String>,
}

impl ServiceCommand {
    /// Parses any text. `variable` returns the value of an environment variable, such as
    /// `ProgramFiles`.
    #[must_use]
    pub fn parse(text: &str, variable: impl Fn(&str) -> Option<String>) -> ServiceCommand {
        let mut words = split(&expanded(text, variable));
        // The path of a program may contain spaces without being quoted.
        let last = words.iter().position(|word| word.to_ascii_lowercase().ends_with(".exe"));
        let arguments = words.split_off(words.len().min(last.unwrap_or(0) + 1));
        ServiceCommand { program: words.join(" "), arguments }
    }

    /// The value of an option: `--name X` or `--name=X`. A program in Go also takes `-name`.
    #[must_use]
    pub fn option(&self, names: &[&str]) -> Option<&str> {
        let mut arguments = self.arguments.iter();
        while let Some(argument) = arguments.next() {
            let (name, value) = match argument.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None => (argument.as_str(), None),
            };
            let short = name.strip_prefix('-').map(|name| name.strip_prefix('-').unwrap_or(name));
            if short.is_some_and(|name| names.contains(&name)) {
                return value.or_else(|| arguments.next().map(String::as_str));
            }
        }
        None
    }
}

/// Replaces `%NAME%` by the value of the variable, if there is one.
fn expanded(text: &str, variable: impl Fn(&str) -> Option<String>) -> String {
    let mut expanded = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('%') {
        expanded += before;
        let variable = after.split_once('%').and_then(|(name, end)| Some((variable(name)?, end)));
        let (value, end) = variable.unwrap_or_else(|| ("%".to_owned(), after));
        expanded += &value;
        rest = end;
    }
    expanded + rest
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
        let ServiceCommand { program, arguments } = ServiceCommand::parse(text, |_| None);
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
    fn options_are_found_in_each_form() {
        let option = |text: &str| {
            let line = ServiceCommand::parse(text, |_| None);
            line.option(&["config", "c"]).map(str::to_owned)
        };
        assert_eq!(option(r#"a.exe --x --config "C:\a b\c.toml" -l"#).unwrap(), r"C:\a b\c.toml");
        assert_eq!(option(r#"a.exe "--config=C:\a b\c.toml""#).unwrap(), r"C:\a b\c.toml");
        assert_eq!(option(r"a.exe -c C:\c.toml").unwrap(), r"C:\c.toml");
        assert_eq!(option(r"a.exe -config C:\c.toml").unwrap(), r"C:\c.toml");
        assert_eq!(option("a.exe --config"), None);
        assert_eq!(option("a.exe --configuration x"), None);
        assert_eq!(option("a.exe config x"), None);
    }

    #[test]
    fn variables_are_replaced() {
        let variable =
            |name: &str| (name == "ProgramFiles").then(|| r"C:\Program Files".to_owned());
        let program = |text: &str| ServiceCommand::parse(text, variable).program;
        let containerd = r"C:\Program Files\containerd\containerd.exe";
        assert_eq!(program(r#""%ProgramFiles%\containerd\containerd.exe" -x"#), containerd);
        assert_eq!(program(r"100%\%Other%\a.exe"), r"100%\%Other%\a.exe");
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
