//! Output that is redirected contains no escape sequences.

use anyhow::{Result, ensure};

use super::programs::{Programs, output};
use super::test_case::TestCase;

/// The tests, by name.
pub(super) fn tests() -> Vec<TestCase> {
    vec![TestCase::new("colors: none where output is redirected", none_where_redirected)]
}

fn none_where_redirected(programs: &Programs) -> Result<()> {
    for arguments in [
        &["--help"][..],
        &["serve", "--nonsense"],
        &["doctor"],
        &["simulate", "--log-level", "trace"],
    ] {
        let mut command = programs.windows(arguments);
        // With this variable, programs of other systems would assume a terminal with colors.
        let result = output(command.env("TERM", "xterm-256color"))?;
        let text = [result.stdout, result.stderr].concat();
        ensure!(!text.is_empty(), "{arguments:?} printed nothing");
        ensure!(
            !text.contains(&0x1b),
            "{arguments:?} printed escape sequences:\n{}",
            String::from_utf8_lossy(&text)
        );
    }
    Ok(())
}
