//! Reports for people: on a terminal, verdicts have colors, and long lines are broken between words.

use std::io;

use anstream::adapter::strip_str;
use clap::builder::styling::{AnsiColor, Style};
use terminal_size::{Width, terminal_size_of};

use crate::failure::Failure;
use crate::output::print_colored;

/// Everything is as it should be. `{GOOD}ok{GOOD:#}` is a green `ok`.
pub const GOOD: Style = AnsiColor::Green.on_default();
/// Something may have to be changed.
pub const WARNING: Style = AnsiColor::Yellow.on_default();
/// Something is wrong.
pub const BAD: Style = AnsiColor::Red.on_default().bold();
/// It is not known whether something is wrong.
pub const UNKNOWN: Style = Style::new().dimmed();

/// Writes `report` to standard output. On a terminal, a line that is too long continues on the next
/// lines, which begin with `indent` spaces. Elsewhere no line is broken. Colors are removed where no
/// terminal shows them, and where `NO_COLOR` is set.
pub fn print_report(report: &str, indent: usize) -> Result<(), Failure> {
    match terminal_size_of(io::stdout()) {
        Some((Width(width), _)) => print_colored(&wrapped(report, indent, width.into())),
        None => print_colored(report),
    }
}

/// `report` in lines of at most `width` columns. Text between backquotes, such as a command, stays in
/// one line, so that users can copy it.
fn wrapped(report: &str, indent: usize, width: usize) -> String {
    // Half of a narrow terminal remains for the text.
    let margin = indent.min(width / 2);
    let mut text = String::with_capacity(report.len());
    for line in report.lines() {
        let mut column = 0;
        for word in words(line) {
            if column > margin && column + columns(word.trim_end()) > width {
                text.truncate(text.trim_end_matches(' ').len());
                text.push('\n');
                text.extend(std::iter::repeat_n(' ', margin));
                column = margin;
            }
            text.push_str(word);
            column += columns(word);
        }
        text.push('\n');
    }
    text
}

/// The words of a line, each with the space after it.
fn words(line: &str) -> impl Iterator<Item = &str> {
    let mut is_quoted = false;
    line.split_inclusive(move |c| {
        is_quoted ^= c == '`';
        c == ' ' && !is_quoted
    })
}

/// The width of `text`, in which colors need no space.
fn columns(text: &str) -> usize {
    strip_str(text).map(|part| part.chars().count()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_are_broken_between_words_and_continue_at_the_indent() {
        let report = format!(
            "{BAD}problem{BAD:#}  gpu   the driver of the device does not start\n\
             \n\
             {GOOD}ok{GOOD:#}       short\n"
        );
        let narrow = wrapped(&report, 9, 30);
        assert_eq!(
            strip_str(&narrow).to_string(),
            "problem  gpu   the driver of\n         the device does not\n         start\n\nok       short\n"
        );
        assert!(narrow.starts_with(&format!("{BAD}problem{BAD:#}  gpu")), "{narrow:?}");
        assert_eq!(wrapped(&report, 9, 80), report);
        assert_eq!(wrapped("a bb ccc dddd\n", 9, 8), "a bb ccc\n    dddd\n");
    }

    #[test]
    fn a_path_and_a_command_between_backquotes_stay_whole() {
        let path = r"see C:\Windows\System32\DriverStore\FileRepository now";
        assert_eq!(
            wrapped(path, 2, 20),
            "see\n  C:\\Windows\\System32\\DriverStore\\FileRepository\n  now\n"
        );
        assert_eq!(
            wrapped("-> run `a b c d e f` now", 3, 12),
            "-> run\n   `a b c d e f`\n   now\n"
        );
    }
}
