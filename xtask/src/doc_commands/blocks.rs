//! The fenced code blocks of a Markdown file.

use anyhow::{Result, bail};

/// A block whose commands are run.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Block {
    pub(super) commands: Vec<Command>,
}

/// One command, with all its continuation lines as printed.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Command {
    /// The line in the document where it starts; the first line is 1.
    pub(super) line: usize,
    pub(super) text: String,
}

/// The blocks with the info string `sh` in `text`, which is the content of `document`. A
/// block without info string that starts with one of `programs` is an error.
pub(super) fn shell_blocks(document: &str, text: &str, programs: &[String]) -> Result<Vec<Block>> {
    let mut blocks = Vec::new();
    let mut lines = text.lines().enumerate();
    while let Some((index, line)) = lines.next() {
        let Some(fence) = Fence::open(line) else { continue };
        let mut content = Vec::new();
        let mut closed = false;
        for (index, line) in lines.by_ref() {
            if fence.is_closed_by(line) {
                closed = true;
                break;
            }
            content.push((index + 1, fence.without_indent(line)));
        }
        if !closed {
            bail!("{document}:{}: the code block is not closed", index + 1);
        }
        match fence.info {
            "sh" => blocks.push(Block { commands: commands(document, &content)? }),
            "" => reject_command(document, &content, programs)?,
            _ => {}
        }
    }
    Ok(blocks)
}

/// The line that opens a code block.
pub(crate) struct Fence<'a> {
    indent: usize,
    marker: char,
    length: usize,
    info: &'a str,
}

impl Fence<'_> {
    /// Reads `line`; `None` if it opens no code block.
    pub(crate) fn open(line: &str) -> Option<Fence<'_>> {
        let rest = line.trim_start_matches(' ');
        let marker = rest.chars().next().filter(|c| ['`', '~'].contains(c))?;
        let info = rest.trim_start_matches(marker);
        let length = rest.len() - info.len();
        let info = info.split_whitespace().next().unwrap_or_default();
        (length >= 3).then_some(Fence { indent: line.len() - rest.len(), marker, length, info })
    }

    /// Whether `line` ends the block.
    pub(crate) fn is_closed_by(&self, line: &str) -> bool {
        let line = line.trim();
        line.len() >= self.length && line.chars().all(|c| c == self.marker)
    }

    /// A block in a list is indented as its fence is.
    fn without_indent<'a>(&self, line: &'a str) -> &'a str {
        let spaces = line.len() - line.trim_start_matches(' ').len();
        &line[spaces.min(self.indent)..]
    }
}

/// Joins continuation lines, and leaves out comments and empty lines.
fn commands(document: &str, content: &[(usize, &str)]) -> Result<Vec<Command>> {
    let mut commands: Vec<Command> = Vec::new();
    let mut continues = false;
    for (line, text) in content {
        if text.contains("<<") {
            bail!(
                "{document}:{line}: here-documents are not supported in `sh` blocks\nhint: mark the block `text`"
            );
        }
        if continues {
            let command = commands.last_mut().expect("a continuation follows a command");
            command.text.push('\n');
            command.text.push_str(text);
        } else if text.trim().is_empty() || text.trim_start().starts_with('#') {
            continue;
        } else {
            commands.push(Command { line: *line, text: (*text).to_owned() });
        }
        continues = text.ends_with('\\');
    }
    Ok(commands)
}

/// Fails if a block without info string starts with a command.
fn reject_command(document: &str, content: &[(usize, &str)], programs: &[String]) -> Result<()> {
    let first = content.iter().find(|(_, text)| {
        let text = text.trim();
        !text.is_empty() && !text.starts_with('#')
    });
    let Some((line, text)) = first else { return Ok(()) };
    let word = text.split_whitespace().next().unwrap_or_default();
    if programs.iter().any(|program| program == word) {
        bail!(
            "{document}:{line}: the code block starts with `{word}` and has no info string\nhint: mark it `sh` or `text`"
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blocks(text: &str) -> Result<Vec<Vec<(usize, String)>>> {
        let blocks = shell_blocks("a.md", text, &["cargo".to_owned(), "tool".to_owned()])?;
        let pairs = |block: Block| block.commands.into_iter().map(|c| (c.line, c.text)).collect();
        Ok(blocks.into_iter().map(pairs).collect())
    }

    #[test]
    fn only_shell_blocks_are_returned() {
        let text = "# Title\n```sh\n# comment\na\n\nb \\\n  c\n```\n\n```powershell\nd\n```\n\
                    ```\nplain text\n```\n~~~ sh title\ne\n~~~\n";
        let found = blocks(text).unwrap();
        let first = vec![(4, "a".to_owned()), (6, "b \\\n  c".to_owned())];
        assert_eq!(found, [first, vec![(17, "e".to_owned())]]);
    }

    #[test]
    fn a_fence_in_a_block_does_not_end_it() {
        let found = blocks("````sh\n```\n````\n- item\n\n  ```sh\n  a\n  ```\n").unwrap();
        assert_eq!(found, [vec![(2, "```".to_owned())], vec![(7, "a".to_owned())]]);
    }

    #[test]
    fn an_unmarked_block_with_a_command_is_an_error() {
        let error = blocks("text\n\n```\n# first\ntool --flag\n```\n").unwrap_err().to_string();
        assert!(error.starts_with("a.md:5: the code block starts with `tool`"), "{error}");
        assert!(error.ends_with("hint: mark it `sh` or `text`"), "{error}");
        assert!(blocks("```text\ntool --flag\n```\n").unwrap().is_empty());
        assert!(blocks("```\ntoolbox\n```\n").unwrap().is_empty());
    }

    #[test]
    fn what_cannot_be_run_line_by_line_is_an_error() {
        let error = blocks("```sh\ncat <<END\nEND\n```\n").unwrap_err().to_string();
        assert!(error.starts_with("a.md:2: here-documents"), "{error}");
        let error = blocks("```sh\na\n").unwrap_err().to_string();
        assert_eq!(error, "a.md:1: the code block is not closed");
    }
}
