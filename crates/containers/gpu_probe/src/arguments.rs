//! The command line.

use std::ffi::OsString;
use std::time::Duration;

use lexopt::{Arg, Parser};

use crate::allocation::{VARIABLE, allocated};
use crate::api::Api;
use crate::failure::{Failure, USAGE};
use crate::help::names as names_of_options;
use crate::verdict::Demands;
use crate::visibility::Expected;

/// The hidden option with which the program starts itself.
const CHILD: &str = "--child";

/// The most seconds of `--time-limit`.
const LONGEST_LIMIT: u64 = 3_600;

/// What the program should do.
#[derive(Debug)]
pub(crate) enum Request {
    Help,
    Version,
    /// Test this API in this process, and write the outcome for the parent.
    Work(Api),
    Test(Arguments),
}

/// The arguments of a test.
#[derive(Debug)]
pub(crate) struct Arguments {
    apis: Vec<Api>,
    pub(crate) json: bool,
    /// The adapters that should be visible, if the user asks for the comparison.
    pub(crate) expected: Option<Expected>,
    allow_software: bool,
    /// How long the test of one API may take.
    pub(crate) time_limit: Duration,
}

/// The arguments of the process that tests `api`.
pub(crate) fn for_child(api: Api) -> [&'static str; 2] {
    [CHILD, api.name()]
}

/// Reads the words after the name of the program.
pub(crate) fn parse(words: impl IntoIterator<Item = OsString>) -> Result<Request, Failure> {
    let mut arguments = Arguments {
        apis: Vec::new(),
        json: false,
        expected: None,
        allow_software: false,
        time_limit: Duration::from_secs(30),
    };
    let mut child = None;
    let mut words = Parser::from_args(words);
    while let Some(word) = words.next()? {
        if let Arg::Long(name) = word {
            // The help has every option, so one that it lacks does not exist.
            let option = format!("--{name}");
            if option != CHILD && !names_of_options().any(|known| known == option) {
                return Err(unknown_option(&option));
            }
        }
        match word {
            Arg::Short('h') | Arg::Long("help") => return Ok(Request::Help),
            Arg::Short('V') | Arg::Long("version") => return Ok(Request::Version),
            Arg::Long("output") => arguments.json = is_json(&text(&words.value()?))?,
            Arg::Long("allow-software") => arguments.allow_software = true,
            // The value is optional, so the next word is never the value.
            Arg::Long("expect") => arguments.expected = Some(expected(words.optional_value())?),
            Arg::Long("time-limit") => arguments.time_limit = time_limit(&text(&words.value()?))?,
            Arg::Long("child") => child = Some(api(&text(&words.value()?))?),
            Arg::Short(name) => return Err(unknown_option(&format!("-{name}"))),
            Arg::Long(name) => return Err(unknown_option(&format!("--{name}"))),
            Arg::Value(names) => {
                for name in text(&names).split(',') {
                    arguments.apis.push(api(name)?);
                }
            }
        }
    }
    Ok(match child {
        Some(api) => Request::Work(api),
        None => Request::Test(arguments),
    })
}

fn text(word: &OsString) -> String {
    word.to_string_lossy().into_owned()
}

impl From<lexopt::Error> for Failure {
    fn from(error: lexopt::Error) -> Failure {
        usage(error.to_string())
    }
}

fn usage(message: String) -> Failure {
    Failure::new(USAGE, message, "`gpu-probe --help` lists the options")
}

fn unknown_option(name: &str) -> Failure {
    let mut failure = usage(format!("unknown option `{name}`"));
    if name == "--burn" {
        failure.hint = "each API is tested once: to test for longer, repeat `gpu-probe`".into();
    } else if let Some(near) = nearest(name, names_of_options()) {
        failure.hint = format!("did you mean `{near}`?");
    }
    failure
}

fn api(name: &str) -> Result<Api, Failure> {
    let Some(api) = Api::with_name(name) else {
        let option = format!("--{name}");
        let meant = names_of_options().find(|known| *known == option);
        let names = Api::all().map(Api::name);
        let hint = match meant.or_else(|| nearest(name, names.clone())) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("the APIs are {}", names.collect::<Vec<_>>().join(", ")),
        };
        return Err(Failure::new(USAGE, format!("unknown API `{name}`"), hint));
    };
    if api.exists_here() {
        return Ok(api);
    }
    let hint = "name other APIs, or run this on Windows";
    Err(Failure::new(USAGE, format!("API `{name}` exists only on Windows"), hint))
}

