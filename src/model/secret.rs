//! Secret or long texts. A secret is masked wherever it is printed or serialised; only [`Secret::expose`] and
//! serialisation inside [`reveal`] return it.

use std::{
    borrow::Cow,
    cell::RefCell,
    collections::HashSet,
    fmt,
    rc::Rc,
    sync::{Arc, OnceLock},
};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use subtle::ConstantTimeEq;

/// The replacement for a secret.
pub const MASK: &str = "********";

/// The newtype name of texts that a manifest may read from a file or the environment (D28).
pub(super) const SOURCED_TEXT: &str = "edgewright::Text";
/// Like [`SOURCED_TEXT`], for a secret.
pub(super) const SOURCED_SECRET: &str = "edgewright::Secret";

/// How the current thread serialises the texts of this module.
#[derive(Clone, Default)]
enum Mode {
    /// Secrets as [`MASK`], texts in plain.
    #[default]
    Masked,
    /// Secrets and texts in plain.
    Revealed,
    /// For review: secrets as "(secret)" or "(secret, changed)", texts by size and digest. `known` are the secrets of
    /// the former state, if any.
    Review { known: Known, learning: bool },
    /// For the history: secrets as a digest with this key, texts by size and digest.
    Digested([u8; 32]),
}

thread_local! {
    static MODE: RefCell<Mode> = RefCell::default();
}

fn with_mode<R>(mode: Mode, run: impl FnOnce() -> R) -> R {
    /// Restores the former mode even if `run` unwinds.
    struct Restore(Mode);
    impl Drop for Restore {
        fn drop(&mut self) {
            MODE.set(std::mem::take(&mut self.0));
        }
    }
    let _restore = Restore(MODE.replace(mode));
    run()
}

/// Runs a serialisation with the real values: for the store's records, and responses to authorised callers.
pub fn reveal<R>(run: impl FnOnce() -> R) -> R {
    with_mode(Mode::Revealed, run)
}

/// Runs a serialisation for the history, which shows that a secret changed but not its value.
pub fn digested<R>(key: &[u8; 32], run: impl FnOnce() -> R) -> R {
    with_mode(Mode::Digested(*key), run)
}

/// Serialises two states for review, which shows only whether each secret changed.
#[derive(Default)]
pub struct Review {
    known: Known,
}

type Known = Rc<RefCell<Option<HashSet<blake3::Hash>>>>;

impl Review {
    /// Serialises the former state.
    pub fn before<R>(&self, run: impl FnOnce() -> R) -> R {
        self.known.borrow_mut().get_or_insert_default();
        with_mode(Mode::Review { known: Rc::clone(&self.known), learning: true }, run)
    }

    /// Serialises the new state and marks secrets that are not in the former one.
    pub fn after<R>(&self, run: impl FnOnce() -> R) -> R {
        with_mode(Mode::Review { known: Rc::clone(&self.known), learning: false }, run)
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
        if self.is_empty() {
            return serializer.serialize_str("");
        }
        match MODE.with_borrow(Clone::clone) {
            Mode::Masked => serializer.serialize_str(MASK),
            Mode::Revealed => serializer.serialize_str(self.expose()),
            Mode::Digested(key) => {
                let digest = blake3::keyed_hash(&key, self.expose().as_bytes()).to_hex();
                serializer.serialize_str(&format!("(secret {digest:.16})"))
            }
            Mode::Review { known, learning } => {
                let digest = blake3::hash(self.expose().as_bytes());
                if learning {
                    known.borrow_mut().get_or_insert_default().insert(digest);
                    return serializer.serialize_str("(secret)");
                }
                let same = known.borrow().as_ref().is_none_or(|known| known.contains(&digest));
                serializer.serialize_str(if same { "(secret)" } else { "(secret, changed)" })
            }
        }
    }
}

/// The result of parsing a [`Text`], errors included.
pub trait Reading: Send + Sync + 'static {
    /// Parses a text; called once per value.
    fn read(text: &str) -> Self;
}

