//! The people who are refused whatever their claims say: `refused` in the configuration file. It ends sign-ins that nobody can take
//! back, because no server keeps them.

use arc_swap::ArcSwap;

use super::person::SignedInPerson;
use crate::server::prelude::*;

/// The owners or names of people who are refused now. Clones share them, so that a reload of the configuration changes all.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(from = "BTreeSet<String>")]
pub(crate) struct RefusedPeople(Arc<ArcSwap<BTreeSet<String>>>);

impl From<BTreeSet<String>> for RefusedPeople {
    fn from(all: BTreeSet<String>) -> Self {
        Self(Arc::new(ArcSwap::from_pointee(all)))
    }
}

impl RefusedPeople {
    /// Refuses the people of another list instead. Returns whether they are others.
    pub(crate) fn replace(&self, read: &Self) -> bool {
        let read = read.0.load_full();
        *self.0.swap(Arc::clone(&read)) != *read
    }

    /// Whether a person is refused.
    pub(super) fn has(&self, person: &SignedInPerson) -> bool {
        let all = self.0.load();
        all.contains(person.owner().as_str()) || all.contains(person.given_name())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_person_is_refused_by_owner_or_name_from_the_next_reload_on() {
        let person = |subject: &str, name: &str| SignedInPerson::new("https://a", subject, Some(name), BTreeSet::new());
        let (ada, bob) = (person("1", "ada"), person("2", "bob"));
        let refused = RefusedPeople::default();
        let in_use = refused.clone();
        let listed =
            |all: &[&str]| -> RefusedPeople { serde_json::from_value(serde_json::to_value(all).unwrap()).unwrap() };
        assert!(!in_use.has(&ada) && !refused.replace(&listed(&[])));
        for list in [["ada"], [ada.owner().as_str()]] {
            assert!(refused.replace(&listed(&list)));
            assert!(in_use.has(&ada) && !in_use.has(&bob), "{list:?}");
        }
        assert!(refused.replace(&listed(&[])) && !in_use.has(&ada));
    }
}
