//! Starts the program, and the comparison, on Windows.

use std::io;
use std::path::{Path, PathBuf};

use gpu_lists::Api;
use visibility::{AllowedLuids, Payload, PayloadError, Unfiltered, allocated};
use visible_process::{
    LaunchError, Output, check_32_bit_filter, launch, load_filter, raw_command_line, system_folder,
};

use crate::allocation::{Existing, existing, list as listed_luids};
use crate::arguments::Format;
use crate::check::{Report, known};
use crate::command_line::after_dashes;
use crate::failure::{Failure, NO_FILTER, NOT_EXECUTABLE, NOT_FILTERED, NOT_FOUND, OTHER, USAGE};
use crate::filters::{FILTER, path_of_32_bit_filter};
use crate::lists::{self, ListCommand};

/// `ERROR_FILE_NOT_FOUND`, `ERROR_PATH_NOT_FOUND` and `ERROR_INVALID_NAME` (winerror.h).
const NOT_FOUND_ERRORS: [i32; 3] = [2, 3, 123];

/// Runs the program, and returns its exit code.
pub(crate) fn program(unfiltered: Unfiltered, verbose: bool) -> Result<u32, Failure> {
    let raw = raw_command_line();
    let command = after_dashes(&raw).ok_or_else(no_command)?;
    let Allocation { allowed, .. } = allocation()?;
    let payload = match (payload(&allowed, unfiltered), unfiltered) {
        (Ok(payload), _) if verbose => Some(payload.verbose()),
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

/// Compares what each API lists in an unfiltered and in a filtered process.
pub(crate) fn check(format: Format) -> Result<u32, Failure> {
    let Allocation { allowed, adapters } = allocation()?;
    let payload = payload(&allowed, Unfiltered::Refuse)?;
    let known = known(allowed.as_slice(), adapters.as_deref());
    let program = own_path()?;
    let command = ListCommand::new(&program, &known);
    let mut report = Report::new(allowed.as_slice());
    for api in Api::ALL {
        let mut unfiltered = command.run(api, None).map_err(launch_failure)?;
        let mut filtered = command.run(api, Some(&payload)).map_err(launch_failure)?;
        // Without the kernel's lists nothing is known to be software.
        if adapters.is_some() {
            unfiltered.keep(&known);
            filtered.keep(&known);
        }
        report.add(api, &unfiltered, &filtered);
    }
    match format {
        Format::Text => print!("{}", report.text()),
        Format::Json => {
            let text = serde_json::to_string_pretty(&report);
            println!("{}", text.map_err(|error| system_failure(&io::Error::from(error)))?);
        }
    }
    Ok(report.exit_code())
}

/// Prints what an API lists in this process.
pub(crate) fn list(api: Api, known: &[i64]) -> Result<u32, Failure> {
    lists::print(api, known).map_err(|error| system_failure(&error))?;
    Ok(0)
}

/// The container's devices, and those that Windows lists.
struct Allocation {
    allowed: AllowedLuids,
    /// `None` if Windows lists nothing.
    adapters: Option<Vec<i64>>,
}

/// The container's devices, of which at least one exists.
fn allocation() -> Result<Allocation, Failure> {
    let text = |text: std::ffi::OsString| text.to_string_lossy().into_owned();
    let variables = std::env::vars_os().map(|(name, value)| (text(name), text(value)));
    let allowed = allocated(&mut variables.collect::<Vec<_>>())?;
    let adapters = gpu_lists::allocatable();
    // A Windows that does not list its adapters cannot be compared.
    let existing = adapters.as_ref().map(|adapters| existing(&allowed, adapters)).transpose()?;
    if let Some(Existing::Missing(missing)) = existing {
        let missing = listed_luids(&missing);
        eprintln!("directx-visible: devices of the container do not exist any more: {missing}");
    }
    Ok(Allocation { allowed, adapters })
}

/// The payload for a filter that can be loaded.
fn payload(allowed: &AllowedLuids, unfiltered: Unfiltered) -> Result<Payload, Failure> {
    let own = own_path()?;
    let path = own.with_file_name(FILTER);
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
