//! The command line.

use std::time::Duration;

use clap::Parser;
use cli::{Completions, Failure, OutputFormat};

use crate::api::Api;
use crate::measure::Effort;
use crate::verdict::{Demands, Selection, Software};
use crate::visibility::{Expected, VARIABLE};

const EXAMPLES: &str = "\
Examples:
  Test every API that is installed:
    gpu-probe
  Demand that CUDA and Vulkan work, for a script:
    gpu-probe cuda vulkan --output json
  Fail if other GPUs are visible than the allocated ones:
    gpu-probe --expect
  Keep the GPU busy for a minute:
    gpu-probe d3d12 --burn 60

Exit status: 0 if everything that is installed or named works, 1 if something does not, 2 for
wrong usage.";

/// Use every GPU API for a moment, verify the results and report what works
#[derive(Parser, Debug)]
#[command(name = "gpu-probe", version, after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// APIs that must work [default: those that are installed]
    #[arg(value_enum, value_name = "API")]
    apis: Vec<Api>,
    /// Output format
    #[arg(long, value_enum, default_value_t = OutputFormat::Text)]
    pub(crate) output: OutputFormat,
    /// Accept devices that the CPU emulates
    #[arg(long)]
    allow_software: bool,
    /// Compare the visible adapters with the allocated ones: a number, or LUIDs separated by
    /// commas; without value those of the variable `DIRECTX_VISIBLE_DEVICES`
    #[arg(
        long, value_name = "ALLOCATED", num_args = 0..=1, require_equals = true,
        default_missing_value = VARIABLE
    )]
    expect: Option<String>,
    /// Keep the devices of each API busy for this time, and verify every result
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..=86_400))]
    burn: Option<u32>,
    /// Time limit for each API, in addition to `--burn`
    #[arg(
        long, value_name = "SECONDS", default_value_t = 30,
        value_parser = clap::value_parser!(u32).range(1..=3_600)
    )]
    time_limit: u32,
    #[command(flatten)]
    pub(crate) completions: Completions,
    /// Test this API in this process, and write the outcome for the parent
    #[arg(long, value_enum, hide = true)]
    pub(crate) child: Option<Api>,
}

impl Arguments {
    /// The APIs to test, each once.
    pub(crate) fn selected(&self) -> Result<Vec<Api>, Failure> {
        if let Some(api) = self.apis.iter().find(|api| !api.exists_here()) {
            let error = anyhow::anyhow!("API `{}` exists only on Windows", api.name());
            return Err(Failure::usage(error).hint("name other APIs, or run this on Windows"));
        }
        let is_selected = |api: &Api| match self.selection() {
            Selection::Installed => api.exists_here(),
            Selection::Named => self.apis.contains(api),
        };
        Ok(Api::ALL.into_iter().filter(is_selected).collect())
    }

    fn selection(&self) -> Selection {
        if self.apis.is_empty() { Selection::Installed } else { Selection::Named }
    }

    fn software(&self) -> Software {
        if self.allow_software { Software::Allowed } else { Software::Refused }
    }

    /// What has to work.
    pub(crate) fn demands(&self) -> Demands {
        Demands { software: self.software(), selection: self.selection() }
    }

    /// The adapters that should be visible, if the user asks for the comparison.
    pub(crate) fn expected(&self) -> Result<Option<Expected>, Failure> {
        let Some(value) = &self.expect else { return Ok(None) };
        let (text, origin) = if value == VARIABLE {
            (std::env::var(VARIABLE).unwrap_or_default(), VARIABLE)
        } else {
            (value.clone(), "--expect")
        };
        Expected::parse(&text, origin).map(Some).map_err(|error| {
            Failure::usage(error).hint(format!(
                "set `environmentHints: true` in the configuration of the device plugin, which \
                 sets {VARIABLE}, or use `--expect=1` or `--expect=LUID,LUID`"
            ))
        })
    }

    /// What the child does.
    pub(crate) fn work(&self) -> Effort {
        let burn = self.burn.map(|seconds| Duration::from_secs(seconds.into()));
        Effort { burn, software: self.software() }
    }

    /// How long the test of one API may take.
    pub(crate) fn time_limit(&self) -> Duration {
        Duration::from_secs(u64::from(self.time_limit) + u64::from(self.burn.unwrap_or(0)))
    }

    /// The arguments of the process that tests `api`.
    pub(crate) fn for_child(&self, api: Api) -> Vec<String> {
        let mut words = vec!["--child".to_owned(), api.name().to_owned()];
        if self.allow_software {
            words.push("--allow-software".to_owned());
        }
        words.extend(self.burn.map(|seconds| format!("--burn={seconds}")));
        words
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(words: &[&str]) -> Arguments {
        Arguments::try_parse_from([&["gpu-probe"], words].concat()).unwrap()
    }

    #[test]
    fn the_child_gets_what_it_needs() {
        let parent = parsed(&["vulkan", "--allow-software", "--burn", "3", "--output", "json"]);
        let words = parent.for_child(Api::Vulkan);
        let child = parsed(&words.iter().map(String::as_str).collect::<Vec<_>>());
        assert_eq!(child.child, Some(Api::Vulkan));
        assert_eq!(child.work().burn, Some(Duration::from_secs(3)));
        assert_eq!(child.work().software, Software::Allowed);
        assert_eq!(parent.time_limit(), Duration::from_secs(33));
    }

    #[test]
    fn named_apis_are_tested_once_in_the_order_of_the_report() {
        let selected = parsed(&["opencl", "vulkan", "opencl"]).selected().unwrap();
        assert_eq!(selected, [Api::Vulkan, Api::Opencl]);
        assert!(parsed(&[]).selected().unwrap().contains(&Api::Cuda));
    }

    #[test]
    fn an_expectation_needs_no_value_and_takes_no_api() {
        let arguments = parsed(&["--expect", "vulkan"]);
        assert_eq!(
            (arguments.expect.as_deref(), arguments.apis),
            (Some(VARIABLE), vec![Api::Vulkan])
        );
        assert_eq!(parsed(&["--expect=2"]).expect.as_deref(), Some("2"));
    }
}
