//! Input as text, and what an error says about it.

/// Checks that an error names the file and a line of it.
pub(crate) fn sensible(error: &config::ReadError, file: &str, data: &[u8]) {
    assert_eq!(error.file(), file);
    // YAML has more line breaks than `\n`, and UTF-16 has others still. An error at the end of the
    // file is reported on the line after the last.
    let lines = data.iter().filter(|byte| !byte.is_ascii_graphic()).count() + 2;
    let line = error.line().map(|line| line as usize);
    assert!(line.is_none_or(|line| (1..=lines).contains(&line)), "{error}");
}

/// The text at the start of `data`.
pub(crate) fn first_text(data: &[u8]) -> &str {
    data.utf8_chunks().next().map_or("", |chunk| chunk.valid())
}
