//! The claims of a person: texts, and the name under which the person is in the history.

use crate::server::prelude::*;
use crate::syntax::text::is_invisible;

/// The claims that usually have a name that others know, best first.
const NAMES: [&str; 2] = [EMAIL, "preferred_username"];
/// The claim that counts only if the provider has verified it: at some, anyone can claim any address.
const EMAIL: &str = "email";
const EMAIL_VERIFIED: &str = "email_verified";
/// The claim with the name that a person has chosen.
const FULL_NAME: &str = "name";
/// The claim that identifies a person at the provider.
const SUBJECT: &str = "sub";
/// The most bytes of a name.
pub(super) const MOST_NAME_BYTES: usize = 200;
/// The most names in one claim that the person can be refused by: the cookie of a session has all of them.
const MOST_NAMES: usize = 3;

/// The verified claims of a person.
pub(super) struct PersonClaims<'c>(pub &'c Map<String, Value>);

impl PersonClaims<'_> {
    /// The texts in a claim: one, or those of a list. Dots in a name that no claim has lead into objects.
    pub(super) fn texts(&self, name: &str) -> impl Iterator<Item = &str> {
        texts_of(self.value(name).filter(|_| name != EMAIL || self.has_verified_email()))
    }

    /// The names that the person can be refused by, whether the provider has verified them or not. `first` is the claim that
    /// counts before the usual ones.
    pub(super) fn refusable_names(&self, first: &str) -> impl Iterator<Item = &str> {
        let claims = std::iter::once(first).chain(NAMES).chain([FULL_NAME, SUBJECT]);
        claims.flat_map(move |claim| texts_of(self.value(claim)).take(MOST_NAMES))
    }

    fn value(&self, name: &str) -> Option<&Value> {
        if let Some(value) = self.0.get(name) {
            return Some(value);
        }
        let mut steps = name.split('.');
        let first = self.0.get(steps.next()?)?;
        steps.try_fold(first, |value, step| value.as_object()?.get(step))
    }

    fn has_verified_email(&self) -> bool {
        match self.0.get(EMAIL_VERIFIED) {
            Some(Value::Bool(is_verified)) => *is_verified,
            // Some providers write it as a text.
            Some(value) => value.as_str() == Some("true"),
            None => false,
        }
    }

    /// The subject.
    pub(super) fn subject(&self) -> &str {
        self.texts(SUBJECT).next().unwrap_or_default()
    }

    /// Whether a name is the address that the provider has verified.
    pub(super) fn verifies(&self, name: &str) -> bool {
        self.texts(EMAIL).any(|address| address.trim() == name)
    }

    /// The name under which others know the person. `first` is the claim that counts before the usual ones.
    pub(super) fn name(&self, first: &str) -> Option<&str> {
        let names = std::iter::once(first).chain(NAMES).chain([SUBJECT]);
        let mut texts = names.filter_map(|name| self.texts(name).next()).map(str::trim);
        // A name is shown in terminals and logs, and must not look like another one.
        let is_distinct = |text: &str| !text.contains(is_invisible) && escaped(text) == text;
        let is_shown = |text: &&str| !text.is_empty() && text.len() <= MOST_NAME_BYTES && is_distinct(text);
        texts.find(is_shown)
    }
}

/// The texts of a value: itself, or those of a list.
fn texts_of(value: Option<&Value>) -> impl Iterator<Item = &str> {
    let list = value.and_then(Value::as_array).into_iter().flatten();
    value.into_iter().chain(list).filter_map(Value::as_str)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::json;

    use super::*;

    fn texts(claims: &Value, name: &str) -> Vec<String> {
        PersonClaims(claims.as_object().unwrap()).texts(name).map(str::to_owned).collect()
    }

    #[test]
    fn a_claim_has_one_text_or_several() {
        let claims = json!({
            "groups": ["a", 7, "b", ["c"]],
            "one": "x",
            "a.b": "flat",
            "a": {"b": "deep", "c": {"d": ["e"]}},
            "n": 5,
        });
        assert_eq!(texts(&claims, "groups"), ["a", "b"]);
        assert_eq!(texts(&claims, "one"), ["x"]);
        assert_eq!(texts(&claims, "a.b"), ["flat"]);
        assert_eq!(texts(&claims, "a.c.d"), ["e"]);
        for none in ["n", "a", "a.c", "a.c.d.e", "", ".", "one.x"] {
            assert!(texts(&claims, none).is_empty(), "{none}");
        }
    }

    #[test]
    fn an_address_counts_only_if_it_is_verified() {
        for (verified, counts) in [
            (json!(true), true),
            (json!("true"), true),
            (json!(false), false),
            (json!("false"), false),
            (json!(1), false),
            (json!(null), false),
        ] {
            let claims = json!({"email": "ada@example.com", "email_verified": verified, "sub": "1"});
            assert_eq!(!texts(&claims, "email").is_empty(), counts, "{claims}");
            let name = PersonClaims(claims.as_object().unwrap()).name("").unwrap().to_owned();
            assert_eq!(name, if counts { "ada@example.com" } else { "1" });
            assert_eq!(PersonClaims(claims.as_object().unwrap()).verifies("ada@example.com"), counts);
        }
        assert!(texts(&json!({"email": "ada@example.com"}), "email").is_empty());
    }

    #[test]
    fn a_name_is_one_that_can_be_shown() {
        let name =
            |claims: Value, first: &str| PersonClaims(claims.as_object().unwrap()).name(first).map(str::to_owned);
        let claims = json!({"sub": "1", "preferred_username": " ada ", "name": "Ada Lovelace"});
        assert_eq!(name(claims.clone(), "").as_deref(), Some("ada"));
        assert_eq!(name(claims, "name").as_deref(), Some("Ada Lovelace"));
        for hostile in ["a\nb", "\u{202e}ada", "a\u{ad}da", "", " ", &"x".repeat(MOST_NAME_BYTES + 1)] {
            let claims = json!({"sub": "1", "preferred_username": hostile});
            assert_eq!(name(claims, "").as_deref(), Some("1"), "{hostile:?}");
        }
    }
}
