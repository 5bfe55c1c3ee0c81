//! The beginning of each source's state, and its last attempt: a restart changes neither (D58, D83).
//!
//! The history cannot tell: it has no record of manifests that were in sync. So the file `conditions` next to the store
//! has the last status of each source with its beginning. If the first run of the next process finds the same status,
//! the beginning still holds; otherwise it begins with that run. Nothing but times depends on the file, so a damaged
//! one is replaced.

use super::health::Status;
use crate::reconcile::prelude::*;
use crate::reconcile::sources::entries::SourceEntries;

/// The file, next to the files of the store.
const FILE: &str = "conditions";

/// The condition of a source, as the last process that followed it has left it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct KnownCondition {
    /// Whether the store matched the manifests.
    pub status: Status,
    /// The beginning of the state.
    pub since: Timestamp,
    /// The beginning of the suspension by the configuration file, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suspended_since: Option<Timestamp>,
    /// The digest of the attempt that changed nothing and is in the history, if the source is still so: a restart, which finds
    /// it again, does not record it again (D58).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<String>,
}

/// Reads the conditions of the sources of a store. Without a file, or with a damaged one, states begin with the process.
pub(super) fn open(store: Arc<Store>) -> SourceEntries<KnownCondition> {
    SourceEntries::open(Arc::clone(&store), FILE).unwrap_or_else(|damaged| {
        tracing::warn!("cannot read the states of the sources; they begin now: {}", damaged.message);
        SourceEntries::new(store, FILE)
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
        let known =
            KnownCondition { status: Status::Synced, since: clock::now(), suspended_since: None, attempt: None };
        opened().set("shop", known.clone()).unwrap();
        let again = opened();
        assert_eq!((again.get("shop"), again.get("docs")), (Some(known.clone()), None));
        drop(again);
        std::fs::write(folder.path().join("store").join(FILE), "{").unwrap();
        let damaged = opened();
        assert_eq!(damaged.get("shop"), None);
        damaged.set("shop", known.clone()).unwrap();
        drop(damaged);
        assert_eq!(opened().get("shop"), Some(known));
    }
}
