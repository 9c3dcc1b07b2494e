//! The help and the reference page, from one table of options.

use std::fmt::Write as _;

use crate::api::Api;

/// Every option with its value, and its meaning, in the order of the help.
const FLAGS: [(&str, &str); 6] = [
    ("--output <text|json>", "Output format; default `text`"),
    ("--allow-software", "Accept devices that the CPU emulates"),
    (
        "--expect[=<ALLOCATED>]",
        "Compare the visible adapters with the allocated ones: a number, or LUIDs separated \
         by commas; without a value, those in the variables `DIRECTX_VISIBLE_DEVICES_*` and \
         `DIRECTX_VISIBLE_DEVICES`",
    ),
    ("--time-limit <SECONDS>", "Time limit for each API, at most an hour; default 30"),
    ("--help", "Print help"),
    ("--version", "Print version"),
];

/// The names of the options, such as `--expect`.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    FLAGS.into_iter().map(|(usage, _)| usage.split([' ', '[']).next().unwrap_or(usage))
}

const ABOUT: &str = "Test every GPU API, verify the results and report what works";
const USAGE: &str = "gpu-probe [OPTIONS] [API]...";
const APIS: &str =
    "APIs that must work, also separated by commas; without names, those that are installed";
const EXAMPLES: &str = "\
Examples:
  Test every API that is installed:
    gpu-probe
  Require that CUDA and Vulkan work, for a script:
    gpu-probe cuda vulkan --output json
  Fail if GPUs other than the allocated ones are visible:
    gpu-probe --expect

Exit status: 0 if everything that is installed or named works, 1 if something does not, 2 for
wrong usage.
";

// Writing to a String cannot fail, here and below.

/// The text that `--help` prints.
pub(crate) fn text() -> String {
    let mut text = format!("{ABOUT}\n\nUsage: {USAGE}\n\nAPIs ({}):\n", APIS.to_lowercase());
    for api in Api::all() {
        let _ = writeln!(text, "  {:<8} {}", api.name(), api.about());
    }
    text.push_str("\nOptions:\n");
    for (usage, about) in FLAGS {
        let _ = writeln!(text, "  {usage}\n      {about}");
    }
    text + "\n" + EXAMPLES
}

/// The reference of the program, in the form of the other programs'.
#[must_use]
pub fn reference() -> String {
    let names: Vec<String> = Api::all().map(|api| format!("`{}`", api.name())).collect();
    let mut text = format!(
        "## gpu-probe\n\n{ABOUT}\n\n```text\n{USAGE}\n```\n\n| Argument | Meaning |\n|---|---|\n\
         | `[API]...` | {APIS} ({}) |\n",
        names.join(", ")
    );
    for (usage, about) in FLAGS {
        let _ = writeln!(text, "| `{}` | {about} |", usage.replace('|', "\\|"));
    }
    text
}
