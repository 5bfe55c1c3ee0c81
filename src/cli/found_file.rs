//! A configuration file that was found in the working folder: a pull request can add it, so it must neither read nor write a
//! file, nor send anything, nor lift a limit (D43).

use clap::{ArgMatches, Command, parser::ValueSource};

/// The options that it can set to any value.
const HARMLESS: [&str; 4] = ["format", "log-format", "detailed-exitcode", "no-cache"];
/// The option with the deletion limit, and the highest number that it can be set to: no source has a lower default.
const DELETION_LIMIT: (&str, usize) = ("max-deletes", 3);

/// Whether it can set an option to a value.
pub(super) fn can_set(name: &str, value: &str) -> bool {
    let (limit, most) = DELETION_LIMIT;
    HARMLESS.contains(&name) || (name == limit && value.parse::<usize>().is_ok_and(|number| number <= most))
}

/// Returns the first of some options that the command that runs has, and that neither a flag nor a variable sets.
pub(super) fn first_unset<'n>(
    command: &Command,
    matches: &ArgMatches,
    mut names: impl Iterator<Item = &'n String>,
) -> Option<&'n str> {
    let (mut command, mut matches) = (command, matches);
    while let Some((name, inside)) = matches.subcommand() {
        (command, matches) = (command.find_subcommand(name)?, inside);
    }
    let is_unset = |name: &&String| {
        let option = command.get_arguments().find(|argument| argument.get_long() == Some(name.as_str()));
        option.is_some_and(|option| {
            let source = matches.value_source(option.get_id().as_str());
            !matches!(source, Some(ValueSource::CommandLine | ValueSource::EnvVariable))
        })
    };
    names.find(is_unset).map(String::as_str)
}
