//! Which manifests a rollback left: part of the state, so that it is exactly as durable as the rollback (D78).

use std::sync::Arc;

use super::Snapshot;
use crate::model::operation::{Author, RejectedManifests};

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
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rejected(source: &str, commit: &str) -> RejectedManifests {
        RejectedManifests {
            source: source.into(),
            commit: Some(commit.into()),
            digest: String::new(),
            apart: Vec::new(),
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
}
