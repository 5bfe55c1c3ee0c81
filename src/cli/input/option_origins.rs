//! The origins of a command's options: the choice of a store or server must not depend on what somebody forgot (D105).

use clap::{ArgMatches, Command, parser::ValueSource};

use crate::cli::config::Config;
use crate::cli::config::location::config_path;

/// The use of the current context by a command without a store or a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CurrentContext {
    /// The command works with the context.
    Used,
    /// The command changes something, and fails if there is a current context.
    Refused,
    /// The command works with files.
    Ignored,
    /// The command works with files, and with a server only if a flag names one: a hook before a commit must not depend on what is
    /// set for other commands.
    OnlyByFlag,
}

pub(crate) struct OptionOrigins<'a> {
    pub command: &'a Command,
    pub arguments: &'a ArgMatches,
    /// The configuration file, which sets defaults of options.
    pub config: &'a Config,
    pub current_context: CurrentContext,
}

impl OptionOrigins<'_> {
    pub(crate) fn is_flag(&self, id: &str) -> bool {
        self.source(id) == Some(ValueSource::CommandLine)
    }

    /// Whether an option has a value from the command line, the environment or the configuration file.
    pub(crate) fn is_set(&self, id: &str) -> bool {
        match self.source(id) {
            Some(ValueSource::CommandLine | ValueSource::EnvVariable) => true,
            // The configuration file sets defaults, by long names.
            Some(_) => self.config.sets(&id.replace('_', "-")),
            None => false,
        }
    }

    /// Says where the value of an option comes from.
    pub(crate) fn describe(&self, id: &str) -> String {
        match self.source(id) {
            Some(ValueSource::CommandLine) => format!("flag --{}", id.replace('_', "-")),
            Some(ValueSource::EnvVariable) => format!("variable EDGEWRIGHT_{}", id.to_uppercase()),
            Some(_) if self.is_set(id) => format!("configuration file {}", config_path().display()),
            _ => "default".to_owned(),
        }
    }

    fn source(&self, id: &str) -> Option<ValueSource> {
        let (_, command) = self.arguments.subcommand()?;
        let matches = command.subcommand().map_or(command, |(_, nested)| nested);
        // clap panics in debug builds if the command has no such option.
        matches.try_contains_id(id).ok().filter(|is_set| *is_set).and_then(|_| matches.value_source(id))
    }
}

/// Whether an option of the command was given as a flag or an environment variable, rather than in the configuration file.
pub(crate) fn overrides_file(matches: &ArgMatches, name: &str) -> bool {
    let source = matches.subcommand().and_then(|(_, command)| command.value_source(name));
    matches!(source, Some(ValueSource::CommandLine | ValueSource::EnvVariable))
}
