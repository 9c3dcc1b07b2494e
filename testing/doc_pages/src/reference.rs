//! Generates a program's reference in Markdown.

use std::fmt::Write as _;

use clap::{Arg, Command};

/// The reference of `command` and its subcommands: usage, arguments, examples.
#[must_use]
pub fn reference(command: &Command) -> String {
    let mut command = command.clone();
    command.build();
    let mut text = String::new();
    section(&mut text, &command, 1);
    text
}

// Writing to a String cannot fail, here and below.
fn section(text: &mut String, command: &Command, level: usize) {
    let name = command.get_bin_name().unwrap_or(command.get_name());
    let _ = writeln!(text, "{} {name}\n", "#".repeat(level));
    if let Some(about) = command.get_long_about().or(command.get_about()) {
        let _ = writeln!(text, "{about}\n");
    }
    let usage = command.clone().render_usage().to_string();
    let usage = usage.strip_prefix("Usage: ").unwrap_or(&usage);
    let _ = writeln!(text, "```text\n{usage}\n```\n");
    arguments(text, command, level);
    if let Some(more) = command.get_after_long_help().or(command.get_after_help()) {
        let _ = writeln!(text, "```text\n{more}\n```\n");
    }
    let shown = command.get_subcommands().filter(|c| !c.is_hide_set() && c.get_name() != "help");
    for subcommand in shown {
        section(text, subcommand, level + 1);
    }
    if level == 1 {
        text.truncate(text.trim_end().len());
        text.push('\n');
    }
}

/// The table of the arguments. Those that every command has are only in the table of the program.
fn arguments(text: &mut String, command: &Command, level: usize) {
    let shown: Vec<&Arg> = command.get_arguments().filter(|a| !a.is_hide_set()).collect();
    let listed = shown.iter().filter(|a| level == 1 || !is_shared(a));
    let rows: Vec<String> = listed.map(|a| row(a)).collect();
    if !rows.is_empty() {
        let _ = writeln!(text, "| Argument | Meaning |\n|---|---|\n{}\n", rows.join("\n"));
    }
    if level == 1 && command.has_subcommands() {
        let shared = shown.iter().filter(|a| is_shared(a));
        let shared: Vec<String> = shared.map(|a| format!("`{a}`")).collect();
        let _ = writeln!(text, "Every command also accepts {}.\n", shared.join(", "));
    }
}

/// Whether every command of the program has the argument.
fn is_shared(argument: &Arg) -> bool {
    argument.is_global_set() || argument.get_id() == "help"
}

fn row(argument: &Arg) -> String {
    let help = argument.get_long_help().or(argument.get_help());
    let mut meaning = help.map(ToString::to_string).unwrap_or_default().replace('\n', " ");
    if !argument.is_hide_possible_values_set() {
        let values = argument.get_possible_values();
        let named: Vec<String> = values.iter().map(|v| format!("`{}`", v.get_name())).collect();
        if !named.is_empty() && argument.get_action().takes_values() {
            let _ = write!(meaning, " ({})", named.join(", "));
        }
    }
    let defaults: Vec<_> = argument.get_default_values().iter().map(|v| v.display()).collect();
    let shown = !argument.is_hide_default_value_set() && argument.get_action().takes_values();
    if !defaults.is_empty() && shown {
        let list: Vec<String> = defaults.iter().map(|v| format!("`{v}`")).collect();
        let _ = write!(meaning, "; default {}", list.join(", "));
    }
    let short = argument.get_short().map(|c| format!("`-{c}`, ")).unwrap_or_default();
    let name = argument.to_string().replace('|', "\\|");
    format!("| {short}`{name}` | {} |", meaning.replace('|', "\\|"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::builder::PossibleValuesParser;

    #[test]
    fn arguments_are_rows_with_values_and_defaults() {
        let command = Command::new("prog").about("does work").subcommand(
            Command::new("sub").about("does part").after_help("Examples:\n  prog sub").arg(
                Arg::new("form")
                    .long("form")
                    .short('f')
                    .help("a|b")
                    .value_name("FORM")
                    .value_parser(PossibleValuesParser::new(["text", "json"]))
                    .default_value("text"),
            ),
        );
        let text = reference(&command);
        assert!(
            text.starts_with("# prog\n\ndoes work\n\n```text\nprog [COMMAND]\n```\n"),
            "{text}"
        );
        assert!(text.contains("## prog sub\n\ndoes part\n"), "{text}");
        assert!(
            text.contains("| `-f`, `--form <FORM>` | a\\|b (`text`, `json`); default `text` |"),
            "{text}"
        );
        assert!(text.ends_with("Examples:\n  prog sub\n```\n"), "{text}");
        assert_eq!(text.matches("| `-h`, `--help` |").count(), 1, "{text}");
        assert!(text.contains("\n\nEvery command also accepts `--help`.\n"), "{text}");
    }
}
