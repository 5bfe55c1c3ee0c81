//! Values of an option that a command reads itself, and that the shell completes.

use std::ffi::OsStr;

use clap::builder::{PossibleValue, TypedValueParser};
use clap::{Arg, Command};

/// Reads one of a few values. clap knows their names for completion only, so that errors and help stay those of the option.
#[derive(Clone)]
pub(crate) struct Choice<T> {
    parse: fn(&str) -> Result<T, String>,
    names: fn() -> Vec<String>,
}

impl<T> Choice<T> {
    /// Values that `parse` reads, by their names.
    pub(crate) fn new(parse: fn(&str) -> Result<T, String>, names: fn() -> Vec<String>) -> Self {
        Self { parse, names }
    }
}

impl<T: Clone + Send + Sync + 'static> TypedValueParser for Choice<T> {
    type Value = T;

    fn parse_ref(&self, command: &Command, argument: Option<&Arg>, value: &OsStr) -> Result<T, clap::Error> {
        self.parse.parse_ref(command, argument, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new((self.names)().into_iter().map(PossibleValue::new)))
    }
}
