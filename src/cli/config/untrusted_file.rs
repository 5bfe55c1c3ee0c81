//! A configuration file that was found in the working folder: a pull request can add it, so it must neither read nor write a
//! file, nor send anything, nor lift a limit (D43).

use clap::{Arg, ArgMatches, Args, Command, parser::ValueSource};

use crate::cli::prelude::*;
use crate::cli::store::{retention_args::RetentionArgs, store_args::StoreArgs};

/// The options that it can set to any value.
const HARMLESS: [&str; 4] = ["format", "log-format", "detailed-exitcode", "no-cache"];
/// The option with the deletion limit, and the highest number that it can be set to: no source has a lower default.
const DELETION_LIMIT: (&str, usize) = ("max-deletes", 3);
/// The options that choose where a command works. A flag of one of them makes the others moot (D105).
const PLACES: [&str; 3] = ["store", "server", "context"];

/// Whether such a file can set an option to a value.
pub(super) fn can_set(name: &str, value: &str) -> bool {
    let (limit, most) = DELETION_LIMIT;
    HARMLESS.contains(&name) || (name == limit && value.parse::<usize>().is_ok_and(|number| number <= most))
}

/// Which options of the command that runs are checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CheckedOptions {
    /// All, except those of a store that the command may not use.
    BeforeChoice,
    /// The options of the store that the command uses.
    OfStore,
}

/// Returns the first of some options that the command that runs uses, and that neither a flag nor a variable sets.
pub(super) fn first_unset<'n>(
    command: &Command,
    matches: &ArgMatches,
    checked: CheckedOptions,
    mut names: impl Iterator<Item = &'n String>,
) -> Option<&'n str> {
    let (mut command, mut matches) = (command, matches);
    while let Some((name, inside)) = matches.subcommand() {
        (command, matches) = (command.find_subcommand(name)?, inside);
    }
    let find = |name: &str| command.get_arguments().find(|argument| argument.get_long() == Some(name));
    let source = |option: &Arg| matches.value_source(option.get_id().as_str());
    let is_by_flag = |name: &&str| find(name).and_then(source) == Some(ValueSource::CommandLine);
    let is_place_chosen = PLACES.iter().any(is_by_flag);
    let has_choice = PLACES.iter().all(|place| find(place).is_some());
    let of_store = of_store();
    let is_unset = |name: &&String| {
        let is_checked = match checked {
            CheckedOptions::BeforeChoice => !has_choice || !of_store.contains(name.as_str()),
            CheckedOptions::OfStore => of_store.contains(name.as_str()),
        };
        let is_moot = has_choice && is_place_chosen && PLACES.contains(&name.as_str());
        is_checked
            && !is_moot
            && find(name).is_some_and(|option| {
                !matches!(source(option), Some(ValueSource::CommandLine | ValueSource::EnvVariable))
            })
    };
    names.find(is_unset).map(String::as_str)
}

/// The long names of the options of a store and of what it keeps.
fn of_store() -> BTreeSet<String> {
    let command = RetentionArgs::augment_args(StoreArgs::augment_args(Command::new("store")));
    command.get_arguments().filter_map(|option| option.get_long().map(str::to_owned)).collect()
}
