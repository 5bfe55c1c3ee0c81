//! How the options of a command were given: where a command works must not depend on what somebody forgot (D105).

use std::collections::BTreeSet;

use clap::{ArgMatches, parser::ValueSource};

/// What a command without a store or a server does with the current context.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CurrentContext {
    /// It works with the context.
    Used,
    /// It fails if there is one, because it changes something.
    Refused,
    /// It works with files.
    Ignored,
    /// It works with files, and with a server only if a flag names one: a hook before a commit must not depend on what is
    /// set for other commands.
    OnlyByFlag,
}

/// The origins of a command's options.
pub(super) struct Given<'a> {
    matches: Option<&'a ArgMatches>,
    /// The long names of the options in the configuration file.
    configured: BTreeSet<String>,
    current_context: CurrentContext,
}

impl<'a> Given<'a> {
    /// Takes the arguments of the whole program, and the long names of the options in the configuration file.
    pub(super) fn new(matches: &'a ArgMatches, configured: BTreeSet<String>, current_context: CurrentContext) -> Self {
        let command = matches.subcommand().map(|(_, command)| command);
        let matches = command.map(|command| command.subcommand().map_or(command, |(_, nested)| nested));
        Self { matches, configured, current_context }
    }

    /// What the command does with the current context.
    pub(super) fn current_context(&self) -> CurrentContext {
        self.current_context
    }

    /// Whether an option is on the command line.
    pub(super) fn by_flag(&self, id: &str) -> bool {
        self.source(id) == Some(ValueSource::CommandLine)
    }

    /// Whether an option has a value from the command line, the environment or the configuration file.
    pub(super) fn is_named(&self, id: &str) -> bool {
        match self.source(id) {
            Some(ValueSource::CommandLine | ValueSource::EnvVariable) => true,
            // The configuration file sets defaults, by long names.
            Some(_) => self.configured.contains(&id.replace('_', "-")),
            None => false,
        }
    }

    fn source(&self, id: &str) -> Option<ValueSource> {
        let matches = self.matches?;
        // clap panics in debug builds if the command has no such option.
        matches.try_contains_id(id).ok().filter(|is_set| *is_set).and_then(|_| matches.value_source(id))
    }
}
