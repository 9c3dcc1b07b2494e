//! Starts the program, and the comparison, on Windows.

use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use visibility::{AllowedLuids, Payload, PayloadError, Unfiltered, allocated};
use visible_process::{
    LaunchError, Listing, Output, check_32_bit_filter, launch, listings, load_filter,
    raw_command_line, system_folder,
};

use crate::allocation::{Existing, existing, list as listed_luids};
use crate::arguments::{Format, LIST, Level};
use crate::check::{Adapters, Listed, Report};
use crate::command_line::after_dashes;
use crate::failure::{Failure, NO_FILTER, NOT_EXECUTABLE, NOT_FILTERED, NOT_FOUND, OTHER, USAGE};
use crate::filters::{filter_file, path_of_32_bit_filter};

/// `ERROR_FILE_NOT_FOUND`, `ERROR_PATH_NOT_FOUND` and `ERROR_INVALID_NAME` (winerror.h).
const NOT_FOUND_ERRORS: [i32; 3] = [2, 3, 123];

/// Runs the program, and returns its exit code.
pub(crate) fn program(unfiltered: Unfiltered, level: Level) -> Result<u32, Failure> {
    let raw = raw_command_line();
    let command = after_dashes(&raw).ok_or_else(no_command)?;
    let allowed = allocation()?;
    let payload = match (payload(&allowed, unfiltered, level), unfiltered) {
        (Ok(payload), _) => Some(payload),
        (Err(failure), Unfiltered::Refuse) => return Err(failure),
        (Err(failure), Unfiltered::Allow) => {
            eprintln!("directx-visible: the program sees every GPU:\n{failure}");
            None
        }
    };
    let child = launch(command, payload.as_ref(), &Output::Inherited).map_err(launch_failure)?;
    if let Some(why) = child.not_filtered {
        eprintln!("directx-visible: the program sees every GPU: {}", reason(why));
    }
    child.wait().map_err(|error| system_failure(&error))
}

/// Compares what interfaces list in this process and in a filtered one.
pub(crate) fn check(format: Format, level: Level) -> Result<u32, Failure> {
    let allowed = allocation()?;
    let payload = payload(&allowed, Unfiltered::Refuse, level)?;
    let own = own_path()?;
    let command: Vec<u16> = format!("\"{}\" {LIST}", own.display()).encode_utf16().collect();
    let mut child = launch(&command, Some(&payload), &Output::Captured).map_err(launch_failure)?;
    let mut text = String::new();
    if let Some(mut output) = child.output.take() {
        output.read_to_string(&mut text).map_err(|error| system_failure(&error))?;
    }
    let code = child.wait().map_err(|error| system_failure(&error))?;
    let filtered: Vec<Listed> = serde_json::from_str(&text).map_err(|error| {
        let message = format!("the filtered process ended with {code}: {error}");
        Failure::new(OTHER, message, "look for an antivirus or a security policy that stops it")
    })?;
    let report = Report::new(allowed.as_slice(), listed(), &filtered);
    match format {
        Format::Text => print!("{}", report.text()),
        Format::Json => print_json(&report)?,
    }
    Ok(report.exit_code())
}

/// Prints what this process sees.
pub(crate) fn list() -> Result<u32, Failure> {
    print_json(&listed())?;
    Ok(0)
}

fn print_json(value: &impl serde::Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(value);
    println!("{}", text.map_err(|error| system_failure(&io::Error::from(error)))?);
    Ok(())
}

fn listed() -> Vec<Listed> {
    let convert = |Listing { api, luids }| {
        let adapters = luids.map_or_else(Adapters::Unavailable, Adapters::Luids);
        Listed { api: String::from(api), adapters }
    };
    listings().map(convert).collect()
}

