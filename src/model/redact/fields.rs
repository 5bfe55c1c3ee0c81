//! Detects names of secrets: those in the schemas, misspelt ones, and common words for secrets.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::model::secret::SECRET_SCHEMA;

/// Words that make a name secret, in lower case and without separators.
const STEMS: &[&str] =
    &["secret", "password", "passwd", "passphrase", "token", "private", "credential", "apikey", "authorization"];
/// Like [`STEMS`], but so similar to other words that misspellings do not count.
const EXACT_STEMS: &[&str] = &["scrt", "hmac", "accesskey", "clientkey", "signingkey", "keypem"];
/// The length of a prefix that identifies a secret field.
const SHORTEST_START: usize = 8;
/// Parts of a name that are too short for misspellings.
const SHORT: &[&str] = &["pass", "pwd", "pw", "psk"];
/// Words that make a name secret even without a separator.
const ALONE: &[&str] = &["password", "passwd", "passphrase"];

/// The field names in the schemas of manifests.
#[derive(Debug, Default)]
pub(crate) struct Fields {
    secret: BTreeSet<String>,
    public: BTreeSet<String>,
    /// The fields whose values are mappings with a secret.
    holders: BTreeSet<String>,
}

impl Fields {
    /// Collects the fields of a JSON Schema. An ambiguous name counts as secret.
    pub(crate) fn of(schema: &Value) -> Self {
        let mut fields = Self::default();
        let mut guarded = BTreeSet::new();
        definitions_with_secrets(schema, &mut guarded);
        fields.gather(schema, &guarded);
        let Self { secret, public, .. } = &mut fields;
        // A letter too many in the name of a secret, as in `secrets`, makes its value no less secret.
        let is_secret =
            |name: &str| secret.contains(name) || name.strip_suffix('s').is_some_and(|it| secret.contains(it));
        public.retain(|name| !is_secret(name));
        fields
    }

    fn gather(&mut self, schema: &Value, guarded: &BTreeSet<&str>) {
        match schema {
            Value::Array(items) => items.iter().for_each(|item| self.gather(item, guarded)),
            Value::Object(members) => {
                let properties = members.get("properties").and_then(Value::as_object);
                for (name, property) in properties.into_iter().flatten() {
                    let names = if is_secret(property) { &mut self.secret } else { &mut self.public };
                    names.insert(name.clone());
                    if refers(property, &|name| guarded.contains(name)) {
                        self.holders.insert(name.clone());
                    }
                }
                members.values().for_each(|member| self.gather(member, guarded));
            }
            _ => {}
        }
    }

    /// The names of the secret fields.
    #[cfg(test)]
    pub(crate) fn secrets(&self) -> impl Iterator<Item = &str> {
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

    /// Whether the value of a field is a mapping with a secret: a plain text in its place may be the secret.
    pub(super) fn holds_secret(&self, name: &str) -> bool {
        self.holders.contains(name)
    }

    /// Whether a word is exactly the name of a secret, as in a comment.
    pub(super) fn names_secret(&self, name: &str) -> bool {
        self.secret.contains(name) || ALONE.contains(&name)
    }

    /// Whether a key is the name of a secret, or may be a misspelling of one.
    pub(super) fn is_secret(&self, name: &str) -> bool {
        // This is called for every word of a file, and most words of a large file are numbers.
        if !name.bytes().any(|byte| byte.is_ascii_alphabetic()) || self.is_public(name) {
            return false;
        }
        let plain = plain(name);
        self.is_near(&plain)
            || STEMS.iter().chain(EXACT_STEMS).any(|stem| plain.contains(stem))
            || parts(name).iter().any(|it| suspect(it))
    }

    /// Like [`Self::is_secret`], for a word without a colon.
    pub(super) fn is_secret_alone(&self, name: &str) -> bool {
        let plain = plain(name);
        !self.is_public(name) && (self.is_near(&plain) || ALONE.contains(&plain.as_str()))
    }

    fn is_near(&self, plain_name: &str) -> bool {
        self.secret.iter().map(|field| plain(field)).any(|field| {
            (field.len().abs_diff(plain_name.len()) <= 2 && strsim::damerau_levenshtein(&field, plain_name) <= 2)
                || (plain_name.len() >= SHORTEST_START && field.starts_with(plain_name))
        })
    }
}

fn suspect(part: &str) -> bool {
    SHORT.contains(&part)
        || (part.len() >= 4
            && STEMS
                .iter()
                .any(|stem| stem.len().abs_diff(part.len()) <= 1 && strsim::damerau_levenshtein(stem, part) <= 1))
}

/// Whether a property's schema is a secret, or a list or choice of secrets.
fn is_secret(property: &Value) -> bool {
    refers(property, &|name| name == SECRET_SCHEMA)
}

/// Whether a property refers to one of the named definitions, or is a list or choice of them.
fn refers(property: &Value, is_wanted: &dyn Fn(&str) -> bool) -> bool {
    let mut choices = ["anyOf", "oneOf", "allOf"].iter().filter_map(|word| property.get(word)?.as_array()).flatten();
    let target = property.get("$ref").and_then(Value::as_str).and_then(|to| to.rsplit('/').next());
    target.is_some_and(is_wanted)
        || property.get("items").is_some_and(|items| refers(items, is_wanted))
        || choices.any(|choice| refers(choice, is_wanted))
}

/// Gathers the names of the definitions that have a secret among their own properties.
fn definitions_with_secrets<'s>(schema: &'s Value, found: &mut BTreeSet<&'s str>) {
    for (name, definition) in schema.get("$defs").and_then(Value::as_object).into_iter().flatten() {
        let mut properties = definition.get("properties").and_then(Value::as_object).into_iter().flatten();
        if properties.any(|(_, property)| is_secret(property)) {
            found.insert(name);
        }
    }
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
