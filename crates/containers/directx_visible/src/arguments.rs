//! The options before `--`, and those of the subcommand.

use std::ffi::OsString;
use std::path::PathBuf;

use gpu_probe::Api;
use gpu_probe::failure::{Failure, USAGE};

use crate::command_line::COMMAND_LINE;
use crate::help::TEXT;
use crate::image::{Container, Options};

/// What the program should do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Request {
    Help,
    Version,
    /// Run a program.
    Run {
        /// The raw start of the program's command line.
        line: Option<OsString>,
        /// The number of words before the rest of that line.
        words: usize,
        /// Whether the program and its children must not run unfiltered.
        is_required: bool,
        /// Whether children of the program report what is not filtered.
        is_verbose: bool,
    },
    Check {
        json: bool,
    },
    /// Print what the manifest of an image needs.
    Command(Options),
    /// Copy the files of this program to a folder.
    Install(PathBuf),
    /// Run until this process is shut down.
    Wait,
    /// Print what the calls of an API list, given the LUIDs of the adapters. `--check` starts
    /// this program with it.
    List(Api, Vec<i64>),
}

/// The hidden option of [`Request::List`].
pub(crate) const LIST: &str = "--list";

const USAGE_HINT: &str = "see directx-visible --help";

/// Reads the options.
pub(crate) fn parse(words: &[OsString]) -> Result<Request, Failure> {
    if let Some(list) = list(words) {
        return Ok(list);
    }
    if words.first().is_some_and(|word| word == "command") {
        return command(&words[1..]);
    }
    let mut line = None;
    let mut count = words.len();
    let mut check = false;
    let mut json = None;
    let mut require = false;
    let mut verbose = false;
    let mut left = words.iter().enumerate();
    while let Some((n, word)) = left.next() {
        match word.to_str() {
            Some("-h" | "--help") => return Ok(Request::Help),
            Some("-V" | "--version") => return Ok(Request::Version),
            Some("--check") => check = true,
            Some(COMMAND_LINE) => {
                let (_, value) = left.next().ok_or_else(|| usage("--command-line has no value"))?;
                set_once(&mut line, value.clone())?;
            }
            Some(word) if word.starts_with("--command-line=") => {
                set_once(&mut line, word["--command-line=".len()..].into())?;
            }
            Some("--output") => {
                let value = left.next().and_then(|(_, value)| value.to_str());
                json = Some(is_json(value.unwrap_or_default())?);
            }
            Some(word) if word.starts_with("--output=") => {
                json = Some(is_json(&word["--output=".len()..])?);
            }
            // Earlier versions had this option.
            Some("--json") => json = Some(true),
            Some("--wait") if words.len() == 1 => return Ok(Request::Wait),
            Some("--install") if n == 0 && words.len() == 2 => {
                return Ok(Request::Install(PathBuf::from(&words[1])));
            }
            Some("--install" | "--wait") => {
                return Err(usage("write only --install FOLDER, or only --wait"));
            }
            Some("--require") => require = true,
            Some("--verbose") => verbose = true,
            Some("--") => {
                if n + 1 == words.len() && line.is_none() {
                    return Err(no_command());
                }
                count = n + 1;
                break;
            }
            _ => return Err(unknown(&word.to_string_lossy())),
        }
    }
    if line.is_some() || count < words.len() {
        if check || json.is_some() {
            return Err(usage("--check and --output take no command"));
        }
        return Ok(Request::Run { line, words: count, is_required: require, is_verbose: verbose });
    }
    match (check, json, require || verbose) {
        (true, _, true) => {
            Err(usage("--require and --verbose belong to a command, not to --check"))
        }
        (true, json, false) => Ok(Request::Check { json: json.unwrap_or(false) }),
        (false, Some(_), _) => Err(usage("--output belongs to --check")),
        (false, None, _) => Err(no_command()),
    }
}

fn set_once(line: &mut Option<OsString>, value: OsString) -> Result<(), Failure> {
    match line.replace(value) {
        None => Ok(()),
        Some(_) => Err(usage("--command-line was given twice")),
    }
}

fn is_json(value: &str) -> Result<bool, Failure> {
    match value {
        "text" => Ok(false),
        "json" => Ok(true),
        _ => Err(usage(&format!("--output has `{}`, expected text or json", value.escape_debug()))),
    }
}

