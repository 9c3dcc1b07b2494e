//! The plugin's program, built for Windows and for this machine, and what it prints.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

use anyhow::{Result, bail};

use crate::process::{line, output_within, run};
use crate::visibility_filter;
use crate::wine::SimulatedHost;
use crate::workspace::{self, cargo};

/// Longer than any program here takes on a slow machine.
const DEADLINE: Duration = Duration::from_secs(120);

/// The packages whose programs the suite runs.
const PACKAGES: [&str; 4] = ["--package", "plugin", "--package", "gpu_probe"];

pub(super) struct Programs<'a> {
    /// The host that Windows programs run on.
    pub(super) host: SimulatedHost<'a>,
    /// The libraries that `directx-visible` puts into programs.
    pub(super) filters: Vec<PathBuf>,
}

impl<'a> Programs<'a> {
    pub(super) fn build(host: SimulatedHost<'a>) -> Result<Programs<'a>> {
        run(cargo().args(["build", "--quiet"]).args(PACKAGES))?;
        let target = ["--target", workspace::WINDOWS_TARGET];
        let launcher = ["--package", "directx_visible"];
        run(cargo().args(["build", "--quiet"]).args(PACKAGES).args(launcher).args(target))?;
        let target = ["--target", workspace::WINDOWS_32_TARGET];
        run(cargo().args(["build", "--quiet", "--package", "wine_bed"]).args(target))?;
        Ok(Programs { host, filters: visibility_filter::build()? })
    }

    /// `directx-device-plugin` for Windows, on the host.
    pub(super) fn windows(&self, arguments: &[&str]) -> Command {
        let program = workspace::windows_build("directx-device-plugin.exe");
        let mut command = self.host.command(&program);
        command.args(arguments);
        command
    }
}

/// `directx-device-plugin` for this machine, with `inventory`.
pub(super) fn native(arguments: &[&str], inventory: &Path) -> Command {
    let mut command = Command::new(workspace::native_build("directx-device-plugin"));
    command.args(arguments).arg("--inventory").arg(inventory);
    command
}

/// What `command` writes to standard output; an error unless it exits 0.
pub(super) fn stdout(command: &mut Command) -> Result<String> {
    let result = output(command)?;
    if !result.status.success() {
        let text = String::from_utf8_lossy(&result.stderr);
        bail!("{} failed with {}:\n{text}", line(command), result.status);
    }
    Ok(String::from_utf8_lossy(&result.stdout).replace("\r\n", "\n"))
}

/// Runs `command` to its end, and kills it if it does not exit in time.
///
/// A Windows program has no Unix signals: its own access violation is an exit status. One that
/// ends by a signal was ended by a fault in Wine, which is printed, and runs once more.
pub(super) fn output(command: &mut Command) -> Result<Output> {
    let result = output_within(DEADLINE, command)?;
    if result.status.code().is_none() {
        println!("note    Wine ended {} with {}; run again", line(command), result.status);
        return output_within(DEADLINE, command);
    }
    Ok(result)
}

/// An error that shows where `found` differs from `expected`.
pub(super) fn compare(expected: &str, found: &str) -> Result<()> {
    if expected == found {
        return Ok(());
    }
    let mut lines = expected.lines().zip(found.lines()).enumerate();
    let number = lines
        .find(|(_, (expected, found))| expected != found)
        .map_or(expected.lines().count().min(found.lines().count()), |(number, _)| number);
    let around = |text: &str| -> String {
        let lines: Vec<&str> = text.lines().skip(number.saturating_sub(3)).take(10).collect();
        format!("    {}\n", lines.join("\n    "))
    };
    bail!(
        "first difference in line {}: expected\n{}found\n{}",
        number + 1,
        around(expected),
        around(found)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_difference_is_shown() {
        assert!(compare("a\nb\n", "a\nb\n").is_ok());
        for (expected, found) in [("a\nb\nc\n", "a\nx\nc\n"), ("a\n", "a\nb\n")] {
            let error = compare(expected, found).unwrap_err().to_string();
            assert!(error.starts_with("first difference in line 2: "), "{error}");
        }
    }
}
