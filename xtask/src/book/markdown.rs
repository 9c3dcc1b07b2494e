//! The links and the anchors of a Markdown text.
//!
//! This reads the part of Markdown that the documentation uses: inline links, reference
//! links, links in angle brackets, and headings that start with `#`. Code and HTML
//! comments contain neither links nor anchors.

use std::collections::{BTreeMap, BTreeSet};

use crate::doc_commands::Fence;

/// A link or an image.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Link {
    /// The line where it starts; the first line is 1.
    pub(super) line: usize,
    /// What it leads to, or the label of a reference that has no definition.
    pub(super) target: Result<String, String>,
}

/// The target of each label, in lower case, and the line of its definition.
type Definitions = BTreeMap<String, (usize, String)>;

/// The links of `text` and the definitions of its references, in their order.
pub(super) fn links(text: &str) -> Vec<Link> {
    let text = without_code(text);
    let (definitions, text) = take_definitions(&text);
    let mut links = Vec::new();
    // How many brackets are open.
    let mut depth = 0_usize;
    for (at, character) in text.char_indices() {
        let rest = &text[at + character.len_utf8()..];
        let target = match character {
            '<' => {
                enclosed(rest, '>').filter(|text| text.contains("://")).map(|t| Ok(t.to_owned()))
            }
            ']' if depth > 0 => target(rest, &definitions),
            _ => None,
        };
        match character {
            '[' => depth += 1,
            ']' => depth = depth.saturating_sub(1),
            // A link ends in its paragraph.
            '\n' if rest.starts_with('\n') => depth = 0,
            _ => {}
        }
        if let Some(target) = target {
            links.push(Link { line: text[..at].matches('\n').count() + 1, target });
        }
    }
    links.extend(definitions.into_values().map(|(line, target)| Link { line, target: Ok(target) }));
    links.sort_by_key(|link| link.line);
    links
}

/// The target of the link whose text ends before `rest`, if it is one.
fn target(rest: &str, definitions: &Definitions) -> Option<Result<String, String>> {
    if let Some(inside) = rest.strip_prefix('(') {
        return Some(Ok(destination(inside)));
    }
    let label = rest.strip_prefix('[').and_then(|rest| enclosed(rest, ']'))?;
    let definition = definitions.get(&label.to_lowercase());
    // Without a label the text is the label. Its definition is checked where it is.
    let named = !label.is_empty();
    named.then(|| definition.map(|(_, target)| target.clone()).ok_or_else(|| label.to_owned()))
}

/// The anchors of `text`: one for each heading, as GitHub and mdBook name them.
pub(super) fn anchors(text: &str) -> BTreeSet<String> {
    let mut anchors = BTreeSet::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if let Some(fence) = Fence::open(line) {
            let _ = lines.by_ref().find(|line| fence.is_closed_by(line));
            continue;
        }
        let title = line.trim_start_matches('#');
        let level = line.len() - title.len();
        if !(1..=6).contains(&level) || !title.starts_with(' ') {
            continue;
        }
        let name = anchor(title.trim());
        let mut unique = name.clone();
        let mut repetition = 0;
        while !anchors.insert(unique) {
            repetition += 1;
            unique = format!("{name}-{repetition}");
        }
    }
    anchors
}

/// The anchor of the heading `title`: lower case, words joined by hyphens, everything
/// else left out.
fn anchor(title: &str) -> String {
    let mut text = String::new();
    let mut rest = title;
    // Of a link only the text counts.
    while let Some((before, after)) = rest.split_once("](") {
        text.push_str(before);
        rest = after.split_once(')').map_or("", |(_, after)| after);
    }
    text.push_str(rest);
    let kept = text.chars().filter(|c| c.is_alphanumeric() || [' ', '-', '_'].contains(c));
    kept.flat_map(char::to_lowercase).map(|c| if c == ' ' { '-' } else { c }).collect()
}

/// `text` with spaces in place of code, comments and escaped characters. The lines stay.
fn without_code(text: &str) -> String {
    let mut kept = String::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if let Some(fence) = Fence::open(line) {
            kept.push('\n');
            for line in lines.by_ref() {
                kept.push('\n');
                if fence.is_closed_by(line) {
                    break;
                }
            }
        } else {
            kept.push_str(line);
            kept.push('\n');
        }
    }
    let mut result = String::new();
    let mut rest = kept.as_str();
    while let Some(start) = rest.find(['`', '\\', '<']) {
        let (before, found) = rest.split_at(start);
        result.push_str(before);
        let length = hidden(found);
        // Backticks that start no code span are text, all of them.
        let ticks = found.len() - found.trim_start_matches('`').len();
        let shown = if length == 0 { ticks.max(1) } else { 0 };
        result.push_str(&found[..shown]);
        result.extend(found[..length].chars().map(|c| if c == '\n' { '\n' } else { ' ' }));
        rest = &found[length + shown..];
    }
    result + rest
}

