//! The options that a configuration file can set: those that have an environment variable, too (D32).

use std::collections::BTreeSet;

use clap::{Arg, Command};

/// Sets the default of an option in every command that has it; none leaves the default as it is. Returns whether a command
/// has the option.
pub(super) fn set_default(mut command: Command, name: &str, value: Option<&str>) -> (Command, bool) {
    let mut is_known = false;
    for subcommand in subcommands(&command) {
        command = command.mut_subcommand(subcommand, |subcommand| set(subcommand, name, value, &mut is_known));
    }
    (command, is_known)
}

/// The names of the options.
pub(super) fn names(command: &Command) -> BTreeSet<&str> {
    let own = command.get_arguments().filter(|argument| argument.get_env().is_some()).filter_map(Arg::get_long);
    own.chain(command.get_subcommands().flat_map(names)).collect()
}

fn subcommands(command: &Command) -> Vec<String> {
    command.get_subcommands().map(|subcommand| subcommand.get_name().to_owned()).collect()
}

/// Sets the default of an option in a command and its subcommands, if there is one.
fn set(mut command: Command, name: &str, value: Option<&str>, known: &mut bool) -> Command {
    let is_it = |argument: &&Arg| argument.get_long() == Some(name) && argument.get_env().is_some();
    let found = command.get_arguments().find(is_it).map(|it| it.get_id().clone());
    if let Some(id) = found {
        *known = true;
        if let Some(value) = value.map(str::to_owned) {
            command = command.mut_arg(id, |argument| argument.default_value(value));
        }
    }
    for subcommand in subcommands(&command) {
        command = command.mut_subcommand(subcommand, |subcommand| set(subcommand, name, value, known));
    }
    command
}
