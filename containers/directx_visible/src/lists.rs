//! What each API lists, read in processes of their own: a driver that crashes or hangs ends
//! only the process that asks it.

use std::io::{self, Write as _};
use std::path::Path;
use std::time::Duration;

use gpu_lists::{Api, Listing, Unlisted};
use visibility::Payload;
use visible_process::{LaunchError, Output, launch};

use crate::arguments::LIST;
use crate::check::{Adapters, Listed, Run, printed, read};

/// Begins the line with the lists, because drivers write to standard output too.
const MARKER: &str = "directx-visible-lists:";

/// How long one process may take: drivers start in seconds.
const LIMIT: Duration = Duration::from_secs(60);

/// Prints what `api` lists in this process.
pub(crate) fn print(api: Api, known: &[i64]) -> io::Result<()> {
    let lists: Vec<Listed> = gpu_lists::list(api, known).into_iter().map(listed).collect();
    // A driver may have written half a line.
    writeln!(io::stdout(), "\n{MARKER}{}", printed(&lists))
}

fn listed(Listing { call, devices }: Listing) -> Listed {
    let adapters = match devices {
        Ok(devices) => {
            Adapters::Devices { luids: devices.luids, without_luid: devices.without_luid }
        }
        Err(Unlisted::Absent(why)) => Adapters::Absent(why),
        Err(Unlisted::Failed(why)) => Adapters::Failed(why),
    };
    Listed { call: call.to_owned(), adapters }
}

/// This program as the one that lists.
pub(crate) struct ListCommand<'a> {
    program: &'a Path,
    known: String,
}

impl ListCommand<'_> {
    pub(crate) fn new<'a>(program: &'a Path, known: &[i64]) -> ListCommand<'a> {
        let known: Vec<String> = known.iter().map(ToString::to_string).collect();
        ListCommand { program, known: known.join(",") }
    }

    /// Lists with the filter of `payload`, or without a filter.
    pub(crate) fn run(&self, api: Api, payload: Option<&Payload>) -> Result<Run, LaunchError> {
        let (program, known) = (self.program.display(), &self.known);
        let command = format!("\"{program}\" {LIST} {} \"{known}\"", api.name());
        let command: Vec<u16> = command.encode_utf16().collect();
        let child = launch(&command, payload, &Output::Captured)?;
        let ended = child.finish(LIMIT).map_err(LaunchError::System)?;
        let Some((code, text)) = ended else {
            let why = format!("no result within {} s; the process was ended", LIMIT.as_secs());
            return Ok(Run::Stopped(why));
        };
        let lists = text.lines().find_map(|line| line.strip_prefix(MARKER));
        // A driver that crashes while it is unloaded has listed before.
        let lists = lists.and_then(read);
        Ok(lists
            .map_or_else(|| Run::Stopped(format!("the process ended with {code:08X}")), Run::Lists))
    }
}
