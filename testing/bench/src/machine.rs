//! Describes the machine on which the benchmark runs, without names of hosts or users.

use std::fs::read_to_string;
use std::time::{SystemTime, UNIX_EPOCH};

/// Facts by name.
pub(crate) fn describe() -> Vec<(&'static str, String)> {
    let cores = std::thread::available_parallelism().map_or(0, std::num::NonZero::get);
    let processor = line("/proc/cpuinfo", "model name");
    let memory = line("/proc/meminfo", "MemTotal").and_then(|text| {
        let kib: u64 = text.split(' ').next()?.parse().ok()?;
        Some(format!("{} GiB", (kib + (1 << 19)) >> 20))
    });
    let kernel = read_to_string("/proc/sys/kernel/osrelease").ok();
    let known = |fact: Option<String>| fact.unwrap_or_else(|| "unknown".to_owned());
    vec![
        ("processor", known(processor)),
        ("cores", cores.to_string()),
        ("memory", known(memory)),
        ("kernel", known(kernel).trim().to_owned()),
        ("system", std::env::consts::OS.to_owned()),
        ("load average over 1 minute, before the benchmark", known(load())),
        ("date", today()),
    ]
}

/// The load average over the last minute: how many processes ran or waited for a processor.
fn load() -> Option<String> {
    let text = read_to_string("/proc/loadavg").ok()?;
    text.split(' ').next().map(str::to_owned)
}

/// The value of the first line that starts with `name`, in the format of `/proc` files.
fn line(file: &str, name: &str) -> Option<String> {
    let text = read_to_string(file).ok()?;
    let line = text.lines().find(|line| line.starts_with(name))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

fn today() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    date(since.as_secs() / 86_400)
}

/// The date that is this number of days after 1970-01-01, as year, month and day.
fn date(mut days: u64) -> String {
    let leap = |year: u64| {
        year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
    };
    let mut year = 1970;
    while days >= 365 + u64::from(leap(year)) {
        days -= 365 + u64::from(leap(year));
        year += 1;
    }
    let february = 28 + u64::from(leap(year));
    let mut month = 1;
    for length in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30] {
        if days < length {
            break;
        }
        days -= length;
        month += 1;
    }
    format!("{year}-{month:02}-{:02}", days + 1)
}