/// Reads the options of `command`.
fn command(words: &[OsString]) -> Result<Request, Failure> {
    let mut options = Options::default();
    let mut left = words.iter();
    while let Some(word) = left.next() {
        match word.to_str() {
            Some("-h" | "--help") => return Ok(Request::Help),
            Some("--require") => options.is_required = true,
            Some("--with-args") => options.has_args = true,
            Some("--patch") => {
                let value = left.next().and_then(|value| value.to_str());
                options.patched = Some(Container::parse(value.unwrap_or_default())?);
            }
            Some(word) if word.starts_with("--patch=") => {
                options.patched = Some(Container::parse(&word["--patch=".len()..])?);
            }
            Some(word) if word.starts_with('-') && word != "-" => {
                return Err(usage(&format!("command has no option `{}`", word.escape_debug())));
            }
            _ if options.file.is_some() => {
                return Err(usage("command takes one file with the configuration of an image"));
            }
            _ => options.file = Some(PathBuf::from(word)),
        }
    }
    options.file = options.file.filter(|file| file.as_os_str() != "-");
    Ok(Request::Command(options))
}

/// Reads `--list API LUID,LUID`.
fn list(words: &[OsString]) -> Option<Request> {
    let [option, api, luids] = words else { return None };
    let api = Api::with_name(api.to_str()?).filter(|_| option == LIST)?;
    let luids = luids.to_str()?.split(',').filter_map(|luid| luid.parse().ok());
    Some(Request::List(api, luids.collect()))
}

fn usage(message: &str) -> Failure {
    Failure::new(USAGE, message, USAGE_HINT)
}

fn no_command() -> Failure {
    let hint = "write it after `--`, as in directx-visible -- C:\\app\\server.exe";
    Failure::new(USAGE, "no command given", hint)
}

