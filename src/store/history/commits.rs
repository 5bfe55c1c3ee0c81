//! Revisions by the Git commit that they were applied from (D93).
//!
//! The records of applied reconciliations are searched, newest first. Commits that the program has read itself come before
//! those that a client states for the manifests that it sends: nobody checks these, so a client could state the commit of
//! another source. A whole ID of the first kind ends the search when it is found; digits that are only the start of one do
//! not, because another commit may begin with them. The search ends with the client that waits for it. There is no index: it
//! would have to be built for every existing store, for a question that people ask a few times a day.

use std::fmt;

use thiserror::Error;

use crate::model::Author;
use crate::store::engine::Query;
use crate::store::error::StoreError;
use crate::store::open_store::Store;
use crate::syntax::text::printable;

/// The fewest digits of an abbreviated commit id, as Git shows it.
const FEWEST_DIGITS: usize = 7;
/// The digits of a whole SHA-256 id.
const MOST_DIGITS: usize = 64;
/// The digits that people see.
const SHORT_COMMIT: usize = 8;
/// The suffix of uncommitted changes.
const DIRTY: &str = "-dirty";

/// A Git commit id, whole or abbreviated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CommitPrefix(String);

impl CommitPrefix {
    /// Parses 7 to 64 hexadecimal digits.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let fits = (FEWEST_DIGITS..=MOST_DIGITS).contains(&text.len());
        (fits && text.bytes().all(|byte| byte.is_ascii_hexdigit())).then(|| Self(text.to_ascii_lowercase()))
    }

    /// Whether a commit id begins with these digits.
    pub(crate) fn begins(&self, commit: &str) -> bool {
        commit.get(..self.0.len()).is_some_and(|start| start.eq_ignore_ascii_case(&self.0))
    }
}

impl fmt::Display for CommitPrefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A revision as people name it: by its number, or by a commit that it was applied from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RevisionName {
    /// A number with too few digits for a commit.
    Number(u64),
    /// A commit.
    Commit(CommitPrefix),
    /// Decimal digits that can be either. A revision that exists has precedence.
    Either(u64, CommitPrefix),
    /// The current revision.
    Latest,
}

/// The name of the current revision: a client that reads a list page by page need not know its number.
pub(crate) const LATEST: &str = "latest";

impl RevisionName {
    /// Parses a number, a commit or `latest`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        if text == LATEST {
            return Some(RevisionName::Latest);
        }
        // `parse` would accept a sign.
        let is_decimal = text.bytes().all(|byte| byte.is_ascii_digit());
        let number: Option<u64> = if is_decimal { text.parse().ok() } else { None };
        match (number, CommitPrefix::parse(text)) {
            (Some(number), Some(commit)) => Some(RevisionName::Either(number, commit)),
            (Some(number), None) => Some(RevisionName::Number(number)),
            (None, Some(commit)) => Some(RevisionName::Commit(commit)),
            (None, None) => None,
        }
    }
}

/// Why a commit is no revision.
#[derive(Debug, Error)]
pub(crate) enum NamingError {
    /// No revision in the history was applied from it.
    #[error("no revision was applied from commit {commit}; the history begins at revision {oldest}")]
    Unknown {
        commit: CommitPrefix,
        /// The oldest revision in the history.
        oldest: u64,
    },
    /// Revisions were applied from several commits that begin so.
    #[error("commit {commit} is ambiguous: {}", .commits.each_ref().map(|it| printable(it)).join(" and "))]
    Ambiguous {
        /// The abbreviated commit.
        commit: CommitPrefix,
        /// Two of the commits.
        commits: [String; 2],
    },
    /// The search was cancelled.
    #[error("the search was cancelled")]
    Cancelled,
    /// The store failed.
    #[error(transparent)]
    Failed(#[from] StoreError),
}

/// Where the commit of a revision is from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CommitOrigin {
    /// This program has read it.
    Read,
    /// A client has stated it.
    Stated,
}

/// Finds the newest revision of a commit among records that are visited newest first.
#[derive(Debug)]
pub(crate) struct CommitSearch<'a> {
    wanted: &'a CommitPrefix,
    read: FoundCommits,
    stated: FoundCommits,
}

/// The commits of one origin that a search has found.
#[derive(Debug, Default)]
struct FoundCommits {
    newest: Option<(String, u64)>,
    other: Option<String>,
    /// Whether the whole ID of the newest one was wanted: no other commit has it.
    is_whole: bool,
}

impl FoundCommits {
    fn add(&mut self, commit: &str, revision: u64, is_whole: bool) {
        match &self.newest {
            _ if self.is_whole => {}
            Some((newest, _)) if !is_whole => {
                if newest != commit && self.other.is_none() {
                    self.other = Some(commit.to_owned());
                }
            }
            _ => *self = Self { newest: Some((commit.to_owned(), revision)), other: None, is_whole },
        }
    }
}

impl<'a> CommitSearch<'a> {
    /// Starts a search.
    pub(crate) fn new(wanted: &'a CommitPrefix) -> Self {
        Self { wanted, read: FoundCommits::default(), stated: FoundCommits::default() }
    }

