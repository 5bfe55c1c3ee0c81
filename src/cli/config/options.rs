//! The options that a configuration file can set: those that have an environment variable, too (D32).

use crate::cli::prelude::*;
use clap::{Arg, ArgAction, Command};

/// Whether an option takes the values of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ValueCheck {
    /// The option has them, or keeps its default.
    Set,
    OneValue,
    /// No command has the option.
    Unknown,
}

/// Sets the default of an option in every command that has it; none leaves the default as it is.
pub(super) fn set_default(command: Command, name: &str, values: Option<&[String]>) -> (Command, ValueCheck) {
    let mut checked = ValueCheck::Unknown;
    let command = set(command, name, values, &mut checked);
    (command, checked)
}

pub(super) fn names(command: &Command) -> BTreeSet<&str> {
    let own = command.get_arguments().filter(|argument| argument.get_env().is_some()).filter_map(Arg::get_long);
    own.chain(command.get_subcommands().flat_map(names)).collect()
}

fn set(command: Command, name: &str, values: Option<&[String]>, checked: &mut ValueCheck) -> Command {
    let command = command.mut_args(|argument| {
        if argument.get_long() != Some(name) || argument.get_env().is_none() {
            return argument;
        }
        let is_valid = values.is_none_or(|values| values.len() == 1 || takes_several(&argument));
        *checked = if is_valid { ValueCheck::Set } else { ValueCheck::OneValue };
        match values.filter(|_| is_valid) {
            // The address of a store can have a password.
            Some(values) => argument.default_values(values).hide_default_value(name == "store"),
            None => argument,
        }
    });
    command.mut_subcommands(|subcommand| set(subcommand, name, values, checked))
}

fn takes_several(argument: &Arg) -> bool {
    let most = argument.get_num_args().map_or(1, |number| number.max_values());
    matches!(argument.get_action(), ArgAction::Append) || most > 1
}

/// A scalar as it would be written for an option: a text without quotes.
pub(crate) fn scalar_text(value: Value) -> String {
    match value {
        Value::String(text) => text,
        other => other.to_string(),
    }
}
