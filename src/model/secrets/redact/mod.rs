//! The text of a manifest for people: keys, and the values of fields that are known to be public (D28). Everything else is
//! hidden: the values of secret and of unknown fields, comments, and what cannot be read.

mod fields;
mod mask;
mod quoting;
mod reader;
#[cfg(test)]
mod tests;

use std::{collections::HashSet, ops::Range};

pub(crate) use fields::Fields;
pub(crate) use quoting::{quotable_key, quotable_path, quotable_variable};

/// Shorter secrets are not looked for elsewhere in the file, because public text may contain them.
const SHORTEST_REPEATED: usize = 6;

/// A text of which only what is public is shown.
pub(crate) struct Redacted {
    /// The text with `*` for each hidden byte; all other bytes keep their position.
    pub text: String,
    /// The hidden parts, without the white space around them, each within a line.
    pub hidden: Vec<Range<usize>>,
    secrets: SecretValues,
}

impl Redacted {
    /// Hides what is not public.
    pub(crate) fn new(text: &str, fields: &Fields) -> Self {
        let (mask, secrets) = reader::read(text, fields);
        let hidden = mask.hidden(text);
        Self { text: mask::overwrite(text, &hidden), hidden, secrets }
    }

    /// A message about the text without the secrets it quotes: an alias can repeat a secret in any field, and as a key.
    pub(crate) fn message(&self, message: &str) -> String {
        // Quoted parts are in backquotes; the text around them is edgewright's own.
        let parts = message.split('`').enumerate();
        let parts = parts.map(|(at, part)| if at % 2 == 1 && self.secrets.is_in(part) { "(hidden)" } else { part });
        parts.collect::<Vec<_>>().join("`")
    }
}

/// The secrets of a text, which its keys, its public values and messages about it may repeat.
#[derive(Default)]
struct SecretValues(HashSet<String>);

impl SecretValues {
    /// Adds each line of a value. The name of a field is no secret, wherever it is.
    fn add(&mut self, value: &str, fields: &Fields) {
        let lines = value.lines().map(str::trim).filter(|it| it.len() >= SHORTEST_REPEATED && !fields.has_name(it));
        self.0.extend(lines.map(str::to_owned));
    }

    /// Whether a text is one of the secrets, or has one as a word.
    fn is_in(&self, text: &str) -> bool {
        let is_secret = |part: &str| self.0.contains(part);
        !self.0.is_empty()
            && (text.lines().any(|line| is_secret(line.trim()))
                || text.split_whitespace().any(is_secret)
                || text.split(|c: char| !c.is_alphanumeric() && !"_-".contains(c)).any(is_secret))
    }
}