    /// Adds a revision and the commit that it was applied from. Returns whether the search is over: a whole id that the
    /// program has read needs no further search.
    pub(crate) fn add(&mut self, commit: &str, revision: u64, origin: CommitOrigin) -> bool {
        // With other changes, the manifests were not those of the commit.
        if !self.wanted.begins(commit) || is_dirty(commit) {
            return false;
        }
        let is_whole = commit.len() == self.wanted.0.len();
        let found = match origin {
            CommitOrigin::Read => &mut self.read,
            CommitOrigin::Stated => &mut self.stated,
        };
        found.add(commit, revision, is_whole);
        is_whole && origin == CommitOrigin::Read
    }

    /// Adds commits that were found to be in sync with a revision, after those that revisions were applied from.
    pub(crate) fn add_in_sync(&mut self, commits: &[(String, u64)]) {
        for (commit, revision) in commits {
            if self.add(commit, *revision, CommitOrigin::Read) {
                return;
            }
        }
    }

    /// Returns the revision, or none if there is none.
    pub(crate) fn finish(self) -> Result<Option<u64>, NamingError> {
        let found = if self.read.newest.is_some() { self.read } else { self.stated };
        match (found.newest, found.other) {
            (Some((one, _)), Some(other)) => {
                Err(NamingError::Ambiguous { commit: self.wanted.clone(), commits: [one, other] })
            }
            (newest, _) => Ok(newest.map(|(_, revision)| revision)),
        }
    }
}

impl Store {
    /// Returns the number of a named revision, which need not exist if the name is a number. For a commit, reads the
    /// history from disk until `is_cancelled` returns true: that of a source, or of all. `in_sync` has commits that were found
    /// to be in sync with a revision, which counts if the history has none.
    pub(crate) fn revision_named(
        &self,
        name: &RevisionName,
        source: Option<&str>,
        in_sync: &[(String, u64)],
        is_cancelled: &dyn Fn() -> bool,
    ) -> Result<u64, NamingError> {
        match name {
            RevisionName::Number(number) => Ok(*number),
            RevisionName::Latest => Ok(self.snapshot().revision),
            RevisionName::Commit(commit) => self.newest_from(commit, source, in_sync, is_cancelled),
            RevisionName::Either(number, _) if *number <= self.snapshot().revision => Ok(*number),
            RevisionName::Either(number, commit) => match self.newest_from(commit, source, in_sync, is_cancelled) {
                Err(NamingError::Unknown { .. }) => Ok(*number),
                found => found,
            },
        }
    }

    /// The newest revision that was applied from a commit.
    fn newest_from(
        &self,
        commit: &CommitPrefix,
        source: Option<&str>,
        in_sync: &[(String, u64)],
        is_cancelled: &dyn Fn() -> bool,
    ) -> Result<u64, NamingError> {
        let mut search = CommitSearch::new(commit);
        for record in self.headers_before(&Query::Reconciliations, u64::MAX) {
            if is_cancelled() {
                return Err(NamingError::Cancelled);
            }
            let record = record?;
            let Author::Source { source: of, commit: Some(commit), through, .. } = &record.author else { continue };
            let origin = if through.is_some() { CommitOrigin::Stated } else { CommitOrigin::Read };
            if source.is_none_or(|source| source == of)
                && let Some(revision) = record.revision
                && search.add(commit, revision, origin)
            {
                return Ok(revision);
            }
        }
        search.add_in_sync(in_sync);
        match search.finish()? {
            Some(revision) => Ok(revision),
            None => Err(NamingError::Unknown { commit: commit.clone(), oldest: self.oldest_revision()? }),
        }
    }
}

/// Whether the manifests of a commit had other changes (D29).
pub(crate) fn is_dirty(commit: &str) -> bool {
    commit.ends_with(DIRTY)
}

