//! The text of a manifest for people: keys, and the values of fields that are known to be public (D28).
//!
//! # The problem
//!
//! An error shows the lines around it, and its log is read by many. Secrets get into manifests by mistake, in places
//! that nobody expects: in place of a path, as a key after a missing space, in a comment. Whether a text is secret
//! cannot be seen from its form.
//!
//! # The idea
//!
//! What a field is for is known. So nothing is shown unless the schemas declare it: the types of the fields say once
//! what is public, and [`Fields`] reads that from their JSON Schema, for all kinds together. The reader follows the
//! events of the text with the schemas of each place, and masks everything else. What it has masked as the value of a
//! secret field is a secret wherever the file repeats it, in a public value, in a key and in a message.
//!
//! ```text
//! client_secret: hunter2   # old one: hunter1
//! client_secret: *******   #*****************
//! ```
//!
//! A misspelt name counts as that of the public field that it means, and shows no more than that field would. What is like the
//! name of a secret field means none.
//!
//! Whoever shows the text writes `(hidden)` in place of a masked part. After the first syntax error the structure is
//! unknown, so only the names of fields at the starts of lines are shown.
//!
//! # What it never does
//!
//! It does not guess that a text is harmless: forms of tokens and keys (`quoting`) only hide more. It does not change
//! the length of the text, so that positions stay. Tests in `tests/it/security/canary` put marks into every secret
//! field and every known mistake, and search every output for them.

mod fields;
mod mask;
mod quoting;
mod reader;
mod secret_values;
#[cfg(test)]
mod tests;

use std::ops::Range;

use crate::syntax::text::replace_parts;
pub(crate) use fields::Fields;
pub(crate) use quoting::{quotable_key, quotable_path, quotable_variable};
use secret_values::SecretValues;

/// A text of which only what is public is shown.
pub(crate) struct RedactedText {
    /// The text with `*` for each hidden byte; all other bytes keep their position.
    pub text: String,
    /// The hidden parts, without the white space around them, each within a line.
    pub hidden: Vec<Range<usize>>,
    secrets: SecretValues,
}

impl RedactedText {
    /// Hides what is not public.
    pub(crate) fn new(text: &str, fields: &Fields) -> Self {
        let (mask, secrets) = reader::read(text, fields);
        let hidden = mask.hidden(text);
        let masked = replace_parts(text, hidden.iter().cloned(), |part| "*".repeat(part.len()).into());
        Self { text: masked, hidden, secrets }
    }

    /// A message about the text without the secrets it quotes: an alias can repeat a secret in any field, and as a key.
    pub(crate) fn message(&self, message: &str) -> String {
        // Quoted parts are in backquotes; the text around them is edgewright's own.
        let parts = message.split('`').enumerate();
        let parts = parts.map(|(at, part)| if at % 2 == 1 && self.secrets.is_in(part) { "(hidden)" } else { part });
        parts.collect::<Vec<_>>().join("`")
    }
}
