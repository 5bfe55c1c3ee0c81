//! Texts that may be secret or long. Every serializer masks a secret. The only ways to see one are [`Secret::expose`] and
//! the functions of [`crate::model::json`], which take a [`Secrets`].

use std::{
    borrow::Cow,
    collections::HashSet,
    fmt,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use subtle::ConstantTimeEq;

use super::secret_spans::SecretPlaces;
use crate::{
    model::field_rule::{SOURCED_SECRET, SOURCED_TEXT, deserialize_by},
    syntax::text::url_passwords,
};

/// The replacement for a secret.
pub const MASK: &str = "********";

/// Starts and ends the text that stands for an unknown value. The decoder rejects it in manifests and requests, so that
/// nobody can pass a value off as unknown, which rules do not check.
const UNKNOWN: &str = "\u{F5ED}";

/// Returns the text that stands for the value of `from_env` or `from_file` that is unset (D106). Two are equal if they are
/// for the same variable or file.
pub(crate) fn unknown(source: &str, argument: &str) -> String {
    format!("{UNKNOWN}{source} {argument}{UNKNOWN}")
}

/// Returns the source and argument of an unknown value.
pub(crate) fn unknown_source(text: &str) -> Option<(&str, &str)> {
    // A long text ends with a line break.
    text.trim_end_matches('\n').strip_prefix(UNKNOWN)?.strip_suffix(UNKNOWN)?.split_once(' ')
}

/// Whether a text stands for an unknown value.
pub(crate) fn is_unknown(text: &str) -> bool {
    text.starts_with(UNKNOWN)
}

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
    Located(&'a SecretPlaces),
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
    pub(crate) fn places(self) -> Option<&'a SecretPlaces> {
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
                review.known().get_or_insert_default().insert(blake3::hash(secret.as_bytes()));
                same.into()
            }
            Secrets::After(review) => {
                let digest = blake3::hash(secret.as_bytes());
                // An unknown value is changed if it is another variable or file than before.
                let is_same = review.known().as_ref().is_none_or(|known| known.contains(&digest));
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
        let (mut reviewed, mut at) = (String::new(), 0);
        for place in url_passwords(text) {
            reviewed.push_str(text.get(at..place.start).unwrap_or_default());
            at = place.end;
            reviewed.push_str(&self.hidden(text.get(place).unwrap_or_default()));
        }
        reviewed.push_str(text.get(at..).unwrap_or_default());
        reviewed.into()
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
    known: Mutex<Option<HashSet<blake3::Hash>>>,
}

impl Review {
    /// Returns the mode for the state before. Serialize that state first.
    pub fn before(&self) -> Secrets<'_> {
        self.known().get_or_insert_default();
        Secrets::Before(self)
    }

    /// Returns the mode for the state after. Without a state before, no secret is marked as changed.
    pub fn after(&self) -> Secrets<'_> {
        Secrets::After(self)
    }

    fn known(&self) -> MutexGuard<'_, Option<HashSet<blake3::Hash>>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A value that is never printed: a client secret, a webhook secret, a private key. Equality takes constant time.
#[derive(Clone)]
pub struct Secret(Arc<SecretString>);

impl Secret {
    /// Wraps a secret.
    pub fn new(text: impl Into<String>) -> Self {
        Self(Arc::new(SecretString::from(text.into())))
    }

    /// Returns the secret. The caller must not print or log it.
    pub fn expose(&self) -> &str {
        self.0.expose_secret()
    }

    /// Whether the secret is empty.
    pub fn is_empty(&self) -> bool {
        self.expose().is_empty()
    }

    /// Whether the text stands for an unknown secret.
    pub(crate) fn is_unknown(&self) -> bool {
        is_unknown(self.expose())
    }
}

impl Default for Secret {
    fn default() -> Self {
        Self::new("")
    }
}

impl PartialEq for Secret {
    fn eq(&self, other: &Self) -> bool {
        self.expose().as_bytes().ct_eq(other.expose().as_bytes()).into()
    }
}

impl Eq for Secret {}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(MASK)
    }
}

impl Serialize for Secret {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_newtype_struct(SOURCED_SECRET, &GuardedSecret(self))
    }
}

/// The fill character that reveals a [`GuardedSecret`]. No other code formats with this private-use character, so the
/// serializers of other crates always get the mask.
const OPEN: char = '\u{F5EC}';