/// The first digits of a commit, and the suffix of uncommitted changes. Whatever else a client has stated is whole.
pub(crate) fn short_commit(commit: &str) -> String {
    let (id, suffix) = commit.strip_suffix(DIRTY).map_or((commit, ""), |id| (id, DIRTY));
    let is_id = id.bytes().all(|byte| byte.is_ascii_hexdigit());
    let short = id.get(..SHORT_COMMIT).filter(|_| is_id).unwrap_or(id);
    format!("{short}{suffix}")
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::model::{HttpsEdge, Id, Key, Kind, Operation};
    use crate::store::MEMORY;

    /// A store with a revision from each of these commits.
    fn applied_from(commits: &[&str]) -> Store {
        let store = Store::open(MEMORY).unwrap();
        commits.iter().for_each(|commit| apply(&store, Author::source("shop", Some((*commit).to_owned()))));
        store
    }

    /// Adds a revision.
    fn apply(store: &Store, author: Author) {
        let key = Key::new(Kind::HttpsEdge, Id::new(&format!("edghts_{}", store.snapshot().revision)));
        let create = Operation::create(key, Arc::new(HttpsEdge::default()));
        store.commit(author, vec![create]).unwrap();
    }

    fn find(store: &Store, name: &str) -> Result<u64, String> {
        let name = RevisionName::parse(name).unwrap();
        store.revision_named(&name, None, &[], &|| false).map_err(|error| error.to_string())
    }

    #[test]
    fn a_short_commit_keeps_the_mark_of_uncommitted_changes() {
        let commits = ["4f2a9c51d0b7e386", "4f2a9c51d0b7e386-dirty", "4f2a-dirty", ""];
        assert_eq!(commits.map(short_commit), ["4f2a9c51", "4f2a9c51-dirty", "4f2a-dirty", ""]);
        assert_eq!(["release-2026-11", "v2-dirty"].map(short_commit), ["release-2026-11", "v2-dirty"]);
    }

    #[test]
    fn a_name_is_a_number_or_a_commit() {
        let commit = |text: &str| CommitPrefix(text.to_owned());
        assert_eq!(RevisionName::parse("123456"), Some(RevisionName::Number(123_456)));
        assert_eq!(RevisionName::parse("1234567"), Some(RevisionName::Either(1_234_567, commit("1234567"))));
        assert_eq!(RevisionName::parse("latest"), Some(RevisionName::Latest));
        assert_eq!(RevisionName::parse("ABC1234"), Some(RevisionName::Commit(commit("abc1234"))));
        for bad in ["", "-1", "+1234567", "abc123", "latest!", "abc123g", " 1", "HEAD", &"a".repeat(65)] {
            assert_eq!(RevisionName::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_commit_that_changed_nothing_is_the_revision_that_it_is_in_sync_with() {
        let (one, two) = ("aaaaaaa1".repeat(5), "aaaaaaa2".repeat(5));
        let store = applied_from(&[one.as_str(), "bbbbbbb"]);
        let in_sync = [(one.clone(), 2), (two.clone(), 2)];
        let find = |name: &str| {
            let name = RevisionName::parse(name).unwrap();
            store.revision_named(&name, None, &in_sync, &|| false).map_err(|error| error.to_string())
        };
        assert_eq!((find(&two), find("aaaaaaa2")), (Ok(2), Ok(2)));
        assert_eq!((find(&one), find("aaaaaaa1")), (Ok(1), Ok(1)), "the history comes first");
        assert!(find("aaaaaaa").unwrap_err().contains("is ambiguous"));
    }

    #[test]
    fn the_newest_revision_of_a_commit_is_found() {
        let (one, two) = ("aaaaaaa1".repeat(5), "aaaaaaa2".repeat(5));
        let dirty = format!("{one}-dirty");
        let store = applied_from(&[one.as_str(), two.as_str(), one.as_str(), "1234567", "12345678", dirty.as_str()]);
        assert_eq!((find(&store, &one), find(&store, "AAAAAAA1"), find(&store, "aaaaaaa2")), (Ok(3), Ok(3), Ok(2)));
        let ambiguous = find(&store, "aaaaaaa").unwrap_err();
        assert!(ambiguous.contains("is ambiguous") && ambiguous.contains(&two), "{ambiguous}");
        // A whole id is not ambiguous, and a revision that does not exist can be a commit.
        assert_eq!(find(&store, "1234567"), Ok(4));
        assert_eq!((find(&store, "6"), find(&store, "7654321")), (Ok(6), Ok(7_654_321)));
        assert_eq!(find(&store, "latest"), Ok(6));
        let unknown = find(&store, "bbbbbbb").unwrap_err();
        assert_eq!(unknown, "no revision was applied from commit bbbbbbb; the history begins at revision 1");
        let name = RevisionName::parse("aaaaaaa1").unwrap();
        assert!(matches!(store.revision_named(&name, None, &[], &|| true), Err(NamingError::Cancelled)));
    }

    #[test]
    fn a_commit_that_a_client_states_neither_redirects_nor_blurs_one_that_was_read() {
        let (one, two) = ("aaaaaaa1".repeat(5), "aaaaaaa2".repeat(5));
        let store = applied_from(&[one.as_str()]);
        let stated = |source: &str, commit: &str| {
            Author::source(source, Some(commit.to_owned())).with_api_key(Id::new("ak_1"), Id::new("bot_1"))
        };
        for commit in [&one, &two] {
            apply(&store, stated("docs", commit));
        }
        assert_eq!((find(&store, &one), find(&store, "aaaaaaa")), (Ok(1), Ok(1)));
        // Where nobody else has it, it counts, and for the source itself.
        assert_eq!((find(&store, &two), find(&store, "aaaaaaa2")), (Ok(3), Ok(3)));
        apply(&store, stated("guides", &two));
        let of = |source: &str, name: &str| {
            let name = RevisionName::parse(name).unwrap();
            store.revision_named(&name, Some(source), &[], &|| false).map_err(|error| error.to_string())
        };
        assert_eq!((of("shop", &one), of("docs", &one), of("docs", &two)), (Ok(1), Ok(2), Ok(3)));
        assert_eq!((of("guides", &two), of("guides", "aaaaaaa")), (Ok(4), Ok(4)));
        assert!(of("shop", &two).is_err() && of("docs", "aaaaaaa").is_err());
    }
}
