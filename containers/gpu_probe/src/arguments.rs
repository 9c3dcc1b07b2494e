//! The command line.
//!
//! The parser is written by hand: clap, which the other programs use, is as large as the rest of
//! this program, and workload images contain it.

use std::ffi::OsString;
use std::time::Duration;

use cli::{Failure, OutputFormat};
use thiserror::Error;
use visibility::VARIABLE;

use crate::api::Api;
use crate::help::FLAGS;
use crate::measure::Effort;
use crate::verdict::{Demands, Selection, Software};
use crate::visibility::Expected;

/// The hidden option with which the program starts itself.
const CHILD: &str = "--child";

/// The most seconds of `--burn`.
const LONGEST_BURN: u32 = 86_400;
/// The most seconds of `--time-limit`.
const LONGEST_LIMIT: u32 = 3_600;

/// What the program should do.
#[derive(Debug)]
pub(crate) enum Request {
    Help,
    Version,
    /// Test this API in this process, and write the outcome for the parent.
    Work(Api, Effort),
    Test(Arguments),
}

/// The arguments of a test.
#[derive(Debug)]
pub(crate) struct Arguments {
    apis: Vec<Api>,
    pub(crate) output: OutputFormat,
    software: Software,
    expect: Option<Expect>,
    burn: Option<u32>,
    time_limit: u32,
    child: Option<Api>,
}

/// Where the allocated adapters come from.
#[derive(PartialEq, Eq, Debug)]
enum Expect {
    /// The variables of the container.
    Variables,
    /// The value of the option.
    Value(String),
}

