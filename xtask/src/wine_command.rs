//! `cargo xtask wine`: runs a Windows program under Wine.

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result};

use crate::wine::{SimulatedHost, Wine};

pub(crate) fn command(arguments: &[OsString]) -> Result<ExitCode> {
    let (prefix, arguments) = match arguments {
        [option, name, rest @ ..] if option == "--prefix" => (prefix_name(name)?, rest),
        all => ("prefix", all),
    };
    let (inventory, arguments) = match arguments {
        [option, path, rest @ ..] if option == "--inventory" => (Some(Path::new(path)), rest),
        all => (None, all),
    };
    let (program, arguments) =
        arguments.split_first().context("no program\nhint: name a Windows program to run")?;
    let wine = Wine::ready(prefix)?;
    if program == "--stop" {
        wine.stop();
        return Ok(ExitCode::SUCCESS);
    }
    wine.ensure_server()?;
    let mut command = match inventory {
        Some(inventory) => {
            let host = SimulatedHost::new(&wine)?;
            host.set(inventory)?;
            host.command(Path::new(program))
        }
        None => wine.command(Path::new(program)),
    };
    let status = command.args(arguments).status()?;
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    Ok(code.map_or(ExitCode::FAILURE, ExitCode::from))
}

/// `name`, if it is safe as the name of a folder.
fn prefix_name(name: &OsStr) -> Result<&str> {
    let is_plain = |name: &&str| {
        !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
    };
    name.to_str().filter(is_plain).with_context(|| {
        format!("invalid prefix name `{}`\nhint: use letters, digits and hyphens", name.display())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_name_cannot_leave_its_folder() {
        assert_eq!(prefix_name(OsStr::new("my-prefix1")).unwrap(), "my-prefix1");
        for name in ["", "..", "a/b", "a b"] {
            assert!(prefix_name(OsStr::new(name)).is_err(), "{name}");
        }
    }
}