/// A long public text, PEM or XML, that is parsed into an `R` on first use; clones share the result. In reviews, it
/// shows as size and digest.
pub struct Text<R>(Arc<Content<R>>);

struct Content<R> {
    text: Box<str>,
    reading: OnceLock<R>,
}

impl<R> Text<R> {
    /// Wraps a text.
    pub fn new(text: &str) -> Self {
        Self(Arc::new(Content { text: text.into(), reading: OnceLock::new() }))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0.text
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
        let text = self.as_str();
        let review = MODE.with_borrow(|mode| matches!(mode, Mode::Review { .. } | Mode::Digested(_)));
        if review && text.len() > 80 {
            let digest = blake3::hash(text.as_bytes()).to_hex();
            return serializer.serialize_str(&format!("({} bytes, blake3 {:.12})", text.len(), digest));
        }
        serializer.serialize_str(text)
    }
}

/// Deserialises a text through the newtype for which the decoder resolves `from_env` and `from_file`.
fn sourced<'de, D: Deserializer<'de>>(name: &'static str, deserializer: D) -> Result<String, D::Error> {
    struct Visitor;
    impl<'de> de::Visitor<'de> for Visitor {
        type Value = String;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a string")
        }
        fn visit_newtype_struct<D: Deserializer<'de>>(self, deserializer: D) -> Result<String, D::Error> {
            String::deserialize(deserializer)
        }
        fn visit_str<E: de::Error>(self, text: &str) -> Result<String, E> {
            Ok(text.to_owned())
        }
    }
    deserializer.deserialize_newtype_struct(name, Visitor)
}

impl<'de> Deserialize<'de> for Secret {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        sourced(SOURCED_SECRET, deserializer).map(Self::new)
    }
}

impl<'de, R> Deserialize<'de> for Text<R> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        sourced(SOURCED_TEXT, deserializer).map(|text| Self::new(&text))
    }
}

/// The schema name of [`Secret`].
pub const SECRET_SCHEMA: &str = "Secret";
/// The schema name of [`Text`].
pub const TEXT_SCHEMA: &str = "Text";

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
    struct Counted;

    impl Reading for Counted {
        fn read(_: &str) -> Self {
            READ.fetch_add(1, Ordering::Relaxed);
            Self
        }
    }

    #[test]
    fn a_text_and_its_clones_are_parsed_once() {
        let text = Text::<Counted>::new("a");
        let clone = text.clone();
        assert_eq!(READ.load(Ordering::Relaxed), 0);
        for text in [&text, &clone, &text] {
            text.read();
        }
        assert_eq!(READ.load(Ordering::Relaxed), 1);
        let (mut same, mut other) = (Text::<Counted>::new("a"), Text::<Counted>::new("b"));
        same.keep_reading(&text);
        same.read();
        assert_eq!(READ.load(Ordering::Relaxed), 1);
        other.keep_reading(&text);
        other.read();
        assert_eq!((READ.load(Ordering::Relaxed), other.as_str()), (2, "b"));
    }

    #[test]
    fn a_secret_is_masked_unless_it_is_revealed_on_purpose() {
        let secret = Secret::new("hunter2");
        let json = || serde_json::to_string(&secret).unwrap_or_default();
        assert_eq!(json(), "\"********\"");
        assert_eq!(format!("{secret:?}"), MASK);
        assert_eq!(reveal(json), "\"hunter2\"");
        assert_eq!(json(), "\"********\"");
    }

    #[test]
    fn a_reviewer_learns_only_whether_a_secret_changes() {
        let review = Review::default();
        let json = |text: &str| serde_json::to_string(&Secret::new(text)).unwrap_or_default();
        assert_eq!(review.before(|| json("a")), "\"(secret)\"");
        assert_eq!(review.after(|| json("a")), "\"(secret)\"");
        assert_eq!(review.after(|| json("b")), "\"(secret, changed)\"");
    }
}