fn unknown(word: &str) -> Failure {
    if word.starts_with('-') {
        return usage(&format!("unknown option `{}`", word.escape_debug()));
    }
    let message = format!("unexpected argument `{}`", word.escape_debug());
    let option = format!("--{word}");
    let hint = if TEXT.split_whitespace().any(|known| known == option) {
        format!("did you mean `{option}`? Write a command after `--`")
    } else {
        "write the command after `--`".to_owned()
    };
    Failure::new(USAGE, message, hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(words: &[&str]) -> Result<Request, String> {
        let words: Vec<OsString> = words.iter().map(OsString::from).collect();
        parse(&words).map_err(|failure| {
            assert_eq!(failure.code, USAGE);
            failure.to_string()
        })
    }

    #[test]
    fn every_option_of_the_help_is_known() {
        let (options, of_command) =
            crate::help::TEXT.split_once("`directx-visible command`").unwrap();
        let named = |text: &'static str| {
            let words = text.lines().filter_map(|line| line.trim_start().split(' ').next());
            words.filter(|word| word.starts_with("--")).collect::<Vec<_>>()
        };
        for option in named(options) {
            let error = parsed(&[option, "text"]).err().unwrap_or_default();
            assert!(!error.contains("unknown option"), "{option}: {error}");
        }
        for option in named(of_command) {
            let error = parsed(&["command", option, "a/b/c"]).err().unwrap_or_default();
            assert!(!error.contains("has no option"), "{option}: {error}");
        }
        assert!(named(options).len() > 5 && named(of_command).len() > 2);
    }

    #[test]
    fn options_end_at_the_command() {
        let run = |words, is_required, is_verbose| {
            Ok(Request::Run { line: None, words, is_required, is_verbose })
        };
        assert_eq!(parsed(&["--", "a", "--check"]), run(1, false, false));
        assert_eq!(parsed(&["--require", "--", "--"]), run(2, true, false));
        assert_eq!(parsed(&["--verbose", "--", "a"]), run(2, false, true));
        assert_eq!(parsed(&["--", "command"]), run(1, false, false));
        for json in [
            &["--check", "--output", "json"][..],
            &["--check", "--output=json"],
            &["--check", "--json"],
        ] {
            assert_eq!(parsed(json), Ok(Request::Check { json: true }));
        }
        assert_eq!(parsed(&["--output", "text", "--check"]), Ok(Request::Check { json: false }));
        assert_eq!(parsed(&["--check"]), Ok(Request::Check { json: false }));
        let list = parsed(&["--list", "vulkan", "5,-6"]);
        assert_eq!(list, Ok(Request::List(Api::Vulkan, vec![5, -6])));
        assert_eq!(parsed(&["--list", "cuda", ""]), Ok(Request::List(Api::Cuda, Vec::new())));
        assert_eq!(parsed(&["--require", "--help", "x"]), Ok(Request::Help));
        assert_eq!(parsed(&["--install", "a b"]), Ok(Request::Install("a b".into())));
        assert_eq!(parsed(&["--wait"]), Ok(Request::Wait));
    }

    #[test]
    fn a_raw_command_line_is_one_word() {
        let run = |line: &str, words, is_required| {
            let line = Some(line.into());
            Ok(Request::Run { line, words, is_required, is_verbose: false })
        };
        assert_eq!(parsed(&["--command-line", "a b"]), run("a b", 2, false));
        assert_eq!(parsed(&["--command-line=a b", "--", "c"]), run("a b", 2, false));
        assert_eq!(parsed(&["--command-line", "a", "--"]), run("a", 3, false));
        assert_eq!(parsed(&["--require", "--command-line", "--", "--", "b"]), run("--", 4, true));
        assert_eq!(parsed(&["--command-line", "--check", "--require"]), run("--check", 3, true));
        assert_eq!(parsed(&["--command-line", "", "--", "--check"]), run("", 3, false));
    }

    #[test]
    fn the_subcommand_has_its_own_options() {
        let command = |options| Ok(Request::Command(options));
        let defaults = Options::default();
        assert_eq!(parsed(&["command"]), command(defaults.clone()));
        assert_eq!(parsed(&["command", "-"]), command(defaults));
        let patched = Some(Container::parse("deployment/app/server").unwrap());
        let file = Some("a b".into());
        let options = Options { is_required: true, has_args: true, patched, file };
        for patch in [&["--patch", "Deployment/app/server"][..], &["--patch=deployment/app/server"]]
        {
            let words = [&["command", "--require", "--with-args", "a b"], patch].concat();
            assert_eq!(parsed(&words), command(options.clone()));
        }
        assert_eq!(parsed(&["command", "--help"]), Ok(Request::Help));
    }

    #[test]
    fn wrong_usage_is_named() {
        for (words, expected) in [
            (&[][..], "error: no command given\nhint: write it after"),
            (&["--require"][..], "error: no command given"),
            (&["--"][..], "error: no command given"),
            (&["cmd.exe"][..], "error: unexpected argument `cmd.exe`\nhint: write the command"),
            (
                &["version"][..],
                "error: unexpected argument `version`\nhint: did you mean `--version`?",
            ),
            (&["--requir", "--", "a"][..], "error: unknown option `--requir`"),
            (&["--list", "x", ""][..], "error: unknown option `--list`"),
            (&["--output", "json"][..], "error: --output belongs to --check"),
            (&["--check", "--output"][..], "error: --output has ``, expected text or json"),
            (&["--check", "--output", "--"][..], "error: --output has `--`, expected text or json"),
            (&["--check", "--require"][..], "error: --require and --verbose belong to a command"),
            (&["--install"][..], "error: write only --install FOLDER, or only --wait"),
            (&["--require", "--install"][..], "error: write only --install FOLDER"),
            (&["--install", "a", "--wait"][..], "error: write only --install FOLDER"),
            (&["--wait", "--verbose"][..], "error: write only --install FOLDER"),
            (&["--check", "--", "a"][..], "error: --check and --output take no command"),
            (
                &["--check", "--command-line", "a"][..],
                "error: --check and --output take no command",
            ),
            (&["--command-line"][..], "error: --command-line has no value"),
            (&["--command-line", "a", "b"][..], "error: unexpected argument `b`"),
            (
                &["--command-line", "a", "--command-line", "b"][..],
                "error: --command-line was given twice",
            ),
            (&["command", "--check"][..], "error: command has no option `--check`"),
            (&["command", "a", "b"][..], "error: command takes one file"),
            (&["command", "--patch"][..], "error: --patch has ``\nhint: write KIND/NAME/CONTAINER"),
            (&["command", "--patch", "Pod/a"][..], "error: --patch has `Pod/a`"),
            (&["command", "--patch=Node/a/b"][..], "error: --patch has `Node/a/b`"),
            (&["command", "--patch", "Pod//b"][..], "error: --patch has `Pod//b`"),
        ] {
            let error = parsed(words).unwrap_err();
            assert!(error.starts_with(expected), "{error}");
        }
    }
}
