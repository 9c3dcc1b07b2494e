//! What to write instead of a word that a program does not expect.
//!
//! What can be known from the definitions of the options, comes from them.

use std::ffi::OsString;
use std::path::Path;

use clap::error::{ContextKind, ContextValue, Error, ErrorKind};
use clap::{Arg, ArgAction, Command};

/// Words for the option of the same meaning.
const WORDS: [(&str, &str); 6] = [
    ("?", "help"),
    ("h", "help"),
    ("man", "help"),
    ("usage", "help"),
    ("about", "version"),
    ("ver", "version"),
];

/// What Windows itself does with a service, and what its commands are.
const SERVICE_COMMANDS: [(&str, &str); 9] = [
    ("start", "Start-Service"),
    ("stop", "Stop-Service"),
    ("restart", "Restart-Service"),
    ("reload", "Restart-Service"),
    ("status", "Get-Service"),
    ("query", "Get-Service"),
    ("show", "Get-Service"),
    ("enable", "Set-Service -StartupType Automatic"),
    ("disable", "Set-Service -StartupType Disabled"),
];

/// Adds what to write instead to an error about `arguments`, if it is about a word that `command`
/// does not expect there. It replaces similar names.
pub(crate) fn advised(mut error: Error, command: &Command, arguments: &[OsString]) -> Error {
    let Some(advice) = advice(&error, command, arguments) else { return error };
    let similar = [ContextKind::SuggestedArg, ContextKind::SuggestedSubcommand];
    for kind in similar {
        error.remove(kind);
    }
    error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![advice.into()]));
    error
}

fn advice(error: &Error, command: &Command, arguments: &[OsString]) -> Option<String> {
    let kind = match error.kind() {
        ErrorKind::UnknownArgument => ContextKind::InvalidArg,
        ErrorKind::InvalidSubcommand => ContextKind::InvalidSubcommand,
        _ => return None,
    };
    let Some(ContextValue::String(unexpected)) = error.get(kind) else { return None };
    let arguments: Vec<&str> = arguments.iter().filter_map(|word| word.to_str()).skip(1).collect();
    // clap names the option of `--option=value` and the first letter of `-option`.
    let at = arguments.iter().position(|word| word == unexpected);
    let at = at.or_else(|| arguments.iter().position(|word| word.starts_with(unexpected)))?;
    let before = &arguments[..at];
    let word = arguments[at];
    let mut command = command.clone();
    // Building the commands adds `--help` and `--version` to their options.
    command.build();
    let commands = commands(&command, before);
    let name = word.trim_start_matches(['-', '/']).split('=').next()?;
    let last = *commands.last()?;
    option_of_next(last, &arguments[at + 1..], name)
        .or_else(|| named_option(&commands, name))
        .or_else(|| service_command(&commands, name))
        .or_else(|| if word.starts_with('-') { key_of_configuration(last, name) } else { None })
        .or_else(|| if word.starts_with('-') { None } else { repeated_option(last, before, word) })
        .or_else(|| if word.starts_with('-') { None } else { option_with_file(last, word) })
}

/// The command that these words select, after those that it belongs to.
fn commands<'c>(command: &'c Command, words: &[&str]) -> Vec<&'c Command> {
    let mut commands = vec![command];
    let mut last = command;
    for word in words {
        if let Some(next) = last.find_subcommand(word) {
            last = next;
            commands.push(last);
        }
    }
    commands
}

/// An option that stands before the command that has it.
fn option_of_next(last: &Command, after: &[&str], name: &str) -> Option<String> {
    let next = after.iter().find_map(|word| last.find_subcommand(word))?;
    let has_option = options(next).any(|option| option.get_long() == Some(name));
    has_option.then(|| format!("write `--{name}` after `{}`", next.get_name()))
}

/// An option that is written without its dashes, or that another command has.
fn named_option(commands: &[&Command], word: &str) -> Option<String> {
    let word = word.to_lowercase();
    let name = WORDS.iter().find(|(other, _)| *other == word).map_or(&*word, |(_, name)| name);
    let has_option = |command: &&&Command| options(command).any(|o| o.get_long() == Some(name));
    let command = commands.iter().rev().find(has_option)?;
    let program = command.get_bin_name().unwrap_or(command.get_name());
    Some(format!("write `{program} --{name}`"))
}

/// The command of Windows, or of this program, for what `service` does not do itself.
fn service_command(commands: &[&Command], word: &str) -> Option<String> {
    let [program, rest @ ..] = commands else { return None };
    let service = program.find_subcommand("service")?;
    if rest.iter().any(|command| command.get_name() != service.get_name()) {
        return None;
    }
    let name = program.get_name();
    match word {
        "add" | "create" => return Some(format!("write `{name} service install`")),
        "delete" | "remove" => return Some(format!("write `{name} service uninstall`")),
        _ => {}
    }
    let (_, command) = SERVICE_COMMANDS.iter().find(|(known, _)| *known == word)?;
    // PowerShell reads the name before or after other parameters.
    let (cmdlet, parameters) = command.split_once(' ').unwrap_or((command, ""));
    let command = format!("{cmdlet} {name} {parameters}");
    Some(format!("Windows does this with its services: write `{}` in PowerShell", command.trim()))
}

/// A key of the configuration file that is written as an option.
fn key_of_configuration(command: &Command, name: &str) -> Option<String> {
    let place = config::key_advice(name)?;
    let has_file = options(command).any(|option| option.get_long() == Some("config"));
    let file = if has_file {
        "name the file with `--config FILE`"
    } else {
        "the plugin reads it with `directx-device-plugin serve --config FILE`"
    };
    Some(format!("this is a key of the configuration file, not an option: {place}; {file}"))
}

/// The option that takes one value and before which the word stands as a second one.
fn repeated_option(command: &Command, before: &[&str], word: &str) -> Option<String> {
    let last = before.iter().rev().find(|earlier| earlier.starts_with('-'))?;
    let long = last.strip_prefix("--")?.split('=').next();
    let is_repeatable = |option: &&Arg| {
        option.get_long() == long && matches!(option.get_action(), ArgAction::Append)
    };
    let option = options(command).find(is_repeatable)?;
    let commas = option.get_value_delimiter().map_or("", |_| " or separate them with commas");
    let name = option.get_long()?;
    Some(format!(
        "to give several values, repeat the option{commas}: write `--{name} {word}`; put a value with \
         spaces into quotes"
    ))
}

/// The options whose value is a file or a folder, for a word that is the path of one.
fn option_with_file(command: &Command, word: &str) -> Option<String> {
    let path = Path::new(word);
    let is_folder = path.is_dir();
    if !is_folder && !path.exists() && path.extension().is_none() && !word.contains(['/', '\\']) {
        return None;
    }
    let wanted = if is_folder { "DIR" } else { "FILE" };
    let takes_path = |option: &&Arg| {
        option.get_value_names().is_some_and(|names| names.iter().any(|name| name == wanted))
    };
    let mut names: Vec<&str> =
        options(command).filter(takes_path).filter_map(Arg::get_long).collect();
    // Most files that users have are inventories.
    names.sort_by_key(|name| *name != "inventory");
    let options: Vec<String> = names.iter().map(|name| format!("`--{name} {word}`")).collect();
    (!options.is_empty()).then(|| format!("write {}", options.join(" or ")))
}

fn options(command: &Command) -> impl Iterator<Item = &Arg> {
    command.get_arguments().filter(|option| !option.is_hide_set())
}