/// The container's devices, of which at least one exists.
fn allocation() -> Result<AllowedLuids, Failure> {
    let text = |text: std::ffi::OsString| text.to_string_lossy().into_owned();
    let variables = std::env::vars_os().map(|(name, value)| (text(name), text(value)));
    let allowed = allocated(&mut variables.collect::<Vec<_>>())?;
    // A Windows that does not list its adapters cannot be compared.
    let Some(adapters) = listings().find_map(|listing| listing.luids.ok()) else {
        return Ok(allowed);
    };
    if let Existing::Missing(missing) = existing(&allowed, &adapters)? {
        let missing = listed_luids(&missing);
        eprintln!("directx-visible: devices of the container do not exist any more: {missing}");
    }
    Ok(allowed)
}

/// The payload for a filter that can be loaded.
fn payload(
    allowed: &AllowedLuids,
    unfiltered: Unfiltered,
    level: Level,
) -> Result<Payload, Failure> {
    let own = own_path()?;
    let path = own.with_file_name(filter_file(level));
    load_filter(&path).map_err(|error| cannot_load(&path, &error))?;
    let text = path.to_string_lossy();
    let payload =
        Payload::new(*allowed, unfiltered, &text).map_err(|error| path_failure(&path, error))?;
    Ok(with_32_bit_filter(&payload, &own).unwrap_or_else(|failure| {
        eprintln!("directx-visible: 32-bit programs see every GPU:\n{failure}");
        payload
    }))
}

/// `payload` with the filter for 32-bit programs, if there is one.
fn with_32_bit_filter(payload: &Payload, own: &Path) -> Result<Payload, Failure> {
    let system = system_folder().unwrap_or_default();
    let path = path_of_32_bit_filter(&own.to_string_lossy(), &system.to_string_lossy());
    let Some(path) = path.map(PathBuf::from).filter(|path| path.exists()) else {
        return Ok(*payload);
    };
    check_32_bit_filter(&path).map_err(|error| cannot_load(&path, &error))?;
    payload.with_32_bit_filter(&path.to_string_lossy()).map_err(|error| path_failure(&path, error))
}

fn cannot_load(path: &Path, error: &io::Error) -> Failure {
    let message = format!("cannot load the filter {}: {error}", path.display());
    no_filter(message, "restore the file, and exclude it from antivirus")
}

fn path_failure(path: &Path, error: PayloadError) -> Failure {
    let what = match error {
        PayloadError::PathLength => "is longer than 259 characters",
        PayloadError::PathEncoding => "has characters that are not ASCII",
    };
    let message = format!("the path of the filter {} {what}", path.display());
    no_filter(message, "put directx-visible.exe and its filter into another folder")
}

fn no_filter(message: String, hint: &'static str) -> Failure {
    Failure::new(NO_FILTER, message, hint)
}

fn own_path() -> Result<PathBuf, Failure> {
    std::env::current_exe().map_err(|error| system_failure(&error))
}

fn launch_failure(error: LaunchError) -> Failure {
    match error {
        LaunchError::Start(error) => {
            // The lower half of an HRESULT is the error code of Windows.
            let code = error.raw_os_error().map(|code| code & 0xFFFF);
            if code.is_some_and(|code| NOT_FOUND_ERRORS.contains(&code)) {
                let hint = "write the path of a program; scripts need their interpreter, as in \
                            cmd.exe /c C:\\app\\start.cmd";
                return Failure::new(NOT_FOUND, format!("cannot find the program: {error}"), hint);
            }
            let hint = "the program must be one that this Windows can run";
            Failure::new(NOT_EXECUTABLE, format!("cannot run the program: {error}"), hint)
        }
        LaunchError::NotFiltered(why) => {
            let message = format!("the program would see every GPU: {}", reason(why));
            Failure::new(NOT_FILTERED, message, "omit --require to run it nevertheless")
        }
        LaunchError::System(error) => system_failure(&error),
    }
}

fn reason(why: visible_process::NotFiltered) -> String {
    match why.reason() {
        (reason, Some(status)) => format!("{reason}, status {status:08X}"),
        (reason, None) => reason.to_owned(),
    }
}

fn system_failure(error: &io::Error) -> Failure {
    Failure::new(OTHER, format!("a function of Windows failed: {error}"), "report this as a defect")
}

fn no_command() -> Failure {
    Failure::new(USAGE, "there is no command", "write it after `--`")
}
