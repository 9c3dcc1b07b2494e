//! A line of a YAML file that is indented by mistake: it continues the value of the line before, or
//! stands beside keys that begin in another column.

/// A line with content, outside of block scalars.
#[derive(Clone, Copy)]
struct Line<'t> {
    /// From 1.
    number: u32,
    /// The column of its first character, from 0.
    column: usize,
    /// The column of what follows the dashes of list items.
    content: usize,
    text: &'t str,
}

/// What is wrong with the indentation near the line of an error, if something is. `is_syntax`: the
/// file is not valid YAML.
pub(crate) fn hint(text: &str, line: u32, is_syntax: bool) -> Option<String> {
    let lines = lines(text);
    continued_value(&lines, line)
        .or_else(|| if is_syntax { other_column(&lines, line) } else { None })
        .or_else(|| if is_syntax { below_value(&lines, line) } else { None })
        .or_else(|| ends_early(&lines))
}

/// The first line that looks like an item of a list and continues the value of a line before it,
/// with that line: YAML reads `- a` with `- b` below it, indented, as the text `a - b`.
pub(crate) fn swallowed_item(text: &str) -> Option<(u32, u32)> {
    let lines = lines(text);
    let values = continued_values(&lines);
    let mut items = values.filter(|(_, more)| more[0].text.starts_with("- "));
    items.next().map(|(first, more)| (first.number, more[0].number))
}

pub(crate) fn belongs_to(first: u32, second: u32) -> String {
    format!("line {second} is indented, so it belongs to the value of line {first}")
}

/// The line with the error continues a plain value that begins above it.
fn continued_value(lines: &[Line<'_>], line: u32) -> Option<String> {
    let has_error = |(first, more): &(&Line<'_>, &[Line<'_>])| {
        more.last().is_some_and(|last| (first.number..=last.number).contains(&line))
    };
    let (first, more) = continued_values(lines).find(has_error)?;
    Some(belongs_to(first.number, more[0].number))
}

/// The lines with a plain value, each with the lines, at least one, that continue it.
fn continued_values<'l, 't>(
    lines: &'l [Line<'t>],
) -> impl Iterator<Item = (&'l Line<'t>, &'l [Line<'t>])> {
    lines.iter().enumerate().filter_map(|(n, first)| {
        let column = value_column(first)?;
        let after = &lines[n + 1..];
        let count = after.iter().take_while(|next| next.column > column).count();
        (count > 0).then(|| (first, &after[..count]))
    })
}

/// The column up to which a following line does not continue the value of this line. `None`: the
/// line has no plain value.
fn value_column(line: &Line<'_>) -> Option<usize> {
    let rest = &line.text[line.content - line.column..];
    let is_plain =
        |value: &str| !value.starts_with(['\'', '"', '[', '{', '|', '>', '#', '&', '*', '!']);
    if !is_plain(rest) || rest.ends_with(':') {
        return None;
    }
    match rest.split_once(": ") {
        Some((_, value)) => is_plain(value.trim_start()).then_some(line.content),
        // The column of the last dash.
        None => line.text[..line.content - line.column].rfind('-').map(|dash| line.column + dash),
    }
}

