//! Where sources declare resources. Every write over the API to a resource of a source asks for it, so the newest answers
//! stay in memory: the index of the history is behind the newest commits, and a write must not wait for it.

use std::{
    ops::ControlFlow,
    sync::atomic::{AtomicU64, Ordering},
};

use quick_cache::sync::Cache;

use super::change_window::ChangedResource;
use crate::{
    model::key::Key,
    store::{Store, StoreError},
};

/// The most resources in memory.
const MOST_PLACES: usize = 10_000;

/// The places that were looked up.
pub(crate) struct DeclaredPlaces {
    /// Each resource with the source that was asked about, and the place of its declaration.
    places: Cache<Key, (String, Option<String>)>,
    /// How many commits of sources were published.
    commits: AtomicU64,
}

impl Default for DeclaredPlaces {
    fn default() -> Self {
        Self { places: Cache::new(MOST_PLACES), commits: AtomicU64::new(0) }
    }
}

impl DeclaredPlaces {
    /// Forgets what a commit of a source may have changed.
    pub(crate) fn forget(&self, changed: &[ChangedResource]) {
        self.commits.fetch_add(1, Ordering::SeqCst);
        if changed.len() > self.places.len() {
            self.places.retain(|key, _| changed.binary_search_by(|it| it.key.cmp(key)).is_err());
        } else {
            changed.iter().for_each(|it| drop(self.places.remove(&it.key)));
        }
    }

    /// Returns the place, and how many commits of sources were published.
    fn get(&self, key: &Key, source: &str) -> (Option<Option<String>>, u64) {
        let commits = self.commits.load(Ordering::SeqCst);
        (self.places.get(key).filter(|(of, _)| of == source).map(|(_, place)| place), commits)
    }

    /// Keeps a place, unless a source has committed since it was looked up.
    fn keep(&self, key: &Key, source: &str, place: Option<&String>, commits: u64) {
        self.places.insert(key.clone(), (source.to_owned(), place.cloned()));
        if self.commits.load(Ordering::SeqCst) != commits {
            self.places.remove(key);
        }
    }
}

impl Store {
    /// Returns what [`Store::declared_at`] does if it is in memory.
    pub(crate) fn known_declaration(&self, key: &Key, source: &str) -> Option<Option<String>> {
        self.declared.get(key, source).0
    }

    /// Returns the file and line that declared a resource when its source last changed it, as far as the history has
    /// them.
    pub(crate) fn declared_at(&self, key: &Key, source: &str) -> Result<Option<String>, StoreError> {
        let (known, commits) = self.declared.get(key, source);
        if let Some(place) = known {
            return Ok(place);
        }
        let mut place = None;
        self.story(&key.path(), u64::MAX, Some(source), &mut |_, entry| {
            place = Some(entry.place).filter(|place| !place.is_empty()).map(str::to_owned);
            Ok(ControlFlow::Break(()))
        })?;
        self.declared.keep(key, source, place.as_ref(), commits);
        Ok(place)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{
        model::{
            Kind,
            id::Id,
            kind::https_edge::HttpsEdge,
            operation::{Author, Claim, Operation},
        },
        store::{Attempt, MEMORY},
    };

    fn key(id: &str) -> Key {
        Key::new(Kind::HttpsEdge, Id::new(id))
    }

    fn create(id: &str) -> Operation {
        let claim = Some(Arc::new(Claim { source: "shop".into(), name: id.into(), ..Claim::default() }));
        Operation::Create { key: key(id), spec: Arc::new(HttpsEdge::default()), claim, token: None }
    }

    fn patch(id: &str, text: &str) -> Operation {
        let spec = Arc::new(HttpsEdge { description: text.into(), ..HttpsEdge::default() });
        Operation::Patch { key: key(id), spec, fields: vec!["description".into()] }
    }

    /// Commits operations of `shop` whose resources are declared at a place.
    fn apply(store: &Store, operations: Vec<Operation>, place: &str) {
        let places = operations.iter().map(|operation| (operation.key().clone(), place.to_owned())).collect();
        let attempt = Attempt { places, ..Attempt::new(Author::source("shop", None)) };
        store.commit_with(attempt, |_| Ok::<_, ()>(operations)).unwrap();
    }

    #[test]
    fn a_place_is_known_until_its_source_changes_the_resource() {
        let folder = tempfile::tempdir().unwrap();
        let on_disk = folder.path().join("store");
        for store in [Store::open(MEMORY).unwrap(), Store::open(&on_disk).unwrap()] {
            apply(&store, vec![create("edghts_1"), create("edghts_2")], "a.yaml:1");
            let place = |id: &str| store.declared_at(&key(id), "shop").unwrap();
            let is_known = |id: &str| store.declared.get(&key(id), "shop").0.is_some();
            let told = |text: &str| Some(text.to_owned());
            assert_eq!((place("edghts_1"), place("edghts_2")), (told("a.yaml:1"), told("a.yaml:1")));
            for number in 0..3 {
                let operations = vec![patch("edghts_1", &number.to_string())];
                store.commit_with(Attempt::new(Author::Local), |_| Ok::<_, ()>(operations)).unwrap();
            }
            assert!(is_known("edghts_1") && is_known("edghts_2"), "others have no say in it");
            assert_eq!(place("edghts_1"), told("a.yaml:1"));
            apply(&store, vec![patch("edghts_1", "applied")], "b.yaml:7");
            assert!(!is_known("edghts_1") && is_known("edghts_2"));
            assert_eq!((place("edghts_1"), place("edghts_2")), (told("b.yaml:7"), told("a.yaml:1")));
            assert_eq!(store.declared_at(&key("edghts_1"), "other").unwrap(), None);
        }
    }

    #[test]
    fn a_place_that_was_looked_up_before_a_commit_is_not_kept_after_it() {
        let places = DeclaredPlaces::default();
        let (_, commits) = places.get(&key("edghts_1"), "shop");
        places.forget(&[]);
        places.keep(&key("edghts_1"), "shop", Some(&"a.yaml:1".to_owned()), commits);
        assert_eq!(places.get(&key("edghts_1"), "shop").0, None);
        let (_, commits) = places.get(&key("edghts_1"), "shop");
        for number in 0..2 * MOST_PLACES {
            places.keep(&key(&format!("edghts_{number}")), "shop", None, commits);
        }
        assert!(places.places.len() <= MOST_PLACES, "memory is bounded");
    }
}
