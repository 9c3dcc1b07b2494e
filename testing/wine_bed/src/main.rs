//! Makes a Wine prefix look like the host of an inventory.
//!
//! In comes an inventory file; out come `PnP` devices, driver keys, driver store
//! folders and the host's version in the registry, all made with the calls that
//! Windows offers for it (`SetupAPI`, registry, files), so that a program which reads
//! them cannot tell. What was made is written down in the registry: setting another
//! inventory takes away what it does not have, and `clear` takes away everything.
//!
//! Only the adapters themselves are not made: `dxcore_double` plays them.

#[cfg(windows)]
mod bed;
#[cfg(windows)]
mod device;
#[cfg(windows)]
mod driver;
#[cfg(windows)]
mod host;
#[cfg(windows)]
mod ledger;
#[cfg(windows)]
mod spoil;

#[cfg(windows)]
fn main() -> std::process::ExitCode {
    use std::process::ExitCode;

    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let result = match arguments.as_slice() {
        ["set", inventory] => bed::set(std::path::Path::new(inventory)),
        ["clear"] => bed::clear(),
        ["remove-driver-key", key] => spoil::remove_driver_key(key),
        ["put-dword", key, name] => spoil::put_dword(key, name),
        _ => {
            eprintln!(
                "usage: wine_bed set INVENTORY | clear | remove-driver-key {{CLASS}}\\NNNN | \
                 put-dword {{CLASS}}\\NNNN\\KEY NAME"
            );
            return ExitCode::from(2);
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(not(windows))]
fn main() {
    eprintln!("error: wine_bed is a Windows program; run it with `cargo xtask wine`");
    std::process::exit(2);
}
