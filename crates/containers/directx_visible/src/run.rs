//! Starts the program, and the comparison, on Windows.

use std::ffi::OsString;
use std::io;
use std::os::windows::ffi::OsStrExt as _;
use std::os::windows::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use gpu_probe::failure::Failure;
use gpu_probe::lists::{self, Adapters, Listed, allocatable};
use gpu_probe::{Api, allocation::allocated, child};
use visibility_filter::{AllowedLuids, NotFiltered, Payload, REQUIRED, VERBOSE};
use windows::Win32::System::Threading::CREATE_SUSPENDED;

use crate::allocation::{list as shown, missing, unknown};
use crate::arguments::LIST;
use crate::check::{Report, keep, known, one};
use crate::command_line;
use crate::console::raw_command_line;
use crate::exit_codes::{NO_FILTER, NOT_EXECUTABLE, NOT_FILTERED, NOT_FOUND, OTHER};
use crate::filter_file::{FILTER, check_32_bit, load, path_of_32_bit_filter, system_folder};
use crate::launch::{self, LaunchError, launch};
use crate::parents::{RAN, parents};

/// How long a process that lists may take: drivers start in seconds.
const LIMIT: Duration = Duration::from_mins(1);

/// `ERROR_FILE_NOT_FOUND`, `ERROR_PATH_NOT_FOUND` and `ERROR_INVALID_NAME` (winerror.h).
const NOT_FOUND_ERRORS: [i32; 3] = [2, 3, 123];

/// Runs the program, and returns its exit code.
pub(crate) fn program(
    line: Option<OsString>,
    words: usize,
    is_required: bool,
    is_verbose: bool,
) -> Result<u32, Failure> {
    let line = line.map(|line| line.encode_wide().collect());
    let command = command_line::program(line, &raw_command_line(), words);
    let (allowed, _) = allocation()?;
    let payload = match payload(&allowed) {
        Ok(mut payload) => {
            payload.flags |= if is_required { REQUIRED } else { 0 };
            payload.flags |= if is_verbose { VERBOSE } else { 0 };
            Some(payload)
        }
        Err(failure) if is_required => return Err(failure),
        Err(failure) => {
            eprintln!("directx-visible: the program sees every GPU:\n{failure}");
            None
        }
    };
    launch(&command, payload.as_ref(), warn).map_err(launch_failure)
}

fn warn(why: NotFiltered) {
    eprintln!("directx-visible: the program sees every GPU: {}", reason(why));
}

/// Compares what each API lists in an unfiltered and in a filtered process.
pub(crate) fn check(json: bool) -> Result<u32, Failure> {
    let (allowed, adapters) = allocation()?;
    let mut payload = payload(&allowed)?;
    // A process that cannot be filtered ends with the reason.
    payload.flags |= REQUIRED;
    let known = known(allowed.as_slice(), adapters.as_deref());
    // Without the kernel's lists nothing is known to be software.
    let compared = adapters.is_some().then_some(&*known);
    let program = own_path()?;
    let words = known.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
    let mut report = Report::new(allowed.as_slice());
    for api in lists::APIS {
        let mut command = Command::new(&program);
        command.args([LIST, api.name(), &words]);
        let unfiltered = lists_of(&mut command, None, compared).map_err(launch_failure)?;
        let filtered = lists_of(&mut command, Some(&payload), compared).map_err(launch_failure)?;
        report.add(api, &unfiltered, &filtered);
    }
    for (name, mut command) in parents(&program, &words) {
        let unfiltered = lists_of(&mut command, None, compared).unwrap_or_else(not_started);
        let filtered = lists_of(&mut command, Some(&payload), compared).unwrap_or_else(not_started);
        report.add_child(name, &unfiltered, &filtered);
    }
    if json {
        let text = serde_json::to_string_pretty(&report);
        println!("{}", text.map_err(|error| system_failure(&io::Error::from(error)))?);
    } else {
        print!("{}", report.text());
    }
    Ok(report.exit_code())
}