/// The form of a secret for serializers: a text that displays as [`MASK`], unless it is [`ExposedText`].
struct GuardedSecret<'a>(&'a Secret);

impl fmt::Display for GuardedSecret<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match f.fill() {
            OPEN => self.0.expose(),
            _ if self.0.is_empty() => "",
            _ if self.0.is_unknown() => "(unknown)",
            _ => MASK,
        })
    }
}

impl Serialize for GuardedSecret<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Displays a [`GuardedSecret`] in full.
pub(crate) struct ExposedText<'a, T: ?Sized>(pub(crate) &'a T);

impl<T: fmt::Display + ?Sized> fmt::Display for ExposedText<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The character of `OPEN`, because a fill cannot be an argument.
        write!(f, "{:\u{F5EC}<}", self.0)
    }
}

/// The result of parsing a [`Text`], errors included.
pub trait Reading: Send + Sync + 'static {
    /// Parses a text; called once per value.
    fn read(text: &str) -> Self;
}

/// A long public text, PEM or XML, that is parsed into an `R` on first use; clones share the result. In reviews, it
/// shows as size and digest.
pub struct Text<R>(Arc<SharedText<R>>);

struct SharedText<R> {
    text: Box<str>,
    reading: OnceLock<R>,
}

impl<R> Text<R> {
    /// Wraps a text.
    pub fn new(text: &str) -> Self {
        Self(Arc::new(SharedText { text: text.into(), reading: OnceLock::new() }))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0.text
    }

    /// Whether the text stands for an unknown one.
    pub(crate) fn is_unknown(&self) -> bool {
        is_unknown(self.as_str())
    }

    /// Shares the parsed value of `former` if the texts are equal.
    pub fn keep_reading(&mut self, former: &Self) {
        if self == former {
            self.clone_from(former);
        }
    }
}

impl<R: Reading> Text<R> {
    /// The parsed text.
    pub fn read(&self) -> &R {
        self.0.reading.get_or_init(|| R::read(&self.0.text))
    }
}

impl<R> Clone for Text<R> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<R> Default for Text<R> {
    fn default() -> Self {
        Self::new("")
    }
}

impl<R> PartialEq for Text<R> {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.as_str() == other.as_str()
    }
}

impl<R> Eq for Text<R> {}

impl<R> fmt::Debug for Text<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Text({} bytes)", self.as_str().len())
    }
}

impl<R> Serialize for Text<R> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_newtype_struct(SOURCED_TEXT, self.as_str())
    }
}

impl<'de> Deserialize<'de> for Secret {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserialize_by(SOURCED_SECRET, String::new(), deserializer).map(Self::new)
    }
}

impl<'de, R> Deserialize<'de> for Text<R> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserialize_by(SOURCED_TEXT, String::new(), deserializer).map(|text| Self::new(&text))
    }
}

/// The schema name of [`Secret`].
pub(crate) const SECRET_SCHEMA: &str = "Secret";
/// The schema name of [`Text`].
pub(crate) const TEXT_SCHEMA: &str = "Text";

impl JsonSchema for Secret {
    fn schema_name() -> Cow<'static, str> {
        SECRET_SCHEMA.into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "description": "A secret. It is masked in responses to viewers."})
    }
}

impl<R> JsonSchema for Text<R> {
    fn schema_name() -> Cow<'static, str> {
        TEXT_SCHEMA.into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "description": "A long text, such as PEM or XML."})
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    static READ: AtomicUsize = AtomicUsize::new(0);

    /// Counts how often texts are parsed.
    struct CountedReading;

    impl Reading for CountedReading {
        fn read(_: &str) -> Self {
            READ.fetch_add(1, Ordering::Relaxed);
            Self
        }
    }

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

    #[test]
    fn a_text_and_its_clones_are_parsed_once() {
        let text = Text::<CountedReading>::new("a");
        let clone = text.clone();
        assert_eq!(READ.load(Ordering::Relaxed), 0);
        for text in [&text, &clone, &text] {
            text.read();
        }
        assert_eq!(READ.load(Ordering::Relaxed), 1);
        let (mut same, mut other) = (Text::<CountedReading>::new("a"), Text::<CountedReading>::new("b"));
        same.keep_reading(&text);
        same.read();
        assert_eq!(READ.load(Ordering::Relaxed), 1);
        other.keep_reading(&text);
        other.read();
        assert_eq!((READ.load(Ordering::Relaxed), other.as_str()), (2, "b"));
    }
}
