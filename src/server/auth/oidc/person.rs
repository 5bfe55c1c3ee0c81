//! A person who has signed in, as sessions and tokens have it.

use super::roles::PersonRights;
use crate::model::author::PERSON;
use crate::server::auth::caller::Caller;
use crate::server::prelude::*;

/// What separates the IDs of people from all other derived IDs.
const PURPOSE: &str = "person";
/// The start of the ID of an owner who is a person.
const OWNER: &str = "usr_";

/// A person who has signed in through the provider.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SignedInPerson {
    /// The name under which others know the person.
    name: String,
    /// The owner: it stays the same when the name changes.
    owner: Id,
    /// The digests of the claims that give rights.
    pub(super) grants: BTreeSet<String>,
}

impl SignedInPerson {
    /// Creates a person from what a provider says.
    pub(super) fn new(issuer: &str, subject: &str, name: Option<&str>, grants: BTreeSet<String>) -> Self {
        let owner = Id::derived(OWNER, [PURPOSE.as_bytes(), issuer.as_bytes(), subject.as_bytes()]);
        let name = name.map_or_else(|| owner.to_string(), str::to_owned);
        Self { name, owner, grants }
    }

    /// The name.
    pub(in crate::server) fn name(&self) -> &str {
        &self.name
    }

    /// What stands in the place of an API key.
    pub(in crate::server) fn key(&self) -> Id {
        Id::new(&format!("{PERSON}{}", self.name))
    }

    /// The owner.
    pub(in crate::server) fn owner(&self) -> &Id {
        &self.owner
    }

    /// The person as a caller.
    pub(super) fn caller(&self, rights: PersonRights) -> Caller {
        Caller { key: self.key(), owner: self.owner.clone(), role: rights.role, scope: rights.scope }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owner_is_a_subject_of_an_issuer_whatever_its_name() {
        let person = |issuer: &str, subject: &str, name: Option<&str>| {
            SignedInPerson::new(issuer, subject, name, BTreeSet::new())
        };
        let ada = person("https://a", "1", Some("ada@example.com"));
        assert_eq!((ada.key().as_str(), ada.name()), ("person:ada@example.com", "ada@example.com"));
        assert!(ada.owner().as_str().starts_with("usr_"));
        assert_eq!(person("https://a", "1", Some("ada")).owner(), ada.owner());
        for other in [person("https://a", "2", None), person("https://b", "1", None)] {
            assert_ne!(other.owner(), ada.owner());
            assert_eq!(other.name(), other.owner().as_str());
        }
    }
}
