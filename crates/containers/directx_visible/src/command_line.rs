//! The program's part of the raw command line.
//!
//! On Windows a command line is one text, and programs split it as they like. The part
//! after `--` is therefore passed on as it was written.

const SPACE: u16 = b' ' as u16;
const TAB: u16 = b'\t' as u16;
const QUOTE: u16 = b'"' as u16;
const BACKSLASH: u16 = b'\\' as u16;
const DASHES: [u16; 2] = [b'-' as u16; 2];

/// What follows the first argument `--`; `None` if there is no such argument, or nothing
/// after it.
pub(crate) fn after_dashes(raw: &[u16]) -> Option<&[u16]> {
    // The name of the program has no escapes.
    let mut rest = skip(raw, program_length(raw));
    while !rest.is_empty() {
        let length = argument_length(rest);
        let argument = rest.get(..length)?;
        rest = skip(rest, length);
        if argument == DASHES {
            return (!rest.is_empty()).then_some(rest);
        }
    }
    None
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

    fn command(raw: &str) -> Option<String> {
        let raw: Vec<u16> = raw.encode_utf16().collect();
        after_dashes(&raw).map(|rest| String::from_utf16(rest).unwrap())
    }

    #[test]
    fn the_rest_stays_as_it_was_written() {
        let rest = |raw| command(raw).unwrap();
        assert_eq!(rest(r"directx-visible -- a.exe"), "a.exe");
        assert_eq!(
            rest(r#""C:\a b\directx-visible.exe" --require  --  "a b" "c\"" d^ "#),
            r#""a b" "c\"" d^ "#
        );
        assert_eq!(rest("x -- cmd /c \"echo \"a\" && b\" -- c"), "cmd /c \"echo \"a\" && b\" -- c");
        assert_eq!(rest("x\t--\ta"), "a");
    }

    #[test]
    fn dashes_within_an_argument_are_not_the_separator() {
        assert_eq!(command(r#"x "a -- b" -- c"#).as_deref(), Some("c"));
        assert_eq!(command(r#"x \" -- c"#).as_deref(), Some("c"));
        assert_eq!(command(r#""x -- y" -- z"#).as_deref(), Some("z"));
        for raw in ["", "x", "x --", "x --  ", "x --check", "x a--b"] {
            assert_eq!(command(raw), None, "{raw}");
        }
    }
}
