//! The beginning of each source's state, its last attempt, and the manifests of its last sync: a restart changes none of
//! them (D58, D78, D83).
//!
//! The history cannot tell: it has no record of manifests that were in sync. So the file `conditions` next to the store
//! has the last state of each source with its beginning. If the first run of the next process finds the same state,
//! the beginning still holds; otherwise it begins with that run. A damaged file is replaced: states then begin with the
//! process, a rollback knows the manifests that it undoes only from the history until the next sync, and what manifests have
//! taken over from others counts as drift until then.

use super::condition::{Condition, Reason};
use crate::reconcile::prelude::*;
use crate::reconcile::sources::entries::{self, SourceEntries};
use crate::store::history::after_rollback::SyncedManifests;
use crate::store::history::external_writes::Baseline;

/// The file, next to the files of the store.
const FILE: &str = "conditions";

/// The condition of a source, as the last process that followed it has left it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct KnownCondition {
    /// The reason, which tells the state.
    pub reason: Reason,
    /// The beginning of the state.
    pub since: Timestamp,
    /// The beginning of the suspension by the configuration file, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suspended_since: Option<Timestamp>,
    /// The digest of the attempt that changed nothing and is in the history, if the source is still so: a restart, which finds
    /// it again, does not record it again (D58).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<String>,
    /// The manifests of the last sync after which the store matched them, or a part of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub manifests: Option<SyncedManifests>,
    /// The last sync that found what they declare, for drift (D85).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline: Option<Baseline>,
}

impl KnownCondition {
    /// A condition of a source of which nothing else is known.
    pub(crate) fn new(condition: &Condition) -> Self {
        let Condition { reason, last_transition_time: since, .. } = *condition;
        Self { reason, since, suspended_since: None, attempt: None, manifests: None, baseline: None }
    }
}

/// Reads the conditions of the sources of a store. Without a file, or with a damaged one, states begin with the process.
pub(super) fn open(store: Arc<Store>) -> SourceEntries<KnownCondition> {
    SourceEntries::open(Arc::clone(&store), FILE).unwrap_or_else(|damaged| {
        tracing::warn!("cannot read the states of the sources; they begin now: {}", damaged.message);
        SourceEntries::new(store, FILE)
    })
}

/// The manifests of each source's last sync, which this or another process has made.
pub(crate) fn synced_manifests(store: &Store) -> BTreeMap<String, SyncedManifests> {
    read(store).into_iter().filter_map(|(source, known)| Some((source, known.manifests?))).collect()
}

/// The last sync of a source that found what its manifests declare, if this or another process has made one.
pub(crate) fn baseline(store: &Store, source: &str) -> Option<Baseline> {
    let revision = store.snapshot().revision;
    read(store).remove(source)?.baseline.filter(|baseline| baseline.is_reached_at(revision))
}

fn read(store: &Store) -> BTreeMap<String, KnownCondition> {
    entries::read(store, FILE).unwrap_or_else(|damaged| {
        tracing::warn!("cannot read which manifests the sources had: {}", damaged.message);
        BTreeMap::new()
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::store::clock;

    #[test]
    fn a_condition_survives_a_restart_and_a_damaged_file_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let opened = || open(Arc::new(Store::open(folder.path().join("store")).unwrap()));
        let manifests = Some(SyncedManifests { content: "00".to_owned(), revision: Some(4), declares: None });
        let (reason, since) = (Reason::InSync, clock::now());
        let agreed = Baseline::after(None, 0, &BTreeSet::new());
        let known = KnownCondition { reason, since, suspended_since: None, attempt: None, manifests, baseline: agreed };
        opened().set("shop", known.clone()).unwrap();
        let store = Arc::new(Store::open(folder.path().join("store")).unwrap());
        let again = open(Arc::clone(&store));
        assert_eq!(synced_manifests(&store).remove("shop"), known.manifests);
        assert_eq!((baseline(&store, "shop"), baseline(&store, "docs")), (known.baseline.clone(), None));
        assert_eq!((again.get("shop"), again.get("docs")), (Some(known.clone()), None));
        drop((again, store));
        std::fs::write(folder.path().join("store").join(FILE), "{").unwrap();
        let damaged = opened();
        assert_eq!(damaged.get("shop"), None);
        damaged.set("shop", known.clone()).unwrap();
        drop(damaged);
        assert_eq!(opened().get("shop"), Some(known));
    }
}
