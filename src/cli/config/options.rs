//! The options that a configuration file can set: those that have an environment variable, too (D32).

use crate::cli::prelude::*;
use clap::{Arg, Command};

/// Sets the default of an option in every command that has it; none leaves the default as it is. Returns whether a command
/// has the option.
pub(super) fn set_default(command: Command, name: &str, value: Option<&str>) -> (Command, bool) {
    let mut is_known = false;
    let command = set(command, name, value, &mut is_known);
    (command, is_known)
}

/// The names of the options.
pub(super) fn names(command: &Command) -> BTreeSet<&str> {
    let own = command.get_arguments().filter(|argument| argument.get_env().is_some()).filter_map(Arg::get_long);
    own.chain(command.get_subcommands().flat_map(names)).collect()
}

fn set(command: Command, name: &str, value: Option<&str>, is_known: &mut bool) -> Command {
    let command = command.mut_args(|argument| {
        let is_it = argument.get_long() == Some(name) && argument.get_env().is_some();
        *is_known |= is_it;
        match value.filter(|_| is_it) {
            Some(value) => argument.default_value(value.to_owned()),
            None => argument,
        }
    });
    command.mut_subcommands(|subcommand| set(subcommand, name, value, is_known))
}
