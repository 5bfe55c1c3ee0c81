//! A person who has signed in, as sessions and tokens have it.

use super::roles::PersonRights;
use crate::model::author::PERSON;
use crate::server::auth::caller::Caller;
use crate::server::prelude::*;

/// Separates the IDs of people from all other derived IDs.
const PURPOSE: &str = "person";
/// The start of the ID of an owner who is a person.
pub(super) const OWNER: &str = "usr_";

/// A person who has signed in through the provider.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SignedInPerson {
    /// The name under which others know the person.
    name: String,
    /// Whether the provider has verified that nobody else has the name.
    #[serde(default)]
    is_verified: bool,
    /// The owner: it stays the same when the name changes.
    owner: Id,
    /// The digests of the claims that give rights.
    pub(super) grants: BTreeSet<String>,
    /// The digests of all names that the provider gives.
    #[serde(default)]
    pub(super) refusable_names: BTreeSet<String>,
}

impl SignedInPerson {
    /// Creates a person from what a provider says.
    pub(super) fn new(issuer: &str, subject: &str, name: Option<&str>, grants: BTreeSet<String>) -> Self {
        let owner = Id::derived(OWNER, [PURPOSE.as_bytes(), issuer.as_bytes(), subject.as_bytes()]);
        let name = name.map_or_else(|| owner.to_string(), str::to_owned);
        Self { name, is_verified: false, owner, grants, refusable_names: BTreeSet::new() }
    }

    /// Notes whether the provider has verified the name, and the digests of all names that it gives.
    pub(super) fn with_names(self, is_verified: bool, refusable_names: BTreeSet<String>) -> Self {
        Self { is_verified, refusable_names, ..self }
    }

    /// The name that the provider gives.
    pub(super) fn given_name(&self) -> &str {
        &self.name
    }

    /// The name as others see it. With the owner, unless it is verified: two people may have chosen the same.
    pub(in crate::server) fn name(&self) -> Cow<'_, str> {
        match self.is_verified || self.name == self.owner.as_str() {
            true => Cow::Borrowed(self.name.as_str()),
            false => Cow::Owned(format!("{} ({})", self.name, self.owner)),
        }
    }

    /// The ID in the place of an API key.
    pub(in crate::server) fn key(&self) -> Id {
        Id::new(&format!("{PERSON}{}", self.name()))
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
        let chosen = person("https://a", "1", Some("ada@example.com"));
        let name = format!("ada@example.com ({})", chosen.owner());
        assert_eq!((chosen.key().as_str(), &*chosen.name()), (format!("person:{name}").as_str(), name.as_str()));
        let ada = SignedInPerson { is_verified: true, ..chosen };
        assert_eq!((ada.key().as_str(), &*ada.name()), ("person:ada@example.com", "ada@example.com"));
        assert!(ada.owner().as_str().starts_with("usr_"));
        assert_eq!(person("https://a", "1", Some("ada")).owner(), ada.owner());
        for other in [person("https://a", "2", None), person("https://b", "1", None)] {
            assert_ne!(other.owner(), ada.owner());
            assert_eq!(other.name(), other.owner().as_str());
        }
    }
}
