//! The commit that each source in a repository applied last, which the next one descends from (D89).
//!
//! It is a file next to the store and not a query of the history, because the history ends and has no record of a
//! commit that changed no manifest. An entry has the repository, ref and range that it was read from: one from
//! elsewhere does not count, since whoever changes the configuration decides where the source goes on. Without an
//! entry, as after a restore, the newest commit of the source in the history counts. A file that cannot be parsed is an
//! error: with no commit to descend from, every commit would be accepted.

use super::sync_log::or_warn;
use crate::manifest::tree::whole_commit;
use crate::reconcile::prelude::*;
use crate::reconcile::sources::entries::SourceEntries;
use crate::reconcile::sources::location::SourceLocation;
use crate::store::Outcome;

/// The file, next to the files of the store.
const FILE: &str = "applied";

/// The commit that a source applied last.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct AppliedCommit {
    /// The repository, or empty if it is not known: then that of the configuration is meant.
    repository: String,
    /// The branch, tag or commit that was read, or empty.
    #[serde(rename = "ref")]
    revision: String,
    /// The range of versions that the tag was in, or empty.
    semver: String,
    commit: String,
}

impl AppliedCommit {
    fn new(location: &SourceLocation, commit: &str) -> Self {
        let SourceLocation { repository, revision, semver, .. } = location.clone();
        Self { repository, revision, semver, commit: commit.to_owned() }
    }

    /// Whether the commit was read from a location.
    fn is_from(&self, location: &SourceLocation) -> bool {
        self.repository.is_empty() || *self == Self::new(location, &self.commit)
    }
}

/// The commits that the sources of a store applied last.
pub(crate) struct AppliedCommits {
    store: Arc<Store>,
    by_source: SourceEntries<AppliedCommit>,
}

impl AppliedCommits {
    /// Reads the commits of a store. A file that cannot be parsed is an error: without its commits, a source could apply an
    /// earlier one.
    pub(super) fn open(store: Arc<Store>) -> Result<Self, Diagnostic> {
        let by_source = SourceEntries::open(Arc::clone(&store), FILE);
        let help = "remove the file; the sources then continue from the commits in the history";
        Ok(Self { store, by_source: by_source.map_err(|damaged| damaged.help(help))? })
    }

    /// The commit that a source applied last from a location. None if none was, or from another repository or revision:
    /// a change of the configuration decides where the source continues, and so does a commit that it names. Without an
    /// entry, it is that of the history.
    pub(crate) fn last(&self, source: &str, location: &SourceLocation) -> Result<Option<String>, StoreError> {
        if whole_commit(&location.revision).is_ok() {
            return Ok(None);
        }
        match self.by_source.get(source) {
            Some(applied) => Ok(applied.is_from(location).then_some(applied.commit)),
            None => self.store.last_commit(source),
        }
    }

    /// Records the commit that a source has applied, durably.
    pub(crate) fn set(&self, source: &str, location: &SourceLocation, commit: &str) -> Result<(), StoreError> {
        self.by_source.set(source, AppliedCommit::new(location, commit))
    }

    /// Accepts a commit in place of the one that was applied last, durably. The history records it, and who did it.
    /// `location` is where the source is, if that is known.
    pub(crate) fn accept(
        &self,
        source: &str,
        location: Option<&SourceLocation>,
        commit: &str,
        author: Author,
    ) -> Result<(), StoreError> {
        let accepted = match location {
            Some(location) => AppliedCommit::new(location, commit),
            None => {
                let known = self.by_source.get(source).unwrap_or_default();
                AppliedCommit { commit: commit.to_owned(), ..known }
            }
        };
        self.by_source.set(source, accepted)?;
        let attempt = Attempt { source: Some(source.to_owned()), ..Attempt::new(author) };
        let noted = self.store.note(attempt, Outcome::Resumed, format!("accepted commit {commit}"));
        or_warn(source, "cannot record the accepted commit in the history", noted);
        Ok(())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::store::engine::Query;

    fn location(revision: &str) -> SourceLocation {
        SourceLocation { repository: "repo".into(), revision: revision.into(), ..SourceLocation::default() }
    }

    #[test]
    fn a_commit_counts_where_it_was_read_and_survives_a_restart() {
        let folder = tempfile::tempdir().unwrap();
        let open = || AppliedCommits::open(Arc::new(Store::open(folder.path().join("store")).unwrap())).unwrap();
        let last = |of: &AppliedCommits, revision: &str| of.last("shop", &location(revision)).unwrap();
        {
            let commits = open();
            assert_eq!(last(&commits, "main"), None);
            let pinned = "a".repeat(40);
            commits.set("shop", &location(&pinned), "one").unwrap();
            assert_eq!(last(&commits, &pinned), None, "the configuration names the commit");
            commits.set("shop", &location("main"), "one").unwrap();
        }
        {
            let commits = open();
            assert_eq!((last(&commits, "main").as_deref(), last(&commits, "next")), (Some("one"), None));
            commits.accept("shop", None, "two", Author::Local).unwrap();
            assert_eq!((last(&commits, "main").as_deref(), last(&commits, "next")), (Some("two"), None));
            commits.accept("shop", Some(&location("next")), "three", Author::Local).unwrap();
            assert_eq!((last(&commits, "main"), last(&commits, "next").as_deref()), (None, Some("three")));
            // The configuration determines the location.
            commits.accept("docs", None, "four", Author::Local).unwrap();
            assert_eq!(commits.last("docs", &location("main")).unwrap().as_deref(), Some("four"));
        }
        let commits = open();
        let records = commits.store.history(&Query::All, u64::MAX, 9).unwrap();
        let told: Vec<_> = records.iter().rev().map(|it| (it.outcome, it.message.as_str())).collect();
        let accepted = ["accepted commit two", "accepted commit three", "accepted commit four"];
        assert_eq!(told, accepted.map(|message| (Outcome::Resumed, message)));
        assert!(records.iter().all(|record| record.author == Author::Local && record.source.is_some()));
        drop(commits);
        std::fs::write(folder.path().join("store").join(FILE), "{").unwrap();
        let store = Arc::new(Store::open(folder.path().join("store")).unwrap());
        assert!(AppliedCommits::open(store).is_err(), "what is damaged is not ignored");
    }
}