/// The candidate that looks like a misspelled `name`.
fn nearest(name: &str, candidates: impl Iterator<Item = &'static str>) -> Option<&'static str> {
    let rated = candidates.map(|candidate| (strsim::jaro(name, candidate), candidate));
    let best = rated.max_by(|(a, _), (b, _)| a.total_cmp(b));
    best.filter(|(similarity, _)| *similarity > 0.7).map(|(_, candidate)| candidate)
}

fn is_json(value: &str) -> Result<bool, Failure> {
    match value {
        "text" => Ok(false),
        "json" => Ok(true),
        _ => Err(usage(format!("--output has `{value}`, expected text or json"))),
    }
}

fn time_limit(value: &str) -> Result<Duration, Failure> {
    let seconds = value.parse().ok().filter(|seconds| (1..=LONGEST_LIMIT).contains(seconds));
    seconds.map(Duration::from_secs).ok_or_else(|| {
        usage(format!(
            "--time-limit has `{value}`, expected a number of seconds from 1 to {LONGEST_LIMIT}"
        ))
    })
}

/// The adapters of the option's value. Without a value, the adapters in the container's variables.
fn expected(value: Option<OsString>) -> Result<Expected, Failure> {
    let expected = match value {
        Some(value) => Expected::parse(&text(&value)),
        None => match allocated() {
            Ok(allowed) => Ok(Expected::Luids(allowed.as_slice().iter().copied().collect())),
            Err(error) => Err(error.to_string()),
        },
    };
    expected.map_err(|message| {
        let hint = format!(
            "set `environmentHints: true` in the configuration of the device plugin, which sets \
             {VARIABLE} and a variable for each resource, or use `--expect=1` or \
             `--expect=LUID,LUID`"
        );
        Failure::new(USAGE, message, hint)
    })
}

impl Arguments {
    /// The APIs to test, each once.
    pub(crate) fn selected(&self) -> Vec<Api> {
        if self.apis.is_empty() {
            return Api::all().filter(|api| api.exists_here()).collect();
        }
        Api::all().filter(|api| self.apis.contains(api)).collect()
    }

    /// The demands of the user.
    pub(crate) fn demands(&self) -> Demands {
        Demands { allow_software: self.allow_software, are_named: !self.apis.is_empty() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(words: &[&str]) -> Result<Request, Failure> {
        parse(words.iter().map(OsString::from))
    }

    fn parsed(words: &[&str]) -> Arguments {
        match request(words) {
            Ok(Request::Test(arguments)) => arguments,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_child_tests_one_api() {
        let found = request(&for_child(Api::Vulkan));
        assert!(matches!(found, Ok(Request::Work(Api::Vulkan))), "{found:?}");
    }

    #[test]
    fn named_apis_are_tested_once_in_the_order_of_the_report() {
        let selected = parsed(&["opencl", "vulkan", "opencl"]).selected();
        assert_eq!(selected, [Api::Vulkan, Api::Opencl]);
        assert_eq!(parsed(&["opencl,vulkan"]).selected(), selected);
        assert!(parsed(&[]).selected().contains(&Api::Cuda));
    }

    #[test]
    fn an_expectation_needs_no_value_and_takes_no_api() {
        let error = request(&["--expect", "2"]).unwrap_err();
        assert_eq!(error.message, "DIRECTX_VISIBLE_DEVICES is not set");
        assert_eq!(parsed(&["--expect=2"]).expected, Some(Expected::Number(2)));
    }

    #[test]
    fn wrong_words_are_named_with_a_fix() {
        for (words, message, hint) in [
            (&["cud"][..], "unknown API `cud`", "did you mean `cuda`?"),
            (&["version"], "unknown API `version`", "did you mean `--version`?"),
            (&["--expct"], "unknown option `--expct`", "did you mean `--expect`?"),
            (&["--burn=3"], "unknown option `--burn`", "each API is tested once: "),
            (&["zz"], "unknown API `zz`", "the APIs are d3dkmt, "),
            (
                &["--time-limit"],
                "missing argument for option '--time-limit'",
                "`gpu-probe --help` lists",
            ),
            (
                &["--time-limit", "0"],
                "--time-limit has `0`, expected a number of seconds from 1 to 3600",
                "`gpu-probe --help` lists",
            ),
            (&["--output", "xml"], "--output has `xml`, expected text or json", "`gpu-probe --h"),
            (
                &["--allow-software=no"],
                "unexpected argument for option '--allow-software': \"no\"",
                "`gpu-probe --help` lists",
            ),
        ] {
            let error = request(words).unwrap_err();
            assert_eq!(error.message, message);
            assert!(error.hint.starts_with(hint), "{}", error.hint);
        }
    }

    #[test]
    fn every_option_of_the_help_is_known() {
        for name in names_of_options() {
            let error = request(&[name, "1"]).err();
            assert!(
                !error.is_some_and(|error| error.message.starts_with("unknown option")),
                "{name}"
            );
        }
    }

    #[test]
    fn the_arguments_of_the_examples_are_accepted() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../examples/gpu-probe");
        let mut tested = 0;
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let text = std::fs::read_to_string(&path).unwrap();
            let arguments = text.lines().find_map(|line| line.trim().strip_prefix("args: ["));
            let Some(arguments) = arguments.and_then(|list| list.strip_suffix(']')) else {
                continue;
            };
            let error = parse(arguments.split(", ").map(OsString::from)).err();
            let is_known = error
                .as_ref()
                .is_none_or(|error| error.message.ends_with("exists only on Windows"));
            assert!(is_known, "{}: {error:?}", path.display());
            tested += 1;
        }
        assert!(tested > 3, "{tested} examples name APIs");
    }
}
