//! The people who are refused whatever their claims say: `refused` in the configuration file. It ends sign-ins that nobody can take
//! back, because no server keeps them.
//!
//! An entry refuses everybody who has it as owner or as any name, in any case, whether the provider has verified the name or
//! not: refusing one more is safer than one less. It can have any form in which the history and the dashboard show a person.

use arc_swap::ArcSwap;
use unicode_normalization::UnicodeNormalization;

use super::person::{OWNER, SignedInPerson};
use crate::model::Faults;
use crate::model::author::PERSON;
use crate::server::prelude::*;

/// The start of the ID of an API key, and the characters of an ID after its start.
const KEY: &str = "ak_";
const ID_CHARS: usize = 27;
/// The digits of the digest of a name.
const DIGITS: usize = 16;

/// The people who are refused now. Clones share them, so that a reload of the configuration changes all.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(from = "Vec<String>")]
pub(crate) struct RefusedPeople(Arc<ArcSwap<RefusedNames>>);

/// The entries, and the digests of the names and owners in them.
#[derive(Debug, Default)]
struct RefusedNames {
    entries: Vec<String>,
    digests: BTreeSet<String>,
}

impl From<Vec<String>> for RefusedPeople {
    fn from(entries: Vec<String>) -> Self {
        let digests = entries.iter().flat_map(|entry| forms(entry)).map(name_digest).collect();
        Self(Arc::new(ArcSwap::from_pointee(RefusedNames { entries, digests })))
    }
}

impl RefusedPeople {
    /// Refuses the people of another list instead. Returns whether they are others.
    pub(crate) fn replace(&self, read: &Self) -> bool {
        let read = read.0.load_full();
        self.0.swap(Arc::clone(&read)).digests != read.digests
    }

    /// Whether a person is refused.
    pub(super) fn has(&self, person: &SignedInPerson) -> bool {
        let all = self.0.load();
        let known = [person.owner().as_str(), person.given_name()].map(name_digest);
        known.iter().chain(&person.refusable_names).any(|name| all.digests.contains(name))
    }

    /// Reports entries that would refuse nobody.
    pub(super) fn check(&self, faults: &mut Faults) {
        faults.each(&self.0.load().entries, |faults, entry| {
            if forms(entry).any(str::is_empty) {
                faults.report(Fault::new(Code::Required, "an entry of `refused` is empty").help("remove the entry"));
            } else if forms(entry).any(resembles_id) && !forms(entry).any(is_owner) {
                let message = format!("`{}` is neither the owner nor a name of a person", printable(entry));
                let help = "copy the owner, `usr_…`, from the history; to refuse an API key, revoke it";
                faults.report(Fault::new(Code::InvalidFormat, message).help(help));
            }
        });
    }
}

/// The digest of a name, whatever its case and the form of its accents.
pub(super) fn name_digest(name: &str) -> String {
    // An upper case letter can have several small ones, and some forms come from another case.
    let cased = name.nfkc().collect::<String>().trim().to_uppercase().to_lowercase();
    let name = cased.nfkc().collect::<String>();
    blake3::hash(name.as_bytes()).to_hex().chars().take(DIGITS).collect()
}

/// The names and owners in an entry: itself, what follows `person:`, and the owner in `ada (usr_…)`.
fn forms(entry: &str) -> impl Iterator<Item = &str> {
    let entry = entry.trim();
    let name = after(entry, PERSON).map_or(entry, str::trim);
    let inner = name.rsplit_once('(').and_then(|(_, inner)| inner.strip_suffix(')')).map(str::trim);
    [entry, name].into_iter().chain(inner.filter(|inner| after(inner, OWNER).is_some()))
}

/// What follows the start of a text.
fn after<'t>(text: &'t str, start: &str) -> Option<&'t str> {
    let (found, rest) = text.split_at_checked(start.len())?;
    found.eq_ignore_ascii_case(start).then_some(rest)
}

/// Whether a text is the ID of an owner who is a person.
fn is_owner(text: &str) -> bool {
    after(text, OWNER).is_some_and(|rest| rest.len() == ID_CHARS && is_alphanumeric(rest))
}

/// Whether a text looks like an ID or its beginning. Names can also start as IDs do.
fn resembles_id(text: &str) -> bool {
    [OWNER, KEY]
        .into_iter()
        .filter_map(|start| after(text, start))
        .any(|rest| is_alphanumeric(rest.trim_end_matches(['…', '.'])))
}

fn is_alphanumeric(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::json;

    use super::super::claims::PersonClaims;
    use super::*;

    fn listed(entries: &[&str]) -> RefusedPeople {
        serde_json::from_value(serde_json::to_value(entries).unwrap()).unwrap()
    }

    fn person(subject: &str, claims: &Value) -> SignedInPerson {
        let claims = PersonClaims(claims.as_object().unwrap());
        let names = claims.refusable_names("nickname").map(name_digest).collect();
        SignedInPerson::new("https://a", subject, claims.name("nickname"), BTreeSet::new()).with_names(false, names)
    }

    #[test]
    fn a_person_is_refused_by_owner_or_name_from_the_next_reload_on() {
        let [ada, bob] = ["ada", "bob"].map(|name| person(name, &json!({"preferred_username": name})));
        let refused = RefusedPeople::default();
        let in_use = refused.clone();
        assert!(!in_use.has(&ada) && !refused.replace(&listed(&[])));
        for list in [["ada"], [ada.owner().as_str()]] {
            assert!(refused.replace(&listed(&list)));
            assert!(in_use.has(&ada) && !in_use.has(&bob), "{list:?}");
        }
        assert!(refused.replace(&listed(&[])) && !in_use.has(&ada));
    }

    #[test]
    fn every_form_of_a_name_refuses_its_person() {
        let claims = |is_verified: bool| {
            json!({"sub": "a-1", "email": "Ada@example.com", "email_verified": is_verified, "preferred_username": "ada",
                "name": "Ada Lovelace", "nickname": ["countess", "aal"]})
        };
        let bob = person("b-2", &json!({"sub": "b-2", "preferred_username": "bob", "name": "Ada"}));
        for ada in [claims(true), claims(false)].map(|claims| person("a-1", &claims)) {
            let (owner, shown) = (ada.owner().to_string(), ada.name().into_owned());
            assert_eq!(shown, format!("countess ({owner})"));
            let forms = [shown.clone(), format!("person:{shown}"), shown.to_uppercase(), owner.to_lowercase(), owner];
            let names = ["ADA@EXAMPLE.COM", " ada@example.com ", "person:countess", "aal", "a-1", "ada lovelace"];
            for entry in forms.iter().map(String::as_str).chain(names) {
                let refused = listed(&["somebody", entry]);
                assert!(refused.has(&ada) && !refused.has(&bob), "{entry}");
            }
            assert!(!listed(&["ada@example", "example.com", "lovelace", "person:"]).has(&ada));
        }
        for claim in ["Jos\u{e9}", "Jose\u{301}", "\u{ff2a}os\u{e9}"] {
            let person = person("c-3", &json!({"sub": "c-3", "name": claim}));
            assert!(listed(&["jos\u{e9}"]).has(&person) && listed(&["jose\u{301}"]).has(&person), "{claim:?}");
        }
        for (claim, entry) in [("\u{1f0}an", "J\u{30c}AN"), ("stra\u{df}e", "STRASSE")] {
            let person = person("d-4", &json!({"sub": "d-4", "name": claim}));
            assert!(listed(&[entry]).has(&person), "{claim:?}");
        }
    }
}