/// The line of the error begins left of a line beside which it should be.
fn other_column(lines: &[Line<'_>], line: u32) -> Option<String> {
    let at = lines.iter().position(|l| l.number >= line)?;
    let wrong = &lines[at];
    let before = lines[..at].iter().rev();
    let beside_it = before.clone().take_while(|l| l.content > wrong.column).last()?;
    let is_begun = |l: &&Line<'_>| l.column <= wrong.column && l.content <= wrong.column;
    if before.clone().find(is_begun).is_some_and(|l| l.content == wrong.column) {
        return None;
    }
    Some(beside(beside_it, wrong))
}

/// The line of the error is indented below a line whose value is complete, such as `[a, b]`.
fn below_value(lines: &[Line<'_>], line: u32) -> Option<String> {
    let at = lines.iter().position(|l| l.number == line)?;
    let before = lines[..at].last().filter(|before| before.content < lines[at].column)?;
    let has_value = before.text.contains(": ") && before.text.ends_with(['\'', '"', ']', '}']);
    has_value.then(|| beside(&lines[at], before))
}

/// The first line is indented and a later one is not, so the parser takes the file for ended there.
fn ends_early(lines: &[Line<'_>]) -> Option<String> {
    let first = lines.first().filter(|first| !first.text.starts_with(['{', '[']))?;
    let other = lines.iter().find(|line| line.column < first.column)?;
    Some(beside(first, other))
}

fn beside(indented: &Line<'_>, line: &Line<'_>) -> String {
    format!(
        "line {} is indented more than line {}: keys of the same mapping, and items of the same list, \
         begin in the same column",
        indented.number, line.number
    )
}

/// The lines with content, without comments and without those of block scalars.
fn lines(text: &str) -> Vec<Line<'_>> {
    let mut lines: Vec<Line<'_>> = Vec::new();
    let mut block: Option<usize> = None;
    for (number, whole) in (1..).zip(text.lines()) {
        let content = whole.trim_start();
        if content.is_empty() || whole.starts_with("---") {
            continue;
        }
        let column = whole.len() - content.len();
        if block.is_some_and(|owner| column > owner) {
            continue;
        }
        block = None;
        if content.starts_with('#') {
            continue;
        }
        let text = content.trim_end();
        let last = text.rsplit(' ').next().unwrap_or(text);
        if last.starts_with(['|', '>']) && last.len() <= 3 {
            block = Some(column);
        }
        let mut item = text;
        while let Some(rest) = item.strip_prefix("- ") {
            item = rest.trim_start();
        }
        let content = column + text.len() - item.len();
        lines.push(Line { number, column, content, text });
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    const VALUE: &str = "line 2 is indented, so it belongs to the value of line 1";

    #[test]
    fn a_line_that_continues_a_value_is_named_with_the_line_of_the_value() {
        for (text, line) in [
            ("multitenancy: 4\n  renameShared: true", 1),
            ("multitenancy: 4\n renameShared: true\nx: 1", 2),
            ("multitenancy: 4\n  renameShared: true\n  x: 1", 3),
            ("- a.dll\n  - b.dll", 1),
            ("- name: a/b\n   multitenancy: 2", 1),
            ("a: 4 # four\n  b: 5", 1),
            ("a: b >=525\n  c: 5", 1),
        ] {
            assert_eq!(hint(text, line, false).as_deref(), Some(VALUE), "{text}");
        }
        let text = "# comment\n\na: |\n  x\nb:\n- name: a/b\n\n  # comment\n     c: 2\n";
        let expected = "line 9 is indented, so it belongs to the value of line 6";
        assert_eq!(hint(text, 6, false).as_deref(), Some(expected));
    }

    #[test]
    fn other_errors_are_not_about_the_indentation() {
        for (text, line) in [
            ("multitenancy: x\nrenameShared: true", 1),
            ("a:\n  b: x", 2),
            ("- name: a/b\n  multitenancy: x", 2),
            ("- name: a/b\n  match:\n    vendor: x", 3),
            ("- - x\n  - y", 1),
            ("a: |\n  b: 1\n    c: 2\nd: x", 4),
            ("a: 'x\n  b: c'\nd: x", 3),
            ("a: 4\n  b: 5\nc: x", 3),
            ("a: &anchor\n  b: x", 2),
            ("{a: 1,\n  b: x}", 2),
            ("  {a: 1,\nb: x}", 2),
        ] {
            assert_eq!(hint(text, line, false), None, "{text}");
        }
    }

    #[test]
    fn an_item_that_continues_the_item_before_it_is_found() {
        for (text, expected) in [
            ("x:\n- a.dll\n  - b.dll\n", Some((2, 3))),
            ("x: a.dll\n  - b.dll\n", Some((1, 2))),
            ("x:\n- a.dll\n- b.dll\n", None),
            ("x:\n- - a\n  - b\n- y:\n  - c\n", None),
            ("x: |\n  a: b\n    - c\n", None),
            ("x: >-\n  a: b\n    - c\n", None),
            ("x: a\n  b\n", None),
            ("x: 'a\n  - b'\n", None),
        ] {
            assert_eq!(swallowed_item(text), expected, "{text}");
        }
    }

    #[test]
    fn a_line_beside_others_that_begin_more_to_the_right_is_named() {
        let beside =
            |first: u32, second: u32| format!("line {first} is indented more than line {second}: ");
        for (text, line, expected) in [
            ("  multitenancy: 4\nrenameShared: true", 2, beside(1, 2)),
            ("a:\n  - x\n b: y\n", 3, beside(2, 3)),
            ("a:\n    b: 1\n    c: 2\n  d: 3\n", 4, beside(2, 4)),
            ("a:\n- b: 1\n c: 2\n", 3, beside(2, 3)),
            ("a: '4'\n  b: 5\n", 2, beside(2, 1)),
            ("a: [4]\n  b: 5\n", 2, beside(2, 1)),
            ("a:\n- b: 1\n  c: {d: 1}\n    e: 1\n", 4, beside(4, 3)),
        ] {
            let hint = hint(text, line, true).unwrap_or_default();
            assert!(hint.starts_with(&expected), "{text}: {hint}");
        }
        for (text, line) in
            [("a:\n  b: 1\nc: %", 3), ("a:\n- b: 1\nc: %", 3), ("a: {b: 1,\n  c: %", 2)]
        {
            assert_eq!(hint(text, line, true), None, "{text}");
        }
        // The parser misses a key of line 2.
        let early = hint("  schema: x\nadapters: []\n", 1, false).unwrap_or_default();
        assert!(early.starts_with(&beside(1, 2)), "{early}");
    }
}
