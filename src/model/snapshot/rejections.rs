//! The manifests that a rollback rejected: part of the state, so that it is exactly as durable as the rollback (D78).

use std::{collections::BTreeSet, sync::Arc};

use super::Snapshot;
use crate::model::author::{Author, RejectedManifests};
use crate::model::key::Key;

impl Snapshot {
    /// The manifests of a source that its loop does not apply again.
    pub(crate) fn rejected(&self, source: &str) -> &[RejectedManifests] {
        self.rejected.get(source).map(|rejected| &**rejected).unwrap_or_default()
    }

    /// The sources with such manifests.
    pub(crate) fn sources_with_rejected(&self) -> impl Iterator<Item = &String> {
        self.rejected.keys()
    }

    /// Sets the manifests of a source; none removes its entry.
    pub(crate) fn set_rejected(&mut self, source: &str, rejected: Vec<RejectedManifests>) {
        match rejected.is_empty() {
            true => self.rejected.remove(source),
            false => self.rejected.insert(source.to_owned(), Arc::from(rejected)),
        };
    }

    /// Returns the state after a commit of an author. Once other manifests of a source are applied, none of it are
    /// rejected; a rollback says which ones are.
    #[must_use]
    pub(crate) fn committed_by(mut self, author: &Author) -> Self {
        match author {
            Author::Source { source, .. } => self.set_rejected(source, Vec::new()),
            Author::Rollback { source, rejected, .. } => {
                match source {
                    Some(source) => self.set_rejected(source, Vec::new()),
                    None => self.rejected.clear(),
                }
                for manifests in rejected {
                    let known = self.rejected(&manifests.source).iter().cloned();
                    let known = known.chain([manifests.clone()]).collect();
                    self.set_rejected(&manifests.source, known);
                }
            }
            Author::Api { .. } | Author::Local => {}
        }
        self
    }

    /// Returns the state with notes about the changed resources that a command gave to a source with rejected manifests.
    /// Without them, a transfer after a rollback could not be told from one that the rollback brought back undeclared.
    #[must_use]
    pub(crate) fn noting_transfers(mut self, before: &Snapshot, changed: &BTreeSet<Key>) -> Self {
        let sources: Vec<String> = self.sources_with_rejected().cloned().collect();
        for source in sources {
            let moved: BTreeSet<String> =
                changed.iter().filter(|key| self.was_transferred(before, key, &source)).map(Key::path).collect();
            let mut rejected = self.rejected(&source).to_vec();
            if let Some(last) = rejected.last_mut().filter(|_| !moved.is_empty()) {
                let all: BTreeSet<String> =
                    moved.into_iter().chain(std::mem::take(&mut last.retransferred_paths)).collect();
                last.retransferred_paths = all.into_iter().collect();
                self.set_rejected(&source, rejected);
            }
        }
        self
    }

    /// The paths of resources that were transferred to a source by command since the rollback that rejected its manifests.
    pub(crate) fn retransferred_paths(&self, source: &str) -> BTreeSet<&str> {
        self.rejected(source).iter().flat_map(|it| &it.retransferred_paths).map(String::as_str).collect()
    }

    /// Whether a resource of another source is now this source's, which has not declared it yet.
    fn was_transferred(&self, before: &Snapshot, key: &Key, source: &str) -> bool {
        let now = self.get(key).and_then(|entry| entry.claim.as_deref());
        let then = before.get(key).and_then(|entry| entry.claim.as_deref());
        now.is_some_and(|now| now.source == source && now.awaits_manifest())
            && then.is_some_and(|then| then.source != source)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::model::claim::Claim;
    use crate::model::id::Id;
    use crate::model::kind::Kind;
    use crate::model::kind::https_edge::HttpsEdge;
    use crate::model::operation::Operation;

    fn rejected(source: &str, commit: &str) -> RejectedManifests {
        RejectedManifests {
            source: source.into(),
            commit: Some(commit.into()),
            digest: String::new(),
            digest_by_name: String::new(),
            content: String::new(),
            transferred_paths: Vec::new(),
            retransferred_paths: Vec::new(),
        }
    }

    fn rollback(source: Option<&str>, rejected: Vec<RejectedManifests>) -> Author {
        Author::Rollback { to: 1, source: source.map(str::to_owned), rejected, through: None }
    }

    #[test]
    fn a_rollback_rejects_manifests_until_their_source_applies_others() {
        let both = vec![rejected("shop", "one"), rejected("shop", "two"), rejected("docs", "three")];
        let state = Snapshot::default().committed_by(&rollback(None, both.clone()));
        assert_eq!(state.rejected("shop"), both.get(..2).unwrap_or_default());
        let state = state.committed_by(&Author::Local).committed_by(&Author::source("other", None));
        assert_eq!(state.sources_with_rejected().collect::<Vec<_>>(), ["docs", "shop"]);
        let one = state.clone().committed_by(&rollback(Some("shop"), vec![rejected("shop", "four")]));
        assert_eq!((one.rejected("shop").len(), one.rejected("docs").len()), (1, 1));
        assert!(state.clone().committed_by(&rollback(None, Vec::new())).rejected("docs").is_empty());
        assert!(!state.is_same(&Snapshot::default()), "the manifests that were left are part of the state");
        let applied = state.committed_by(&Author::source("shop", None));
        assert_eq!((applied.rejected("shop").len(), applied.rejected("docs").len()), (0, 1));
    }

    #[test]
    fn a_transfer_is_noted_for_a_source_with_rejected_manifests() {
        let key = Key::new(Kind::HttpsEdge, Id::new("edghts_shop"));
        let held = |source: &str| Claim::new(source, "shop");
        let given = || Claim { transfer_to: Some("b".into()), transferred_from: Some("a".into()), ..held("b") };
        let create = Operation::Create {
            key: key.clone(),
            spec: Arc::new(HttpsEdge::default()),
            claim: Some(Arc::new(held("a"))),
            token: None,
        };
        let state = Snapshot::default().apply(&[create], Timestamp::UNIX_EPOCH).unwrap().0;
        let state = state.committed_by(&rollback(None, vec![rejected("b", "one"), rejected("b", "two")]));
        let claimed = |state: &Snapshot, claim: Claim| {
            let claim = Operation::Claim { key: key.clone(), claim: Some(Arc::new(claim)) };
            let (next, changed) = state.apply(&[claim], Timestamp::UNIX_EPOCH).unwrap();
            next.noting_transfers(state, &changed)
        };
        let moved = claimed(&state, given());
        assert_eq!(moved.retransferred_paths("b").into_iter().collect::<Vec<_>>(), [key.path()]);
        assert_eq!(moved.rejected("b").len(), 2);
        let twice = claimed(&claimed(&moved, held("a")), given());
        assert_eq!(twice.retransferred_paths("b").len(), 1);
        // Resources that a rollback returns are not transferred.
        let returned = claimed(&state, Claim { returned: true, ..given() });
        assert!(returned.retransferred_paths("b").is_empty());
        let undeclared = claimed(&claimed(&state, held("b")), given());
        assert!(undeclared.retransferred_paths("b").is_empty());
    }
}
