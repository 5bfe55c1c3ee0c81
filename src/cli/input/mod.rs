//! Input from people: the origins of options (`option_origins.rs`), empty and misspelt variables, choices, durations, questions on a terminal
//! (`prompt.rs`), and usage errors with tips.

pub(crate) mod choice;
pub(crate) mod durations;
pub(crate) mod empty_variables;
pub(crate) mod misspelt_variables;
pub(crate) mod option_origins;
pub(crate) mod prompt;
pub(crate) mod usage;
