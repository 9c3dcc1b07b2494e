//! Systems without the Windows service manager.

use std::ffi::OsString;

use command_line::Failure;

use crate::service::StoredOptions;

pub(super) fn install(_arguments: Vec<OsString>) -> Result<(), Failure> {
    Err(unsupported())
}

pub(super) fn uninstall() -> Result<(), Failure> {
    Err(unsupported())
}

pub(super) fn run(_options: StoredOptions) -> Result<(), Failure> {
    Err(unsupported())
}

fn unsupported() -> Failure {
    let os = std::env::consts::OS;
    Failure::usage(anyhow::anyhow!("this host runs {os}; `service` works only on Windows"))
        .hint("run `directx-device-plugin serve` under the service manager of this host")
}
