//! The secrets of a text, by which their repetitions are found.

use std::collections::HashSet;

use super::fields::Fields;

/// Shorter secrets are not looked for elsewhere in the file, because public text may contain them.
const SHORTEST_REPEATED: usize = 6;

/// The secrets of a text, which its keys, its public values and messages about it may repeat.
#[derive(Default)]
pub(super) struct SecretValues(HashSet<String>);

impl SecretValues {
    /// Adds each line of a value. The name of a field is no secret, wherever it is.
    pub(super) fn add(&mut self, value: &str, fields: &Fields) {
        let lines = value.lines().map(str::trim).filter(|it| it.len() >= SHORTEST_REPEATED && !fields.has_name(it));
        self.0.extend(lines.map(str::to_owned));
    }

    /// Whether a text is one of the secrets, or has one as a word.
    pub(super) fn is_in(&self, text: &str) -> bool {
        let is_secret = |part: &str| self.0.contains(part);
        !self.0.is_empty()
            && (text.lines().any(|line| is_secret(line.trim()))
                || text.split_whitespace().any(is_secret)
                || text.split(|c: char| !c.is_alphanumeric() && !"_-".contains(c)).any(is_secret))
    }
}
