//! A configuration file that was found in the working folder: a pull request can add it, so it must neither read nor write a
//! file, nor send anything, nor lift a limit (D43).

use clap::{Arg, ArgMatches, Args, Command, parser::ValueSource};

use super::{Config, location::VARIABLE, section::ConfigSection};
use crate::cli::prelude::*;
use crate::cli::store::{retention_args::RetentionArgs, store_args::StoreArgs};

/// The options that it can set to any value.
const HARMLESS: [&str; 4] = ["format", "log-format", "detailed-exitcode", "no-cache"];
/// The option with the deletion limit, and the highest number that it can be set to: no source has a lower default.
const DELETION_LIMIT: (&str, usize) = ("max-deletes", 3);
/// The options that choose where a command works. A flag of one of them makes the others moot (D105).
const PLACES: [&str; 3] = ["store", "server", "context"];
const SERVERS: [&str; 2] = ["server", "context"];

impl Config {
    /// Adds an error for each key that only a server uses, unless the file was named: a pull request can add it to the
    /// working folder.
    pub(super) fn check_trust(mut self) -> Self {
        let refuse = |key: &String| self.not_allowed(key, FieldPath::root().join(key.as_str()));
        let refused: Vec<Failure> = self.refused_keys().map(refuse).collect();
        self.errors.extend(refused.into_iter().map(|failure| (Some(ConfigSection::Trust), failure)));
        self
    }

    /// Adds an error for each option of the command that runs which such a file cannot set and nothing else has set. A
    /// command with which only a flag names a server does not use the one of the file.
    pub(crate) fn add_refused_options(&mut self, command: &Command, matches: &ArgMatches, server_by_flag_only: bool) {
        let checked = CheckedOptions::BeforeChoice { server_by_flag_only };
        let refused = self.refused_options(command, matches, checked);
        self.errors.extend(refused.into_iter().map(|failure| (None, failure)));
    }

    /// Fails if the command that runs uses options that such a file cannot set, and nothing else has set them.
    pub(crate) fn check_options(
        &self,
        command: &Command,
        matches: &ArgMatches,
        checked: CheckedOptions,
    ) -> Result<(), Failure> {
        let refused = self.refused_options(command, matches, checked);
        let diagnostics: Vec<Diagnostic> = refused.into_iter().flat_map(|failure| failure.diagnostics).collect();
        if diagnostics.is_empty() { Ok(()) } else { Err(Failure::of_configuration(diagnostics)) }
    }

    /// Warns of a file with which a server does not start unless the file is named.
    pub(crate) fn refused_by_server(&self, serve: &Command) -> Option<Diagnostic> {
        let is_of_server = |name: &str| serve.get_arguments().any(|argument| argument.get_long() == Some(name));
        let options = self.options.keys().filter(|name| self.is_refused(name) && is_of_server(name));
        let sets: Vec<String> = options.chain(self.refused_keys()).map(|name| format!("`{name}`")).collect();
        if sets.is_empty() {
            return None;
        }
        let path = self.path.display();
        let message =
            format!("`serve` will refuse {path}, which was only found and not named: it sets {}", sets.join(", "));
        let help = format!("start the server with {VARIABLE}={path}");
        Some(Diagnostic::warning(Code::NotAllowed, message).help(help))
    }

    /// Whether the file was found in the working folder, and cannot set an option.
    pub(super) fn is_refused(&self, name: &str) -> bool {
        let can_set = |values: &Vec<String>| values.iter().all(|value| can_set(name, value));
        !self.named && !self.options.get(name).is_some_and(can_set)
    }

    /// The keys that only a server uses, unless the file was named.
    fn refused_keys(&self) -> impl Iterator<Item = &String> {
        let of_server = |key: &&String| ConfigSection::from_key(key) == Some(ConfigSection::Server);
        self.keys.iter().filter(of_server).filter(|_| !self.named)
    }

    /// The errors of the options of the command that runs which such a file cannot set and nothing else has set.
    fn refused_options(&self, command: &Command, matches: &ArgMatches, checked: CheckedOptions) -> Vec<Failure> {
        let refused = self.options.keys().filter(|name| self.is_refused(name));
        let unset = unset(command, matches, checked, refused);
        unset.into_iter().map(|name| self.not_allowed(name, FieldPath::root().join("options").join(name))).collect()
    }

    /// The error of what a file that was found in the working folder cannot set.
    fn not_allowed(&self, what: &str, place: FieldPath) -> Failure {
        let message = format!("`{what}` cannot be set in a configuration file found in the working folder");
        let help = format!("name the file in {VARIABLE}; a file that is only found can set lints and little else");
        self.failure_at(Fault::new(Code::NotAllowed, message).help(help).at(place).of_key())
    }
}

/// Whether such a file can set an option to a value.
fn can_set(name: &str, value: &str) -> bool {
    let (limit, most) = DELETION_LIMIT;
    HARMLESS.contains(&name) || (name == limit && value.parse::<usize>().is_ok_and(|number| number <= most))
}

/// Which options of the command that runs are checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CheckedOptions {
    /// All, except those of a store or server that the command may not use.
    BeforeChoice {
        /// Whether only a flag names the server of the command.
        server_by_flag_only: bool,
    },
    OfStore,
}

/// Returns the options that the command that runs uses and neither a flag nor a variable sets, of some options.
fn unset<'n>(
    command: &Command,
    matches: &ArgMatches,
    checked: CheckedOptions,
    names: impl Iterator<Item = &'n String>,
) -> Vec<&'n str> {
    let (mut command, mut matches) = (command, matches);
    while let Some((name, inside)) = matches.subcommand() {
        let Some(found) = command.find_subcommand(name) else { return Vec::new() };
        (command, matches) = (found, inside);
    }
    let find = |name: &str| command.get_arguments().find(|argument| argument.get_long() == Some(name));
    let source = |option: &Arg| matches.value_source(option.get_id().as_str());
    let is_by_flag = |name: &&str| find(name).and_then(source) == Some(ValueSource::CommandLine);
    let is_place_chosen = PLACES.iter().any(is_by_flag);
    let has_choice = PLACES.iter().all(|place| find(place).is_some());
    let of_store = of_store();
    let is_unset = |name: &&String| {
        let is_checked = match checked {
            CheckedOptions::BeforeChoice { server_by_flag_only } => {
                let is_of_store = has_choice && of_store.contains(name.as_str());
                !(is_of_store || server_by_flag_only && SERVERS.contains(&name.as_str()))
            }
            CheckedOptions::OfStore => of_store.contains(name.as_str()),
        };
        let is_moot = has_choice && is_place_chosen && PLACES.contains(&name.as_str());
        is_checked
            && !is_moot
            && find(name).is_some_and(|option| {
                !matches!(source(option), Some(ValueSource::CommandLine | ValueSource::EnvVariable))
            })
    };
    names.filter(is_unset).map(String::as_str).collect()
}

/// The long names of the options of a store and of what it keeps.
fn of_store() -> BTreeSet<String> {
    let command = RetentionArgs::augment_args(StoreArgs::augment_args(Command::new("store")));
    command.get_arguments().filter_map(|option| option.get_long().map(str::to_owned)).collect()
}
