//! `directx-visible`: its size and that of its filters, and what both cost a program.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::sample::Sample;
use anyhow::{Context, Result, ensure};

use crate::group::{AppliesTo, Effort, Group, Row};
use crate::programs::WindowsPrograms;

/// The launcher, and the program of the test bed, which starts programs and measures them.
const LAUNCHER: &str = "directx-visible.exe";
const BED: &str = "wine_bed.exe";

/// The first GPU of the host.
const LUID: &str = "7098126";

/// A program that does nothing.
const NOTHING: [&str; 3] = [BED, "exit", "0"];

/// How the line of `directx-visible --version` starts.
const VERSION: &str = "directx-visible ";

/// Starts of a program in one process that measures, and how many of them come first and
/// do not count.
const STARTS: usize = 8;
const WARM_UP: usize = 3;

impl WindowsPrograms {
    /// Runs a program of the folder, and returns the milliseconds that it prints.
    fn times(&self, words: &[&str]) -> Result<Sample> {
        let (program, arguments) = words.split_first().context("no program")?;
        let program = self.folder.join(program);
        let (runner, rest) = self.runner.split_first().context("`--` requires a runner")?;
        let mut command = Command::new(runner);
        command.args(rest).arg(program).args(arguments).env("DIRECTX_VISIBLE_DEVICES", LUID);
        let output = command.output().with_context(|| format!("cannot run `{runner}`"))?;
        let text = String::from_utf8_lossy(&output.stdout);
        let errors = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{}: {text}{errors}", words.join(" "));
        // A program that is not filtered says so.
        ensure!(errors.is_empty(), "{}: {errors}", words.join(" "));
        milliseconds(&text)
    }
}

/// Microseconds, one number a line, without those of the warm-up.
fn milliseconds(text: &str) -> Result<Sample> {
    let number = |line: &str| {
        let number = line.trim().parse::<u32>();
        number.map(|us| f64::from(us) / 1e3).with_context(|| format!("unexpected line `{line}`"))
    };
    // A program that is started may print something too.
    let lines = text.lines().filter(|line| !line.starts_with(VERSION));
    let times = lines.skip(WARM_UP).map(number).collect::<Result<Vec<f64>>>()?;
    Sample::new(times).context("no program was started")
}

pub(super) fn measure(programs: &WindowsPrograms, effort: Effort) -> Result<Group> {
    let count = STARTS.to_string();
    let timer = [BED, "time", &count];
    let launcher = [LAUNCHER, "--"];
    let plain = [&timer[..], &NOTHING].concat();
    let visible = [&timer[..], &launcher, &NOTHING].concat();
    let children = [&launcher[..], &timer, &NOTHING].concat();
    let version = [&timer[..], &[LAUNCHER, "--version"]].concat();
    let [mut direct, mut through, mut own, mut idle, mut attach] = [const { Vec::new() }; 5];
    // The programs run in turns, so that a change of the machine's load affects all.
    for _ in 0..effort.times(20) {
        let without = programs.times(&plain)?.median();
        let with = programs.times(&visible)?.median();
        let child = programs.times(&children)?.median();
        direct.push(without);
        through.push(with);
        own.push(with - without);
        attach.push(child - without);
        idle.push(programs.times(&version)?.median());
    }
    let mut rows = sizes(&programs.folder)?;
    rows.extend([
        Row::new("start to end of a program", "ms", direct)?,
        Row::new("the same through directx-visible", "ms", through)?,
        Row::new("difference", "ms", own)?,
        Row::new("directx-visible --version", "ms", idle)?,
        Row::new("filter, for each child process", "ms", attach)?,
    ]);
    Ok(Group { title: "Visibility", how: HOW, rows })
}

const HOW: &str = "`directx-visible`, its filter, and what they cost a program that does nothing. \
    A Windows program starts it eight times and measures the last five; each result is the \
    median of one such run, alternately without `directx-visible`, through it, and as a child \
    process of a filtered program. The difference contains the start of one more process; \
    `directx-visible --version` shows how much of it that is. The times are those of Wine on Linux, \
    which starts processes slower than Windows.";

/// The sizes of the launcher and of each filter.
fn sizes(folder: &Path) -> Result<Vec<Row>> {
    let mut files: Vec<PathBuf> = fs::read_dir(folder)
        .with_context(|| format!("cannot read {}", folder.display()))?
        .map(|entry| Ok(entry?.path()))
        .collect::<Result<_>>()?;
    files.sort();
    let mut rows = Vec::new();
    for path in files {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let limit = match path.extension().and_then(|extension| extension.to_str()) {
            Some("dll") => 20.0,
            Some("exe") if name == LAUNCHER => 1024.0,
            _ => continue,
        };
        let bytes = u32::try_from(fs::metadata(&path)?.len())?;
        let row = Row::new(name, "KiB", vec![f64::from(bytes) / 1024.0])?;
        rows.push(row.within(limit, AppliesTo::Median));
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_starts_do_not_count() {
        let text = "directx-visible 1.0\r\n9000\r\n8000\r\n7000\r\n1500\r\n2500\r\n";
        let sample = milliseconds(text).unwrap();
        assert_eq!((sample.count(), sample.percentile(100)), (2, 2.5));
        for text in ["", "1\n2\n3\n", "1\n2\n3\nx\n"] {
            assert!(milliseconds(text).is_err(), "{text}");
        }
    }

    #[test]
    fn the_launcher_and_every_filter_have_a_size() {
        let folder = tempfile::tempdir().unwrap();
        for (name, size) in [(LAUNCHER, 2048), ("a.dll", 1024), (BED, 1), ("x.txt", 1)] {
            fs::write(folder.path().join(name), vec![0; size]).unwrap();
        }
        let rows = sizes(folder.path()).unwrap();
        let sizes: Vec<_> = rows.iter().map(|row| (&*row.what, row.sample.median())).collect();
        assert_eq!(sizes, [("a.dll", 1.0), (LAUNCHER, 2.0)]);
    }
}
