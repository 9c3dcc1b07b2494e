//! Reports for people: on a terminal, verdicts have colors, and long lines are broken between
//! words.

use std::{env, io};

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

/// The width of lines where neither a terminal nor the variable `COLUMNS` says it.
const WIDTH: usize = 110;

/// Writes `report` to standard output. A line that is too long continues below its last column.
/// Colors are removed where no terminal shows them, and where `NO_COLOR` is set.
pub fn print_report(report: &str) -> Result<(), Failure> {
    print_colored(&wrapped(report, width()))
}

/// The width of the terminal, or else the value of `COLUMNS`.
fn width() -> usize {
    if let Some((Width(width), _)) = terminal_size_of(io::stdout()) {
        return width.into();
    }
    let columns = env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    columns.filter(|columns| *columns > 0).unwrap_or(WIDTH)
}

/// `report` in lines of at most `width` columns. Text between backquotes, such as a command, stays
/// in one line, so that users can copy it.
fn wrapped(report: &str, width: usize) -> String {
    let mut text = String::with_capacity(report.len());
    for line in report.lines() {
        // Enough remains for the text, in a narrow terminal a third.
        let margin = last_column(line).min(width - (width / 3).min(25));
        let mut column = 0;
        for word in words(line) {
            let end = column + columns(word.trim_end());
            if column > margin && end > width && end > column {
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

/// Where the text in the last column of a line begins: after the last two spaces. A line without
/// columns continues a little to the right.
fn last_column(line: &str) -> usize {
    let line = strip_str(line).to_string();
    line.trim_end().rfind("  ").map_or(2, |gap| columns(&line[..gap]) + 2)
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
    fn long_lines_are_broken_between_words_and_continue_below_their_last_column() {
        let report = format!(
            "{BAD}problem{BAD:#}  gpu   the driver of the device does not start\n\
             \n\
             {GOOD}ok{GOOD:#}       short\n"
        );
        let narrow = wrapped(&report, 30);
        assert_eq!(
            strip_str(&narrow).to_string(),
            "problem  gpu   the driver of\n               the device does\n               not start\n\n\
             ok       short\n"
        );
        assert!(narrow.starts_with(&format!("{BAD}problem{BAD:#}  gpu")), "{narrow:?}");
        assert_eq!(wrapped(&report, 80), report);
        assert_eq!(wrapped("a bb ccc dddd\n", 8), "a bb ccc\n  dddd\n");
        assert_eq!(
            wrapped("aaaaaaa  bb ccc ddd\n", 9),
            "aaaaaaa\n      bb\n      ccc\n      ddd\n"
        );
    }

    #[test]
    fn a_path_and_a_command_between_backquotes_stay_whole() {
        let path = r"  see C:\Windows\System32\DriverStore\FileRepository now";
        assert_eq!(
            wrapped(path, 20),
            "  see\n  C:\\Windows\\System32\\DriverStore\\FileRepository\n  now\n"
        );
        assert_eq!(
            wrapped("   -> run `a b c d e f` now", 15),
            "   -> run\n   `a b c d e f`\n   now\n"
        );
    }
}
