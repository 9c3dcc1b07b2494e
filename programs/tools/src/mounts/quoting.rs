//! Quotes arguments so that PowerShell and cmd both read them unchanged.
//!
//! Each argument is enclosed in double quotes. Inside them cmd interprets only `%`;
//! PowerShell interprets `$`, the backtick, and every double quote, including
//! typographic ones. The started program then splits its command line (Microsoft,
//! "Parsing C command-line arguments"), where a backslash before the closing quote
//! would escape it. Windows PowerShell drops empty arguments and passes inner quotes on
//! unescaped. An argument with any of these cannot be written for both shells, and is
//! rejected.

use anyhow::anyhow;
use node::cli::Failure;

/// The arguments as one line.
pub(super) fn line<'a>(arguments: impl IntoIterator<Item = &'a str>) -> Result<String, Failure> {
    let quoted: Result<Vec<String>, _> = arguments.into_iter().map(quoted).collect();
    Ok(quoted?.join(" "))
}

/// The arguments as one line for display only; shells may read it differently.
pub(super) fn display<'a>(arguments: impl IntoIterator<Item = &'a str>) -> String {
    let quoted: Vec<String> =
        arguments.into_iter().map(|a| quoted(a).unwrap_or_else(|_| format!("{a:?}"))).collect();
    quoted.join(" ")
}

fn quoted(argument: &str) -> Result<String, Failure> {
    let special = |c: char| matches!(c, '%' | '$' | '`' | '"' | '“' | '”' | '„') || c.is_control();
    if argument.is_empty() || argument.ends_with('\\') || argument.contains(special) {
        let error = anyhow!("`{argument}` cannot be quoted for both PowerShell and cmd");
        return Err(
            Failure::runtime(error).hint("use `--output json` or `--run`, which need no quoting")
        );
    }
    Ok(format!("\"{argument}\""))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// How cmd reads a line: it replaces variables between `%`, removes `^`, and ends the
    /// command at `&|<>()`. Inside double quotes it only replaces variables.
    fn cmd(line: &str) -> Option<String> {
        let mut in_quotes = false;
        for c in line.chars() {
            match c {
                '"' => in_quotes = !in_quotes,
                '%' | '\n' | '\r' => return None,
                '^' | '&' | '|' | '<' | '>' | '(' | ')' if !in_quotes => return None,
                _ => {}
            }
        }
        Some(line.to_owned())
    }

    /// How PowerShell reads arguments in double quotes, and the command line that Windows
    /// PowerShell builds from them: arguments with a space are quoted, nothing is escaped.
    fn powershell(line: &str) -> Option<String> {
        let mut words = vec![];
        let mut rest = line.strip_prefix('"')?;
        loop {
            let end = rest.find(['"', '“', '”', '„', '$', '`'])?;
            let word = &rest[..end];
            if word.is_empty() || !rest[end..].starts_with('"') {
                return None;
            }
            let spaced = word.contains(char::is_whitespace);
            words.push(if spaced { format!("\"{word}\"") } else { word.to_owned() });
            rest = &rest[end + 1..];
            match rest.strip_prefix(" \"") {
                Some(next) => rest = next,
                None if rest.is_empty() => return Some(words.join(" ")),
                None => return None,
            }
        }
    }

    /// How a C program splits its command line.
    fn split(line: &str) -> Vec<String> {
        let mut words = vec![];
        let mut word = None::<String>;
        let (mut in_quotes, mut backslashes) = (false, 0);
        for c in line.chars() {
            if c == '\\' {
                backslashes += 1;
                continue;
            }
            let held = if c == '"' { backslashes / 2 } else { backslashes };
            let escaped = c == '"' && backslashes % 2 == 1;
            if held > 0 || escaped {
                word.get_or_insert_default().push_str(&"\\".repeat(held));
            }
            backslashes = 0;
            match c {
                '"' if escaped => word.get_or_insert_default().push('"'),
                '"' => {
                    in_quotes = !in_quotes;
                    word.get_or_insert_default();
                }
                ' ' | '\t' if !in_quotes => words.extend(word.take()),
                other => word.get_or_insert_default().push(other),
            }
        }
        if backslashes > 0 {
            word.get_or_insert_default().push_str(&"\\".repeat(backslashes));
        }
        words.extend(word);
        words
    }

    #[test]
    fn both_shells_read_paths_unchanged() {
        let words = [
            "--device",
            "vpci-location-path://PCIROOT(0)#PCI(1B00)",
            r"src=C:\Program Files & more\it's; 100€\{a}[b]@!^~=+\x.dll,dst=C:\x.dll,options=ro",
        ];
        let line = line(words).unwrap();
        assert_eq!(split(&cmd(&line).unwrap()), words);
        assert_eq!(split(&powershell(&line).unwrap()), words);
    }

    #[test]
    fn arguments_that_the_shells_read_differently_are_rejected() {
        for bad in ["%PATH%", "100%", "$HOME", "a`b", "a\"b", "“a”", r"C:\", "", "a\nb"] {
            let failure = line([bad]).unwrap_err();
            assert!(failure.chain().starts_with(&format!("`{bad}` cannot be quoted")));
        }
        assert_eq!(display(["a b", "%PATH%"]), r#""a b" "%PATH%""#);
    }

    proptest! {
        #[test]
        fn both_shells_read_a_line_as_its_arguments(
            words in proptest::collection::vec(r#"[ -~“”„‘€ä\\"%$`&]{0,12}"#, 1..4)
        ) {
            if let Ok(line) = line(words.iter().map(String::as_str)) {
                prop_assert_eq!(cmd(&line).map(|l| split(&l)), Some(words.clone()));
                prop_assert_eq!(powershell(&line).map(|l| split(&l)), Some(words));
            }
        }
    }
}
