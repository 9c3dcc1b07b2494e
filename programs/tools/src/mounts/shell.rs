//! Words as text that both PowerShell and cmd take back as they were.
//!
//! Each word stands in double quotes. Between them cmd leaves everything alone but
//! `%`; PowerShell everything but `$`, the backtick and what it takes for a double
//! quote, which includes the typographic ones. The program that is started then
//! splits its command line (Microsoft, "Parsing C command-line arguments"), where a
//! backslash before the closing quote would escape it; and Windows PowerShell drops
//! an empty word and passes an inner quote on unescaped. A word with any of these
//! has no spelling that both shells read alike, and is refused.

/// A word that cannot be written for both shells.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` cannot be written so that both PowerShell and cmd read it as it is")]
pub(super) struct Unquotable(String);

/// The words as one line.
pub(super) fn line<'a>(words: impl IntoIterator<Item = &'a str>) -> Result<String, Unquotable> {
    let quoted: Result<Vec<String>, _> = words.into_iter().map(quoted).collect();
    Ok(quoted?.join(" "))
}

/// The words as one line for a person to read, where no shell is to read it.
pub(super) fn display<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    let quoted: Vec<String> =
        words.into_iter().map(|w| quoted(w).unwrap_or_else(|_| format!("{w:?}"))).collect();
    quoted.join(" ")
}

fn quoted(word: &str) -> Result<String, Unquotable> {
    let special = |c: char| matches!(c, '%' | '$' | '`' | '"' | '“' | '”' | '„') || c.is_control();
    if word.is_empty() || word.ends_with('\\') || word.contains(special) {
        return Err(Unquotable(word.to_owned()));
    }
    Ok(format!("\"{word}\""))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// How cmd reads a line: the variables that `%` names are replaced, `^` is taken
    /// away and `&|<>()` end the command, all of it outside double quotes alone but
    /// for `%`.
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

    /// How PowerShell reads words in double quotes, and the command line that Windows
    /// PowerShell makes of them: words with a space in quotes, nothing escaped.
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
    fn what_paths_hold_is_taken_back_by_both_shells() {
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
    fn what_the_shells_read_differently_is_refused() {
        for bad in ["%PATH%", "100%", "$HOME", "a`b", "a\"b", "“a”", r"C:\", "", "a\nb"] {
            assert_eq!(line([bad]), Err(Unquotable(bad.to_owned())));
        }
        assert_eq!(display(["a b", "%PATH%"]), r#""a b" "%PATH%""#);
    }

    proptest! {
        #[test]
        fn a_line_means_its_words_to_both_shells(
            words in proptest::collection::vec(r#"[ -~“”„‘€ä\\"%$`&]{0,12}"#, 1..4)
        ) {
            if let Ok(line) = line(words.iter().map(String::as_str)) {
                prop_assert_eq!(cmd(&line).map(|l| split(&l)), Some(words.clone()));
                prop_assert_eq!(powershell(&line).map(|l| split(&l)), Some(words));
            }
        }
    }
}
