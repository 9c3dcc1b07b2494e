//! The command line of a Windows service, as the registry holds it.

/// A program and its arguments.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct CommandLine {
    /// The program.
    pub(super) program: String,
    /// Its arguments.
    pub(super) arguments: Vec<String>,
}

impl CommandLine {
    /// Reads a command line. `variable` knows the values of the `%NAMES%` in it.
    pub(super) fn read(text: &str, variable: &dyn Fn(&str) -> Option<String>) -> CommandLine {
        let text = expand(text.trim(), variable);
        let (program, rest) = split_program(&text);
        CommandLine { program: program.to_owned(), arguments: words(rest) }
    }

    /// The value of an option: `--config X`, `--config=X`.
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

/// Puts the values of variables in the places of their names; a name without a value
/// stays.
fn expand(text: &str, variable: &dyn Fn(&str) -> Option<String>) -> String {
    let mut expanded = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('%') {
        expanded.push_str(before);
        match after.split_once('%') {
            Some((name, after)) if !name.is_empty() && variable(name).is_some() => {
                expanded.push_str(&variable(name).unwrap_or_default());
                rest = after;
            }
            _ => {
                expanded.push('%');
                rest = after;
            }
        }
    }
    expanded + rest
}

/// The program, which is in quotes, or ends with `.exe` (its path may then have spaces),
/// or is one word.
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

/// Words, where quotes hold one with spaces together.
fn words(text: &str) -> Vec<String> {
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
    use super::*;
    use proptest::prelude::*;

    fn variables(name: &str) -> Option<String> {
        (name == "ProgramFiles").then(|| r"C:\Program Files".to_owned())
    }

    fn read(text: &str) -> (String, Vec<String>) {
        let CommandLine { program, arguments } = CommandLine::read(text, &variables);
        (program, arguments)
    }

    #[test]
    fn programs_are_found_with_and_without_quotes() {
        let containerd = r"C:\Program Files\containerd\containerd.exe";
        for text in [
            r#""C:\Program Files\containerd\containerd.exe" --run-service"#,
            r"C:\Program Files\containerd\containerd.exe --run-service",
            r"%ProgramFiles%\containerd\containerd.exe  --run-service ",
        ] {
            assert_eq!(read(text), (containerd.to_owned(), vec!["--run-service".to_owned()]));
        }
        assert_eq!(read(r"C:\k\nssm.exe"), (r"C:\k\nssm.exe".to_owned(), vec![]));
        assert_eq!(read(r"C:\a.exe.d\b.EXE -v").0, r"C:\a.exe.d\b.EXE");
        assert_eq!(
            read("rke2 agent service"),
            ("rke2".to_owned(), vec!["agent".into(), "service".into()])
        );
        assert_eq!(read(""), (String::new(), vec![]));
    }

    #[test]
    fn unknown_variables_and_single_signs_stay() {
        assert_eq!(read("%Nope%/a.exe 100% %%").0, "%Nope%/a.exe");
        assert_eq!(read("%Nope%/a.exe 100% %%").1, ["100%", "%%"]);
    }

    #[test]
    fn options_are_read_in_both_forms() {
        let option = |text: &str| {
            let line = CommandLine::read(text, &variables);
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
        fn a_quoted_line_reads_back(words in proptest::collection::vec("[a-z \\\\.=-]{1,12}", 1..5)) {
            let line: Vec<String> = words.iter().map(|word| format!("\"{word}\"")).collect();
            let (program, arguments) = read(&line.join(" "));
            prop_assert_eq!(&program, &words[0]);
            prop_assert_eq!(arguments, &words[1..]);
        }

        #[test]
        fn any_text_is_read(text: String) {
            read(&text);
        }
    }
}