/// How many bytes at the start of `text` are code, a comment or an escaped character.
fn hidden(text: &str) -> usize {
    if let Some(escaped) = text.strip_prefix('\\') {
        return escaped.chars().next().filter(char::is_ascii_punctuation).map_or(0, |_| 2);
    }
    if text.starts_with("<!--") {
        return text.find("-->").map_or(text.len(), |end| end + 3);
    }
    let after = text.trim_start_matches('`');
    let ticks = text.len() - after.len();
    // A code span ends within its paragraph, with as many backticks as it starts with.
    let paragraph = &after[..after.find("\n\n").unwrap_or(after.len())];
    let mut at = 0;
    while let Some(found) = paragraph[at..].find('`').filter(|_| ticks > 0) {
        let run = &paragraph[at + found..];
        let length = run.len() - run.trim_start_matches('`').len();
        at += found + length;
        if length == ticks {
            return ticks + at;
        }
    }
    0
}

/// The definitions `[label]: target`, and the text without them.
fn take_definitions(text: &str) -> (Definitions, String) {
    let mut definitions = BTreeMap::new();
    let mut rest = String::new();
    for (index, line) in text.lines().enumerate() {
        let definition = line
            .trim_start()
            .strip_prefix('[')
            .and_then(|line| line.split_once("]:"))
            .filter(|(label, _)| !label.contains(']'));
        match definition {
            Some((label, target)) => {
                let target = destination(target.trim_start());
                definitions.entry(label.to_lowercase()).or_insert((index + 1, target));
            }
            None => rest.push_str(line),
        }
        rest.push('\n');
    }
    (definitions, rest)
}

/// The destination at the start of `text`, without angle brackets and without the title.
fn destination(text: &str) -> String {
    if let Some(inner) = text.strip_prefix('<').and_then(|rest| enclosed(rest, '>')) {
        return inner.to_owned();
    }
    let mut depth = 0_u32;
    let end = text.find(|c: char| {
        match c {
            '(' => depth += 1,
            ')' if depth == 0 => return true,
            ')' => depth -= 1,
            _ => {}
        }
        c.is_whitespace()
    });
    text[..end.unwrap_or(text.len())].to_owned()
}

/// What is before the next `end`, in the same line.
fn enclosed(text: &str, end: char) -> Option<&str> {
    let line = text.lines().next().unwrap_or_default();
    line.split_once(end).map(|(inner, _)| inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn targets(text: &str) -> Vec<(usize, String)> {
        let target = |link: Link| (link.line, link.target.unwrap_or_else(|l| format!("no {l}")));
        links(text).into_iter().map(target).collect()
    }

    #[test]
    fn every_form_of_link_is_found() {
        let text = "See [one](a.md), [two\nlines](<b c.md> \"title\") and ![image](c.png).\n\n\
                    [three][Label] and <https://example.com/d>\n\n[label]: e.md#f 'title'\n\
                    | [four](g_(h).md) | [`five`](i.md) |\n";
        let expected = [
            (1, "a.md"),
            (2, "b c.md"),
            (2, "c.png"),
            (4, "e.md#f"),
            (4, "https://example.com/d"),
            (6, "e.md#f"),
            (7, "g_(h).md"),
            (7, "i.md"),
        ];
        assert_eq!(targets(text), expected.map(|(line, target)| (line, target.to_owned())));
    }

    #[test]
    fn code_comments_and_escapes_contain_no_links() {
        let text = "`[a](b)` ``[a](`b)`` \\[a](b) `[a\n](b)` `x\\` <!-- [a](b)\n[a](b) -->\n\
                    ```text\n[a](b)\n```\n~~~ sh\n[a](b)\n~~~\n[x](y) a `tick\n\n[z](w)`\n\
                    [a\n\nb](c) d](e) ```[v](u)``\n";
        assert_eq!(
            targets(text),
            [(10, "y".to_owned()), (12, "w".to_owned()), (15, "u".to_owned())]
        );
    }

    #[test]
    fn a_reference_without_definition_is_reported() {
        assert_eq!(targets("a\n[b][c]\n"), [(2, "no c".to_owned())]);
        assert!(targets("- [x] done [y] and [z][] and <br> and <T>\n").is_empty());
    }

    #[test]
    fn anchors_are_those_of_github() {
        let text = "# What `doctor` does: C++ & more_or-less\n## Über alles\n## Same\n### Same\n\
                    ## See [the page](a.md)\n```sh\n# comment\n```\n#hashtag\n####### seven\n";
        let expected =
            ["same", "same-1", "see-the-page", "what-doctor-does-c--more_or-less", "über-alles"];
        assert_eq!(anchors(text), expected.map(str::to_owned).into());
    }
}