/// Returns which adapters of `compared` the `command` lists in a process with the filter of
/// `payload`, or without a filter. A driver that crashes or hangs ends only that process.
fn lists_of(
    command: &mut Command,
    payload: Option<&Payload>,
    compared: Option<&[i64]>,
) -> Result<Vec<Listed>, LaunchError> {
    command.creation_flags(CREATE_SUSPENDED.0);
    let ended = child::supervise(command, LIMIT, |child| launch::run(child, payload))?;
    if let Some(mut lists) = ended.result::<Vec<Listed>>() {
        if let Some(compared) = compared {
            keep(&mut lists, compared);
        }
        return Ok(lists);
    }
    let code = ended.status.and_then(|status| status.code());
    Ok(one(match code {
        Some(RAN) => Adapters::Devices { luids: Vec::new(), without_luid: 0 },
        Some(code) => Adapters::Stopped(match error_of(&ended.stderr) {
            Some(line) => format!("the process ended with {code:08X}: {line}"),
            None => format!("the process ended with {code:08X}"),
        }),
        None => {
            let limit = LIMIT.as_secs();
            Adapters::Stopped(format!("no result within {limit} s; the process was ended"))
        }
    }))
}

/// The line that the filter wrote to standard error, or the last line.
fn error_of(stderr: &str) -> Option<&str> {
    let mut lines = stderr.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.clone().find(|line| line.starts_with("directx-visible: ")).or_else(|| lines.next_back())
}

/// The lists of a program that does not start.
fn not_started(error: LaunchError) -> Vec<Listed> {
    one(match error {
        LaunchError::Start(error) | LaunchError::System(error)
            if error.kind() == io::ErrorKind::NotFound =>
        {
            Adapters::Absent("not found".to_owned())
        }
        LaunchError::NotFiltered(why) => Adapters::Stopped(reason(why)),
        LaunchError::Start(error) | LaunchError::System(error) => {
            Adapters::Stopped(error.to_string())
        }
    })
}

/// Prints what an API lists in this process.
pub(crate) fn list(api: Api, known: &[i64]) -> u32 {
    print!("{}", child::result(&lists::list(api, known)));
    0
}

/// The container's devices, and the adapters that Windows lists. It is an error if none of the
/// devices exists. The adapters are `None` if Windows lists nothing.
fn allocation() -> Result<(AllowedLuids, Option<Vec<i64>>), Failure> {
    let allowed = allocated().map_err(|error| unknown(&error))?;
    let adapters = allocatable();
    // If Windows does not list its adapters, there is nothing to compare.
    if let Some(adapters) = &adapters {
        let missing = missing(&allowed, adapters)?;
        if !missing.is_empty() {
            eprintln!(
                "directx-visible: devices of the container no longer exist: {}",
                shown(&missing)
            );
        }
    }
    Ok((allowed, adapters))
}

/// The payload for a filter that can be loaded.
fn payload(allowed: &AllowedLuids) -> Result<Payload, Failure> {
    let own = own_path()?;
    let path = own.with_file_name(FILTER);
    load(&path).map_err(|error| cannot_load(&path, &error))?;
    let mut payload = Payload::new(*allowed, &path.to_string_lossy())
        .map_err(|what| path_failure(&path, what))?;
    if let Err(failure) = add_32_bit_filter(&mut payload, &own) {
        eprintln!("directx-visible: 32-bit programs see every GPU:\n{failure}");
    }
    Ok(payload)
}

/// Adds the filter for 32-bit programs, if there is one.
fn add_32_bit_filter(payload: &mut Payload, own: &Path) -> Result<(), Failure> {
    let system = system_folder().unwrap_or_default();
    let path = path_of_32_bit_filter(&own.to_string_lossy(), &system);
    let Some(path) = path.map(PathBuf::from).filter(|path| path.exists()) else { return Ok(()) };
    check_32_bit(&path).map_err(|error| cannot_load(&path, &error))?;
    payload.set_32_bit_filter(&path.to_string_lossy()).map_err(|what| path_failure(&path, what))
}

fn cannot_load(path: &Path, error: &io::Error) -> Failure {
    let message = format!("cannot load the filter {}: {error}", path.display());
    no_filter(message, "restore the file, and exclude it from antivirus")
}

fn path_failure(path: &Path, what: &str) -> Failure {
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
            Failure::new(NOT_FILTERED, message, "omit --require to run it anyway")
        }
        LaunchError::System(error) => system_failure(&error),
    }
}

fn reason(why: NotFiltered) -> String {
    match why.reason() {
        (reason, Some(status)) => format!("{reason}, status {status:08X}"),
        (reason, None) => reason.to_owned(),
    }
}

fn system_failure(error: &io::Error) -> Failure {
    Failure::new(OTHER, format!("a function of Windows failed: {error}"), "report this as a defect")
}