/// A command line that cannot be read.
#[derive(Error, Clone, PartialEq, Eq, Debug)]
pub(crate) enum UsageError {
    #[error("unknown API `{name}`")]
    UnknownApi { name: String, near: Option<&'static str> },
    #[error("unknown option `{name}`")]
    UnknownOption { name: String, near: Option<&'static str> },
    #[error("API `{}` exists only on Windows", .0.name())]
    OnlyOnWindows(Api),
    #[error("{option} needs a value")]
    NoValue { option: &'static str },
    #[error("{option} takes no value, found `{value}`")]
    Value { option: &'static str, value: String },
    #[error("{option} has `{value}`, expected {expected}")]
    WrongValue { option: &'static str, value: String, expected: String },
}

impl UsageError {
    /// How to fix the command line.
    pub(crate) fn hint(&self) -> String {
        match self {
            UsageError::UnknownApi { near: Some(near), .. }
            | UsageError::UnknownOption { near: Some(near), .. } => {
                format!("did you mean `{near}`?")
            }
            UsageError::UnknownApi { .. } => {
                format!("the APIs are {}", Api::ALL.map(Api::name).join(", "))
            }
            UsageError::OnlyOnWindows(_) => "name other APIs, or run this on Windows".to_owned(),
            _ => "`gpu-probe --help` lists the options".to_owned(),
        }
    }
}

/// Reads the words after the name of the program.
pub(crate) fn parse(words: impl IntoIterator<Item = OsString>) -> Result<Request, UsageError> {
    let mut arguments = Arguments {
        apis: Vec::new(),
        output: OutputFormat::Text,
        software: Software::Refused,
        expect: None,
        burn: None,
        time_limit: 30,
        child: None,
    };
    let mut words = words.into_iter().map(|word| word.to_string_lossy().into_owned());
    while let Some(word) = words.next() {
        if matches!(word.as_str(), "--help" | "-h") {
            return Ok(Request::Help);
        } else if matches!(word.as_str(), "--version" | "-V") {
            return Ok(Request::Version);
        } else if word.starts_with('-') {
            arguments.read_option(&word, &mut words)?;
        } else {
            let api = api(&word)?;
            if !api.exists_here() {
                return Err(UsageError::OnlyOnWindows(api));
            }
            arguments.apis.push(api);
        }
    }
    Ok(match arguments.child {
        Some(api) => Request::Work(api, arguments.effort()),
        None => Request::Test(arguments),
    })
}

fn api(name: &str) -> Result<Api, UsageError> {
    let near = || nearest(name, Api::ALL.into_iter().map(Api::name));
    Api::ALL
        .into_iter()
        .find(|api| api.name() == name)
        .ok_or_else(|| UsageError::UnknownApi { name: name.to_owned(), near: near() })
}

/// The candidate that looks like a misspelled `name`.
fn nearest(name: &str, candidates: impl Iterator<Item = &'static str>) -> Option<&'static str> {
    let rated = candidates.map(|candidate| (strsim::jaro(name, candidate), candidate));
    let best = rated.max_by(|(a, _), (b, _)| a.total_cmp(b));
    best.filter(|(similarity, _)| *similarity > 0.7).map(|(_, candidate)| candidate)
}

impl Arguments {
    fn read_option(
        &mut self,
        word: &str,
        words: &mut impl Iterator<Item = String>,
    ) -> Result<(), UsageError> {
        let (name, value) = match word.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (word, None),
        };
        let no_value = |option, value: Option<String>| match value {
            Some(value) => Err(UsageError::Value { option, value }),
            None => Ok(()),
        };
        let mut text =
            |option| value.clone().or_else(|| words.next()).ok_or(UsageError::NoValue { option });
        match name {
            "--output" => self.output = output(text("--output")?)?,
            "--allow-software" => {
                no_value("--allow-software", value)?;
                self.software = Software::Allowed;
            }
            // Its value is optional, so it never is the next word.
            "--expect" => self.expect = Some(value.map_or(Expect::Variables, Expect::Value)),
            "--burn" => self.burn = Some(seconds("--burn", text("--burn")?, LONGEST_BURN)?),
            "--time-limit" => {
                self.time_limit = seconds("--time-limit", text("--time-limit")?, LONGEST_LIMIT)?;
            }
            CHILD => self.child = Some(api(&text(CHILD)?)?),
            _ => {
                let near = nearest(name, FLAGS.iter().map(crate::help::Flag::name));
                return Err(UsageError::UnknownOption { name: name.to_owned(), near });
            }
        }
        Ok(())
    }

    /// The APIs to test, each once.
    pub(crate) fn selected(&self) -> Vec<Api> {
        let is_selected = |api: &Api| match self.selection() {
            Selection::Installed => api.exists_here(),
            Selection::Named => self.apis.contains(api),
        };
        Api::ALL.into_iter().filter(is_selected).collect()
    }

    fn selection(&self) -> Selection {
        if self.apis.is_empty() { Selection::Installed } else { Selection::Named }
    }

    /// What has to work.
    pub(crate) fn demands(&self) -> Demands {
        Demands { software: self.software, selection: self.selection() }
    }

    /// The adapters that should be visible, if the user asks for the comparison.
    pub(crate) fn expected(&self) -> Result<Option<Expected>, Failure> {
        let expected = match &self.expect {
            None => return Ok(None),
            Some(Expect::Value(text)) => Expected::parse(text).map_err(Failure::usage),
            Some(Expect::Variables) => {
                let text = |text: OsString| text.to_string_lossy().into_owned();
                let variables = std::env::vars_os().map(|(name, value)| (text(name), text(value)));
                Expected::of_container(&mut variables.collect::<Vec<_>>())
                    .map_err(|error| Failure::usage(anyhow::anyhow!("{error}")))
            }
        };
        expected.map(Some).map_err(|failure| {
            failure.hint(format!(
                "set `environmentHints: true` in the configuration of the device plugin, which \
                 sets {VARIABLE} and a variable for each resource, or use `--expect=1` or \
                 `--expect=LUID,LUID`"
            ))
        })
    }

    fn effort(&self) -> Effort {
        let burn = self.burn.map(|seconds| Duration::from_secs(seconds.into()));
        Effort { burn, software: self.software }
    }

    /// How long the test of one API may take.
    pub(crate) fn time_limit(&self) -> Duration {
        Duration::from_secs(u64::from(self.time_limit) + u64::from(self.burn.unwrap_or(0)))
    }

    /// The arguments of the process that tests `api`.
    pub(crate) fn for_child(&self, api: Api) -> Vec<String> {
        let mut words = vec![CHILD.to_owned(), api.name().to_owned()];
        if self.software == Software::Allowed {
            words.push("--allow-software".to_owned());
        }
        words.extend(self.burn.map(|seconds| format!("--burn={seconds}")));
        words
    }
}

fn output(value: String) -> Result<OutputFormat, UsageError> {
    match value.as_str() {
        "text" => Ok(OutputFormat::Text),
        "json" => Ok(OutputFormat::Json),
        _ => {
            let expected = "text or json".to_owned();
            Err(UsageError::WrongValue { option: "--output", value, expected })
        }
    }
}

fn seconds(option: &'static str, value: String, most: u32) -> Result<u32, UsageError> {
    let seconds = value.parse().ok().filter(|seconds| (1..=most).contains(seconds));
    seconds.ok_or_else(|| {
        let expected = format!("a number of seconds from 1 to {most}");
        UsageError::WrongValue { option, value, expected }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(words: &[&str]) -> Result<Request, UsageError> {
        parse(words.iter().map(OsString::from))
    }

    fn parsed(words: &[&str]) -> Arguments {
        match request(words) {
            Ok(Request::Test(arguments)) => arguments,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_child_gets_what_it_needs() {
        let parent = parsed(&["vulkan", "--allow-software", "--burn", "3", "--output=json"]);
        assert_eq!(parent.time_limit(), Duration::from_secs(33));
        let words = parent.for_child(Api::Vulkan);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let Ok(Request::Work(Api::Vulkan, effort)) = request(&words) else { panic!("{words:?}") };
        assert_eq!(effort.burn, Some(Duration::from_secs(3)));
        assert_eq!(effort.software, Software::Allowed);
    }

    #[test]
    fn named_apis_are_tested_once_in_the_order_of_the_report() {
        let selected = parsed(&["opencl", "vulkan", "opencl"]).selected();
        assert_eq!(selected, [Api::Vulkan, Api::Opencl]);
        assert!(parsed(&[]).selected().contains(&Api::Cuda));
    }

    #[test]
    fn an_expectation_needs_no_value_and_takes_no_api() {
        let arguments = parsed(&["--expect", "vulkan"]);
        let found = (arguments.expect, arguments.apis);
        assert_eq!(found, (Some(Expect::Variables), vec![Api::Vulkan]));
        assert_eq!(parsed(&["--expect=2"]).expect, Some(Expect::Value("2".to_owned())));
    }

    #[test]
    fn wrong_words_are_named_with_a_fix() {
        for (words, message, hint) in [
            (&["cud"][..], "unknown API `cud`", "did you mean `cuda`?"),
            (&["--brun=3"], "unknown option `--brun`", "did you mean `--burn`?"),
            (&["zz"], "unknown API `zz`", "the APIs are d3dkmt, "),
            (&["--burn"], "--burn needs a value", "`gpu-probe --help` lists"),
            (
                &["--burn", "0"],
                "--burn has `0`, expected a number of seconds from 1 to 86400",
                "`gpu-probe --help` lists",
            ),
            (&["--output", "xml"], "--output has `xml`, expected text or json", "`gpu-probe --h"),
            (
                &["--allow-software=no"],
                "--allow-software takes no value, found `no`",
                "`gpu-probe --help` lists",
            ),
        ] {
            let error = request(words).unwrap_err();
            assert_eq!(error.to_string(), message);
            assert!(error.hint().starts_with(hint), "{}", error.hint());
        }
    }

    #[test]
    fn every_option_of_the_help_is_known() {
        for name in FLAGS.iter().map(crate::help::Flag::name) {
            let error = request(&[name, "1"]).err();
            let is_unknown = matches!(error, Some(UsageError::UnknownOption { .. }));
            assert!(!is_unknown, "{name}");
        }
    }

    #[test]
    fn the_arguments_of_the_examples_are_accepted() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/gpu-probe");
        let mut tested = 0;
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let text = std::fs::read_to_string(&path).unwrap();
            let arguments = text.lines().find_map(|line| line.trim().strip_prefix("args: ["));
            let Some(arguments) = arguments.and_then(|list| list.strip_suffix(']')) else {
                continue;
            };
            let error = parse(arguments.split(", ").map(OsString::from)).err();
            let is_known = matches!(error, None | Some(UsageError::OnlyOnWindows(_)));
            assert!(is_known, "{}: {error:?}", path.display());
            tested += 1;
        }
        assert!(tested > 3, "{tested} examples name APIs");
    }
}
