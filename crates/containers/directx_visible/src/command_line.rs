//! The program's part of the raw command line.
//!
//! On Windows a command line is one text, and programs split it as they like. The part
//! after `--` is therefore passed on as it was written.

/// The option with the raw start of a command line.
pub(crate) const COMMAND_LINE: &str = "--command-line";

const SPACE: u16 = b' ' as u16;
const TAB: u16 = b'\t' as u16;
const QUOTE: u16 = b'"' as u16;
const BACKSLASH: u16 = b'\\' as u16;

/// What follows the name of the program and `words` more words.
fn after(raw: &[u16], words: usize) -> &[u16] {
    // The name of the program has no escapes.
    let rest = skip(raw, program_length(raw));
    (0..words).fold(rest, |rest, _| skip(rest, argument_length(rest)))
}

/// The program's command line in `raw`: a `line`, which comes from one word, then what follows
/// `words` words.
pub(crate) fn program(line: Option<Vec<u16>>, raw: &[u16], words: usize) -> Vec<u16> {
    let mut program = line.unwrap_or_default();
    let rest = after(raw, words);
    if !program.is_empty() && !rest.is_empty() {
        program.push(SPACE);
    }
    program.extend(rest);
    program
}

/// `text` after `length` characters and the white space that follows them.
fn skip(text: &[u16], length: usize) -> &[u16] {
    let rest = text.get(length..).unwrap_or_default();
    let spaces = rest.iter().take_while(|c| is_space(**c)).count();
    rest.get(spaces..).unwrap_or_default()
}

fn is_space(character: u16) -> bool {
    character == SPACE || character == TAB
}

fn program_length(raw: &[u16]) -> usize {
    let mut quoted = false;
    let end = raw.iter().position(|character| {
        quoted ^= *character == QUOTE;
        is_space(*character) && !quoted
    });
    end.unwrap_or(raw.len())
}

/// The length of the first argument: up to white space outside of quotes. A quote after an
/// odd number of backslashes is an ordinary character.
fn argument_length(text: &[u16]) -> usize {
    let mut quoted = false;
    let mut backslashes = 0;
    for (n, character) in text.iter().enumerate() {
        match *character {
            BACKSLASH => backslashes += 1,
            QUOTE => {
                quoted ^= backslashes % 2 == 0;
                backslashes = 0;
            }
            other if is_space(other) && !quoted => return n,
            _ => backslashes = 0,
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn units(text: &str) -> Vec<u16> {
        text.encode_utf16().collect()
    }

    fn command(line: Option<&str>, raw: &str, words: usize) -> String {
        String::from_utf16(&program(line.map(units), &units(raw), words)).unwrap()
    }

    #[test]
    fn the_rest_stays_as_it_was_written() {
        let rest = |raw, words| command(None, raw, words);
        assert_eq!(rest(r"directx-visible -- a.exe", 1), "a.exe");
        assert_eq!(
            rest(r#""C:\a b\directx-visible.exe" --require  --  "a b" "c\"" d^ "#, 2),
            r#""a b" "c\"" d^ "#
        );
        assert_eq!(
            rest("x -- cmd /c \"echo \"a\" && b\" -- c", 1),
            "cmd /c \"echo \"a\" && b\" -- c"
        );
        assert_eq!(rest("x\t--\ta", 1), "a");
    }

    #[test]
    fn words_end_where_windows_ends_them() {
        for (raw, words) in [
            (r#"x "a -- b" -- c"#, 2),
            (r#"x \" -- c"#, 2),
            (r#""x -- y" -- c"#, 1),
            (r#"x "a"" b" -- c"#, 2),
            (r#"x "a\\" -- c"#, 2),
            (r#"x "" -- c"#, 2),
        ] {
            assert_eq!(command(None, raw, words), "c", "{raw}");
        }
        for (raw, words) in [("", 0), ("x", 1), ("x --", 1), ("x --  ", 1)] {
            assert_eq!(command(None, raw, words), "", "{raw}");
        }
    }

    #[test]
    fn a_raw_line_comes_first() {
        let raw = r#"x --command-line "a \"b\"" -- "c d" e\""#;
        assert_eq!(command(Some(r#"a "b""#), raw, 3), r#"a "b" "c d" e\""#);
        assert_eq!(command(Some("a  "), "x --command-line \"a  \"", 2), "a  ");
        assert_eq!(command(Some("a"), "x --command-line a --", 3), "a");
    }
}
