//! Runs other programs and reports their failures.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

/// Runs `command` with this program's output; an error unless it exits 0.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("cannot run {}", line(command)))?;
    if !status.success() {
        bail!("{} failed with {status}", line(command));
    }
    Ok(())
}

/// Runs `command` with its output appended to the file `log`. If it fails, the end of
/// the file is printed.
pub(crate) fn run_logged(command: &mut Command, log: &Path) -> Result<()> {
    let file = File::options()
        .create(true)
        .append(true)
        .open(log)
        .with_context(|| format!("cannot write {}", log.display()))?;
    command.stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file);
    run(command).inspect_err(|_| {
        let text = std::fs::read(log).unwrap_or_default();
        eprintln!("the last lines of {}:\n{}", log.display(), last_lines(&text, 15));
    })
}

/// What `command` writes to standard output, or `None` if it cannot be started or fails.
pub(crate) fn stdout(command: &mut Command) -> Option<String> {
    let output = command.stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Runs `command` to its end and returns its output. If it runs longer than `limit`, it
/// is killed and the result is an error.
pub(crate) fn output_within(limit: Duration, command: &mut Command) -> Result<Output> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().with_context(|| format!("cannot run {}", line(command)))?;
    let stdout = read_in_background(child.stdout.take().expect("standard output is piped"));
    let stderr = read_in_background(child.stderr.take().expect("standard error is piped"));
    let Some(status) = wait_within(limit, &mut child)? else {
        child.kill()?;
        child.wait()?;
        bail!("{} did not exit within {} s", line(command), limit.as_secs());
    };
    let join = |handle: thread::JoinHandle<Vec<u8>>| handle.join().unwrap_or_default();
    Ok(Output { status, stdout: join(stdout), stderr: join(stderr) })
}

/// Waits until `child` exits; `None` if it still runs after `limit`.
pub(crate) fn wait_within(limit: Duration, child: &mut Child) -> Result<Option<ExitStatus>> {
    /// Short, because the Wine tests start hundreds of programs.
    const INTERVAL: Duration = Duration::from_millis(5);
    let end = Instant::now() + limit;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if Instant::now() > end {
            return Ok(None);
        }
        thread::sleep(INTERVAL);
    }
}

/// The command as one would type it, for messages. Arguments of several lines, which
/// are scripts, are left out.
pub(crate) fn line(command: &Command) -> String {
    let words: Vec<_> = [command.get_program()]
        .into_iter()
        .chain(command.get_args())
        .map(OsStr::to_string_lossy)
        .map(|word| if word.contains('\n') { "…".into() } else { word })
        .collect();
    format!("`{}`", words.join(" "))
}

/// The last `count` lines of `text`.
pub(crate) fn last_lines(text: &[u8], count: usize) -> String {
    let text = String::from_utf8_lossy(text);
    let lines: Vec<&str> = text.trim_end().lines().collect();
    lines[lines.len().saturating_sub(count)..].join("\n")
}

fn read_in_background(mut pipe: impl Read + Send + 'static) -> thread::JoinHandle<Vec<u8>> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        // After an error, what was read before it is still useful.
        let _ = pipe.read_to_end(&mut bytes);
        bytes
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A command for the shell of this system.
    fn shell(line: &str) -> Command {
        let [shell, option] = if cfg!(windows) { ["cmd", "/c"] } else { ["sh", "-c"] };
        let mut command = Command::new(shell);
        command.args([option, line]);
        command
    }

    #[test]
    fn a_failure_names_the_program_and_its_status() {
        let error = run(&mut shell("exit 3")).unwrap_err().to_string();
        let status = if cfg!(windows) { "exit code: 3" } else { "exit status: 3" };
        assert!(error.ends_with(&format!(" exit 3` failed with {status}")), "{error}");
        let error = run(&mut Command::new("/nonexistent/tool")).unwrap_err();
        assert!(format!("{error:#}").starts_with("cannot run `/nonexistent/tool`"), "{error:#}");
        assert_eq!(line(Command::new("sh").args(["-c", "a\nb", "c"])), "`sh -c … c`");
    }

    #[test]
    fn a_program_that_exceeds_its_time_limit_is_killed() {
        // Windows has no program that only sleeps.
        let words = if cfg!(windows) { "ping -n 60 127.0.0.1" } else { "sleep 60" };
        let (program, arguments) = words.split_once(' ').unwrap();
        let mut command = Command::new(program);
        let error = output_within(Duration::from_millis(50), command.args(arguments.split(' ')));
        let expected = format!("`{words}` did not exit within 0 s");
        assert_eq!(error.unwrap_err().to_string(), expected);
        let output = output_within(Duration::from_secs(60), &mut shell("echo text"));
        assert_eq!(output.unwrap().stdout.trim_ascii_end(), b"text");
    }

    #[test]
    fn the_last_lines_of_a_text() {
        assert_eq!(last_lines(b"a\nb\nc\n", 2), "b\nc");
        assert_eq!(last_lines(b"a\n", 9), "a");
        assert_eq!(last_lines(b"", 9), "");
    }
}
