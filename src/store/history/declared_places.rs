//! Where sources declare resources. Every write over the API to a resource of a source asks for it, so the newest answers
//! stay in memory: the index of the history is behind the newest commits, and a write must not wait for it.

use std::ops::ControlFlow;

use crate::model::Key;
use crate::store::error::StoreError;
use crate::store::open_store::Store;

impl Store {
    /// Returns what [`Store::declared_at`] does if it is in memory.
    pub(crate) fn known_declaration(&self, key: &Key, source: &str) -> Option<Option<String>> {
        self.declared.get(key).0.filter(|(of, _)| of == source).map(|(_, place)| place)
    }

    /// Returns the file and line that declared a resource when its source last changed it, as far as the history has
    /// them.
    pub(crate) fn declared_at(&self, key: &Key, source: &str) -> Result<Option<String>, StoreError> {
        let (known, version) = self.declared.get(key);
        if let Some((_, place)) = known.filter(|(of, _)| of == source) {
            return Ok(place);
        }
        let mut place = None;
        self.resource_history(&key.path(), u64::MAX, Some(source), &mut |_, entry| {
            place = Some(entry.place).filter(|place| !place.is_empty()).map(str::to_owned);
            Ok(ControlFlow::Break(()))
        })?;
        self.declared.keep(key.clone(), (source.to_owned(), place.clone()), version);
        Ok(place)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::model::{Author, Claim, HttpsEdge, Id, Kind, Operation};
    use crate::store::{Attempt, MEMORY};

    fn key(id: &str) -> Key {
        Key::new(Kind::HttpsEdge, Id::new(id))
    }

    fn create(id: &str) -> Operation {
        let claim = Some(Arc::new(Claim::new("shop", id)));
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
            let is_known = |id: &str| store.known_declaration(&key(id), "shop").is_some();
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
}
