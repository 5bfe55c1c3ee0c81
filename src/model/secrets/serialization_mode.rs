//! How a serialization writes secrets and long texts: masked, revealed, located, or as a reviewer sees them.

use std::borrow::Cow;
use std::collections::HashSet;

use super::{secret::MASK, secret_spans::SecretSpans, unknown_value::is_unknown};
use crate::lock::Lock;
use crate::syntax::text::{replace_parts, url_passwords};

/// The longest text that reviews and the history contain in full.
const LONGEST_REVIEWED: usize = 80;
/// The longest text that the calls of a plan contain in full.
const LONGEST_PLANNED: usize = 16 << 10;

/// How a serialization writes secrets and long texts.
#[derive(Clone, Copy)]
pub enum Secrets<'a> {
    /// Secrets as [`MASK`], texts in full.
    Masked,
    /// For the calls of a plan: secrets as [`MASK`], very long texts as size and digest, because a plan can repeat one
    /// text in each of thousands of routes.
    Planned,
    /// Secrets and texts in full: for the digests of the store, and for clients with the permission to see them.
    Revealed,
    /// Like [`Secrets::Revealed`], and notes where the secrets are: for the store, which encrypts them. The places are
    /// those in bytes on one line.
    Located(&'a SecretSpans),
    /// The state before a change, for a reviewer: secrets as `(secret)`, texts as size and digest. Returned
    /// by [`Review::before`].
    Before(&'a Review),
    /// The state after a change: secrets that differ from the state before as `(secret, changed)`.
    After(&'a Review),
    /// For the history: secrets as a digest with this key, which shows that a secret changed but not its value;
    /// texts as size and digest.
    Digested(&'a [u8; 32]),
}

/// The prefix of a secret's digest; see [`Secrets::Digested`].
const DIGEST: &str = "(secret ";

/// Replaces the digests of secrets in a value from the history, and unknown values, by [`MASK`], so that comparing values
/// tells nothing about secrets.
pub(crate) fn without_digests(value: &mut serde_json::Value) {
    match value {
        serde_json::Value::String(text) if text.starts_with(DIGEST) || text.as_str() == "(unknown)" => {
            MASK.clone_into(text)
        }
        serde_json::Value::Array(items) => items.iter_mut().for_each(without_digests),
        serde_json::Value::Object(fields) => fields.values_mut().for_each(without_digests),
        _ => {}
    }
}

impl<'a> Secrets<'a> {
    /// Returns the places to note, if any.
    pub(crate) fn places(self) -> Option<&'a SecretSpans> {
        match self {
            Secrets::Located(places) => Some(places),
            _ => None,
        }
    }

    /// Returns the replacement for a secret that is not revealed.
    pub(crate) fn hidden(self, secret: &str) -> Cow<'static, str> {
        if secret.is_empty() {
            return "".into();
        }
        let (same, changed) = match is_unknown(secret) {
            true => ("(unknown)", "(unknown), changed"),
            false => ("(secret)", "(secret, changed)"),
        };
        match self {
            Secrets::Before(review) => {
                review.known.lock().get_or_insert_default().insert(blake3::hash(secret.as_bytes()));
                same.into()
            }
            Secrets::After(review) => {
                let digest = blake3::hash(secret.as_bytes());
                // An unknown value is changed if it is another variable or file than before.
                let is_same = review.known.lock().as_ref().is_none_or(|known| known.contains(&digest));
                if is_same { same.into() } else { changed.into() }
            }
            _ if is_unknown(secret) => same.into(),
            Secrets::Digested(key) => {
                let digest = blake3::keyed_hash(key, secret.as_bytes()).to_hex();
                format!("{DIGEST}{digest:.16})").into()
            }
            // The writer does not call this in these modes; masking is the safe default.
            Secrets::Masked | Secrets::Planned | Secrets::Revealed | Secrets::Located(_) => MASK.into(),
        }
    }

    /// Returns any other text as this mode writes it: reviews have no password of a URL. The API, exports and the history have
    /// it, because the field is public (D63).
    pub(crate) fn reviewed(self, text: &str) -> Cow<'_, str> {
        if !matches!(self, Secrets::Planned | Secrets::Before(_) | Secrets::After(_)) || !text.contains("://") {
            return text.into();
        }
        replace_parts(text, url_passwords(text), |password| self.hidden(password)).into()
    }

    /// Returns a long public text as this mode writes it.
    pub(crate) fn abridged(self, text: &str) -> Cow<'_, str> {
        match self {
            Secrets::Revealed | Secrets::Located(_) => text.into(),
            _ if is_unknown(text) => self.hidden(text),
            Secrets::Before(_) | Secrets::After(_) | Secrets::Digested(_) if text.len() > LONGEST_REVIEWED => {
                abridgement(text)
            }
            Secrets::Planned if text.len() > LONGEST_PLANNED => abridgement(text),
            _ => text.into(),
        }
    }
}

/// Returns a text's size and digest.
fn abridgement(text: &str) -> Cow<'static, str> {
    let digest = blake3::hash(text.as_bytes()).to_hex();
    format!("({} bytes, blake3 {digest:.12})", text.len()).into()
}

/// The secrets of the state before a change, to show a reviewer which ones change and nothing else.
#[derive(Default)]
pub struct Review {
    /// `None` if there is no state before.
    known: Lock<Option<HashSet<blake3::Hash>>>,
}

impl Review {
    /// Returns the mode for the state before. Serialize that state first.
    pub fn before(&self) -> Secrets<'_> {
        self.known.lock().get_or_insert_default();
        Secrets::Before(self)
    }

    /// Returns the mode for the state after. Without a state before, no secret is marked as changed.
    pub fn after(&self) -> Secrets<'_> {
        Secrets::After(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::secrets::secret::Secret;
    use crate::model::secrets::unknown_value::{unknown, unknown_source};

    #[test]
    fn an_unknown_value_is_shown_as_such_and_its_name_is_not_shown() {
        let (one, other) = (unknown("from_env", "ONE"), unknown("from_file", "a b.pem"));
        assert_eq!(unknown_source(&one), Some(("from_env", "ONE")));
        assert_eq!(unknown_source(&format!("{other}\n")), Some(("from_file", "a b.pem")));
        assert!(!is_unknown("(unknown)") && unknown_source("from_env ONE").is_none());
        for secrets in [Secrets::Masked, Secrets::Planned, Secrets::Digested(&[0; 32])] {
            assert_eq!((secrets.hidden(&one), secrets.abridged(&one)), ("(unknown)".into(), "(unknown)".into()));
        }
        assert_eq!(serde_json::to_string(&Secret::new(one.as_str())).ok().as_deref(), Some("\"(unknown)\""));
        let review = Review::default();
        assert_eq!(review.after().hidden(&one), "(unknown)");
        assert_eq!(review.before().hidden(&one), "(unknown)");
        assert_eq!(review.after().hidden(&one), "(unknown)");
        assert_eq!(review.after().abridged(&other), "(unknown), changed");
    }
}
