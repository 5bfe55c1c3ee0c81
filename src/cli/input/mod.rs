//! How the command line is read: options and where they came from, questions to a person, usage errors.

pub(crate) mod empty_variables;
pub(crate) mod files_only;
pub(crate) mod option_origin;
pub(crate) mod prompt;
pub(crate) mod usage;
