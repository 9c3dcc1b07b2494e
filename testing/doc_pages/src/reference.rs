//! Generates a program's reference in Markdown.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use clap::{Arg, Command};

/// What every program has, and pages of programs say once.
const OF_EVERY_PROGRAM: [&str; 3] = ["help", "version", "completions"];

/// The reference of `command` and its subcommands below a heading of `level`: usage, arguments, and
/// what the help says besides its examples.
#[must_use]
pub fn reference(command: &Command, level: usize) -> String {
    let mut command = command.clone();
    command.build();
    let mut text = String::new();
    section(&mut text, &command, level, &mut BTreeSet::new());
    text.truncate(text.trim_end().len());
    text + "\n"
}

// Writing to a String cannot fail, here and below.
fn section(text: &mut String, command: &Command, level: usize, written: &mut BTreeSet<String>) {
    let name = command.get_bin_name().unwrap_or(command.get_name());
    let _ = writeln!(text, "{} {name}\n", "#".repeat(level));
    if let Some(about) = command.get_long_about().or(command.get_about()) {
        let _ = writeln!(text, "{about}\n");
    }
    let usage = command.clone().render_usage().to_string();
    let usage = usage.strip_prefix("Usage: ").unwrap_or(&usage);
    if usage != format!("{name} [OPTIONS]") {
        let _ = writeln!(text, "```text\n{usage}\n```\n");
    }
    arguments(text, command, written);
    if let Some(more) = command.get_after_long_help().or(command.get_after_help()) {
        text.push_str(&without_examples(&more.to_string()));
    }
    let shown = command.get_subcommands().filter(|c| !c.is_hide_set() && c.get_name() != "help");
    for subcommand in shown {
        section(text, subcommand, level + 1, written);
    }
}

/// The table of the arguments. Those that an earlier command of the page has are only named.
fn arguments(text: &mut String, command: &Command, written: &mut BTreeSet<String>) {
    let is_shown = |a: &&Arg| !a.is_hide_set() && !OF_EVERY_PROGRAM.contains(&a.get_id().as_str());
    let is_new = |a: &&Arg| !a.is_global_set() || !written.contains(&row(a));
    let shown = command.get_arguments().filter(is_shown).filter(is_new);
    let (earlier, new): (Vec<&Arg>, Vec<&Arg>) = shown.partition(|a| written.contains(&row(a)));
    let rows: Vec<String> = new.into_iter().map(row).collect();
    if !rows.is_empty() {
        let _ = writeln!(text, "| Argument | Meaning |\n|---|---|\n{}\n", rows.join("\n"));
    }
    if !earlier.is_empty() {
        let names: Vec<String> = earlier.into_iter().map(|a| format!("`{a}`")).collect();
        let _ = writeln!(text, "As above: {}.\n", names.join(", "));
    }
    written.extend(rows);
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

/// The paragraphs of a help text except for its examples, which the pages of the tasks have.
fn without_examples(more: &str) -> String {
    let paragraphs = more.split("\n\n").filter(|paragraph| !paragraph.starts_with("Examples:"));
    paragraphs.map(|paragraph| as_markdown(paragraph.trim_end())).collect()
}

/// Paragraphs with indented lines are blocks.
fn as_markdown(paragraph: &str) -> String {
    if paragraph.contains("\n  ") {
        format!("```text\n{paragraph}\n```\n\n")
    } else {
        format!("{paragraph}\n\n")
    }
}
