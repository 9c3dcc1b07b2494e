//! The options before `--`.

use std::ffi::OsString;
use std::path::PathBuf;

use gpu_probe::Api;
use gpu_probe::failure::{Failure, USAGE};

/// What the program should do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Request {
    Help,
    Version,
    /// Run the program of the raw command line.
    Run {
        /// Whether the program and its children must not run unfiltered.
        is_required: bool,
        /// Whether children of the program report what is not filtered.
        is_verbose: bool,
    },
    Check {
        json: bool,
    },
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
                if check || json.is_some() {
                    return Err(usage("--check and --output take no command"));
                }
                if n + 1 == words.len() {
                    return Err(no_command());
                }
                return Ok(Request::Run { is_required: require, is_verbose: verbose });
            }
            _ => return Err(unknown(&word.to_string_lossy())),
        }
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

fn is_json(value: &str) -> Result<bool, Failure> {
    match value {
        "text" => Ok(false),
        "json" => Ok(true),
        _ => Err(usage(&format!("--output has `{}`, expected text or json", value.escape_debug()))),
    }
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

pub(crate) fn no_command() -> Failure {
    let hint = "write it after `--`, as in directx-visible -- C:\\app\\server.exe";
    Failure::new(USAGE, "no command given", hint)
}

fn unknown(word: &str) -> Failure {
    if word.starts_with('-') {
        return usage(&format!("unknown option `{}`", word.escape_debug()));
    }
    let message = format!("unexpected argument `{}`", word.escape_debug());
    Failure::new(USAGE, message, "write the command after `--`")
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
    fn options_end_at_the_command() {
        let run = |is_required, is_verbose| Ok(Request::Run { is_required, is_verbose });
        assert_eq!(parsed(&["--", "a", "--check"]), run(false, false));
        assert_eq!(parsed(&["--require", "--", "--"]), run(true, false));
        assert_eq!(parsed(&["--verbose", "--", "a"]), run(false, true));
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
    fn wrong_usage_is_named() {
        for (words, expected) in [
            (&[][..], "error: no command given\nhint: write it after"),
            (&["--require"][..], "error: no command given"),
            (&["--"][..], "error: no command given"),
            (&["cmd.exe"][..], "error: unexpected argument `cmd.exe`\nhint: write the command"),
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
        ] {
            let error = parsed(words).unwrap_err();
            assert!(error.starts_with(expected), "{error}");
        }
    }
}
