//! Detects names of secrets: those in the schemas, misspelt ones, and common words for secrets.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::model::secret::SECRET_SCHEMA;

/// Words that make a name secret, in lower case and without separators.
const STEMS: &[&str] =
    &["secret", "password", "passwd", "passphrase", "token", "private", "credential", "apikey", "authorization"];
/// Parts of a name that are too short to match misspelt.
const SHORT: &[&str] = &["pass", "pwd", "pw", "psk"];
/// Words that make a name secret even without a separator.
const ALONE: &[&str] = &["password", "passwd", "passphrase"];

/// The field names in the schemas of manifests.
#[derive(Debug, Default)]
pub struct Fields {
    secret: BTreeSet<String>,
    public: BTreeSet<String>,
}

impl Fields {
    /// Collects the fields of a JSON Schema. An ambiguous name counts as secret.
    pub fn of(schema: &Value) -> Self {
        let mut fields = Self::default();
        fields.gather(schema);
        let Self { secret, public } = &mut fields;
        public.retain(|name| !secret.contains(name));
        fields
    }

    fn gather(&mut self, schema: &Value) {
        match schema {
            Value::Array(items) => items.iter().for_each(|item| self.gather(item)),
            Value::Object(members) => {
                let properties = members.get("properties").and_then(Value::as_object);
                for (name, property) in properties.into_iter().flatten() {
                    let names = if is_secret(property) { &mut self.secret } else { &mut self.public };
                    names.insert(name.clone());
                }
                members.values().for_each(|member| self.gather(member));
            }
            _ => {}
        }
    }

    /// The names of the secret fields.
    pub fn secrets(&self) -> impl Iterator<Item = &str> {
        self.secret.iter().map(String::as_str)
    }

    /// Whether a field with exactly this name is public.
    pub(super) fn is_public(&self, name: &str) -> bool {
        self.public.contains(name)
    }

    /// Whether a field with exactly this name exists.
    pub(super) fn knows(&self, name: &str) -> bool {
        self.public.contains(name) || self.secret.contains(name)
    }

    /// Whether a key is that of a secret, possibly misspelt.
    pub(super) fn is_secret(&self, name: &str) -> bool {
        if self.is_public(name) {
            return false;
        }
        let plain = plain(name);
        self.is_near(&plain)
            || STEMS.iter().any(|stem| plain.contains(stem))
            || parts(name).iter().any(|it| suspect(it))
    }

    /// Like [`Self::is_secret`], for a word without a colon.
    pub(super) fn is_secret_alone(&self, name: &str) -> bool {
        let plain = plain(name);
        !self.is_public(name) && (self.is_near(&plain) || ALONE.contains(&plain.as_str()))
    }

    fn is_near(&self, plain_name: &str) -> bool {
        self.secret.iter().any(|field| strsim::damerau_levenshtein(&plain(field), plain_name) <= 2)
    }
}

fn suspect(part: &str) -> bool {
    SHORT.contains(&part) || (part.len() >= 4 && STEMS.iter().any(|stem| strsim::damerau_levenshtein(stem, part) <= 1))
}

/// Whether a property's schema is a secret, or a list or choice of secrets.
fn is_secret(property: &Value) -> bool {
    let mut choices = ["anyOf", "oneOf", "allOf"].iter().filter_map(|word| property.get(word)?.as_array()).flatten();
    let target = property.get("$ref").and_then(Value::as_str).and_then(|to| to.rsplit('/').next());
    target == Some(SECRET_SCHEMA) || property.get("items").is_some_and(is_secret) || choices.any(is_secret)
}

fn plain(name: &str) -> String {
    name.chars().filter(char::is_ascii_alphanumeric).map(|it| it.to_ascii_lowercase()).collect()
}

/// Splits a name into words in lower case: `clientSecret_2` is `client`, `secret` and `2`.
fn parts(name: &str) -> Vec<String> {
    let mut parts: Vec<String> = Vec::new();
    let mut follows_lower = false;
    for character in name.chars() {
        if !character.is_ascii_alphanumeric() {
            parts.push(String::new());
        } else {
            if parts.is_empty() || (follows_lower && character.is_ascii_uppercase()) {
                parts.push(String::new());
            }
            if let Some(part) = parts.last_mut() {
                part.push(character.to_ascii_lowercase());
            }
        }
        follows_lower = character.is_ascii_lowercase();
    }
    parts
}
