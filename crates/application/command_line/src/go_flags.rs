//! Command lines in the style of Go's flag packages.
//!
//! Programs that replace a Go program keep accepting its command lines: `--flag=false`
//! (packages `flag` and `pflag`), and one dash before a long option (package `flag`).

use std::ffi::OsString;

use clap::{Arg, ArgAction, Command};

/// Lets every flag of `command` also take a value: `--flag=true` or `--flag=false`.
#[must_use]
pub fn with_boolean_values(command: Command) -> Command {
    command.mut_args(|argument| match argument.get_action() {
        ArgAction::SetTrue => boolean(argument),
        _ => argument,
    })
}

/// Adds the second dash to each long option of `command` that `arguments` spell with
/// one (`-verbose`). Everything after `--` stays as it is.
pub fn with_double_dashes(
    command: &Command,
    arguments: impl IntoIterator<Item = OsString>,
) -> Vec<OsString> {
    let mut command = command.clone();
    // Building the command adds `--help` and `--version` to its arguments.
    command.build();
    let mut options_end = false;
    arguments
        .into_iter()
        .map(|argument| {
            options_end |= argument == "--";
            match argument.to_str() {
                Some(text) if !options_end && is_single_dash_option(&command, text) => {
                    format!("-{text}").into()
                }
                _ => argument,
            }
        })
        .collect()
}

fn boolean(argument: Arg) -> Arg {
    argument
        .action(ArgAction::Set)
        .num_args(0..=1)
        .require_equals(true)
        .value_name("BOOL")
        .value_parser(parse_bool)
        .default_missing_value("true")
        .default_value("false")
        .hide_default_value(true)
}

/// The spellings that Go's `strconv.ParseBool` accepts.
fn parse_bool(text: &str) -> Result<bool, &'static str> {
    match text {
        "1" | "t" | "T" | "true" | "True" | "TRUE" => Ok(true),
        "0" | "f" | "F" | "false" | "False" | "FALSE" => Ok(false),
        _ => Err("expected true or false"),
    }
}

fn is_single_dash_option(command: &Command, argument: &str) -> bool {
    let Some(option) = argument.strip_prefix('-') else { return false };
    let name = option.split('=').next().unwrap_or(option);
    // One letter is a short option; clap reads it.
    name.len() > 1 && command.get_arguments().any(|known| known.get_long() == Some(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command() -> Command {
        let flag = Arg::new("verbose").long("verbose").short('v').action(ArgAction::SetTrue);
        let filter = Arg::new("filter").long("filter").num_args(1);
        let rest = Arg::new("rest").num_args(0..);
        with_boolean_values(Command::new("program").args([flag, filter, rest]))
    }

    #[test]
    fn flags_accept_the_boolean_values_of_go() {
        for (argument, expected) in [
            ("--verbose", Some(true)),
            ("-v", Some(true)),
            ("--verbose=true", Some(true)),
            ("--verbose=1", Some(true)),
            ("--verbose=False", Some(false)),
            ("--verbose=f", Some(false)),
            ("--verbose=yes", None),
            ("--verbose=", None),
        ] {
            let matches = command().try_get_matches_from(["program", argument]).ok();
            let value = matches.map(|matches| matches.get_flag("verbose"));
            assert_eq!(value, expected, "{argument}");
        }
        let absent = command().try_get_matches_from(["program"]).unwrap();
        assert!(!absent.get_flag("verbose"));
    }

    #[test]
    fn a_flag_takes_no_value_from_the_next_argument() {
        let matches = command().try_get_matches_from(["program", "--verbose", "false"]).unwrap();
        assert!(matches.get_flag("verbose"));
        assert_eq!(matches.get_one::<String>("rest").map(String::as_str), Some("false"));
    }

    #[test]
    fn long_options_with_one_dash_get_the_second() {
        let given = [
            "-verbose",
            "-verbose=false",
            "-filter",
            "-",
            "-v",
            "-help",
            "-unknown",
            "--filter",
            "verbose",
            "--",
            "-verbose",
        ];
        let expected = [
            "--verbose",
            "--verbose=false",
            "--filter",
            "-",
            "-v",
            "--help",
            "-unknown",
            "--filter",
            "verbose",
            "--",
            "-verbose",
        ];
        let rewritten = with_double_dashes(&command(), given.map(OsString::from));
        assert_eq!(rewritten, expected.map(OsString::from));
    }
}
