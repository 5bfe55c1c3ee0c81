//! The page of commands and their options, from the parser of the command line.

use std::iter::once;

use clap::{Arg, Command};

use super::markdown::{SharedRows, code, paragraph, prose, table};
use crate::cli::help;

const INTRODUCTION: &str = "\
# Command line

Data goes to stdout; diagnostics and progress go to stderr. [Configuration](configuration.md) describes what all commands
share: how flags, environment variables and the configuration file override each other, exit codes, streams and formats.
Every command has `--help`, or `-h` for a summary, and `--version`, or `-V`.";

const SHARED: &str = "\
## Shared options

At least three commands have each of these options. The sections of the commands list only their names.";

/// The options that every command has.
const EVERYWHERE: [&str; 2] = ["help", "version"];

pub(super) fn page(program: Command) -> String {
    let mut root = help::with_help(program).disable_help_subcommand(true);
    root.build();
    let groups: Vec<(&str, Vec<&Command>)> =
        help::groups().map(|(group, names)| (group, of_group(&root, &names))).collect();
    let shared = SharedRows::new(
        &["Option", "Variable", "Default", "Meaning"],
        "[Shared options](#shared-options)",
        groups.iter().flat_map(|(_, commands)| commands.iter().flat_map(|command| rows(command))),
    );
    let group = |(group, commands): &(&str, Vec<&Command>)| {
        let contents: Vec<Vec<String>> = commands.iter().map(|command| entry(command)).collect();
        let sections: String = commands.iter().map(|command| section(command, &shared)).collect();
        format!("## {group}\n\n{}{sections}", table(&["Command", "Description"], &contents))
    };
    let groups: String = groups.iter().map(group).collect();
    format!("{INTRODUCTION}\n\n{groups}{SHARED}\n\n{}", shared.table())
}

/// The commands of a group, each before its own subcommands.
fn of_group<'c>(root: &'c Command, names: &[&str]) -> Vec<&'c Command> {
    let commands = names.iter().filter_map(|name| root.find_subcommand(name));
    commands.flat_map(|command| once(command).chain(below(command))).collect()
}

fn below(command: &Command) -> Vec<&Command> {
    command.get_subcommands().flat_map(|nested| once(nested).chain(below(nested))).collect()
}

/// The name of a command after that of the program, such as `keys create`.
fn name(command: &Command) -> &str {
    let whole = command.get_bin_name().unwrap_or_else(|| command.get_name());
    whole.strip_prefix("edgewright ").unwrap_or(whole)
}

/// The line of a command in the table of contents.
fn entry(command: &Command) -> Vec<String> {
    let name = name(command);
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    vec![format!("[`{name}`](#{})", name.replace(' ', "-")), prose(&about)]
}

fn section(command: &Command, shared: &SharedRows) -> String {
    let about = command.get_long_about().or_else(|| command.get_about()).map(ToString::to_string).unwrap_or_default();
    let aliases: String = command.get_visible_aliases().map(|alias| format!(" Another name is `{alias}`.")).collect();
    let usage = command.clone().render_usage().to_string();
    let usage = usage.strip_prefix("Usage: ").unwrap_or(&usage);
    let usage: Vec<&str> = usage.lines().map(str::trim).collect();
    let more = command.get_after_long_help().or_else(|| command.get_after_help());
    let more = more.map(|more| format!("```text\n{}\n```", more.to_string().trim()));
    format!(
        "### `{}`\n\n{}```text\n{}\n```\n\n{}{}",
        name(command),
        paragraph(&(sentence(&prose(&about)) + &aliases)),
        usage.join("\n"),
        shared.section(rows(command)),
        paragraph(&more.unwrap_or_default()),
    )
}

fn rows(command: &Command) -> Vec<Vec<String>> {
    let is_shown = |argument: &&Arg| !argument.is_hide_set() && !EVERYWHERE.contains(&argument.get_id().as_str());
    command.get_arguments().filter(is_shown).map(row).collect()
}

fn row(argument: &Arg) -> Vec<String> {
    let short = argument.get_short().filter(|_| argument.get_long().is_some());
    let short = short.map(|short| format!("-{short}, ")).unwrap_or_default();
    let variable = argument.get_env().map(|name| code(&name.to_string_lossy())).unwrap_or_default();
    let help = argument.get_long_help().or_else(|| argument.get_help()).map(ToString::to_string).unwrap_or_default();
    let meaning = format!("{} {}", sentence(&prose(&help)), values(argument));
    vec![code(&format!("{short}{argument}")), variable, default(argument), meaning.trim().to_owned()]
}

/// The default of an option with a value.
fn default(argument: &Arg) -> String {
    let is_shown = argument.get_action().takes_values() && !argument.is_hide_default_value_set();
    let values = argument.get_default_values().iter().filter(|value| is_shown && !value.is_empty());
    let values: Vec<String> = values.map(|value| code(&value.to_string_lossy())).collect();
    values.join(", ")
}

/// The values that an option accepts, if it is one of a few.
fn values(argument: &Arg) -> String {
    let values = argument.get_possible_values();
    let shown = values.iter().filter(|value| !argument.is_hide_possible_values_set() && !value.is_hide_set());
    let names: Vec<String> = shown.map(|value| code(value.get_name())).collect();
    if names.is_empty() { String::new() } else { format!("Values: {}.", names.join(", ")) }
}

/// Ends a text with a full stop, which clap removes.
fn sentence(text: &str) -> String {
    let text = text.trim();
    let is_open = text.ends_with(|c: char| c.is_alphanumeric() || matches!(c, ')' | '`' | '"'));
    if is_open { format!("{text}.") } else { text.to_owned() }
}
