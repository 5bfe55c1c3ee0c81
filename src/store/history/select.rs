//! The records of the history that a reader asks for (D77).

use std::ops::ControlFlow;

use super::commits::CommitPrefix;
use crate::model::{Author, Id};
use crate::store::commit::header::CommitHeader;
use crate::store::engine::Query;
use crate::store::error::StoreError;
use crate::store::open_store::Store;

/// Which records are selected. A filter that is not set selects all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct HistoryFilter {
    /// The path of a resource that was changed.
    pub resource: Option<String>,
    /// An API key, its owner, the email address of a commit's author, or `local`.
    pub actor: Option<String>,
    /// A source; empty for attempts of no source.
    pub source: Option<String>,
    /// The oldest revision.
    pub from: Option<u64>,
    /// The newest revision.
    pub to: Option<u64>,
    /// The commit of the manifests.
    pub commit: Option<CommitPrefix>,
}

impl HistoryFilter {
    /// Whether no older record can be selected.
    fn is_before_range(&self, record: &CommitHeader) -> bool {
        matches!((self.from, record.revision), (Some(from), Some(revision)) if revision < from)
    }

    /// Whether a record is selected. The query has selected those of a resource.
    fn selects(&self, record: &CommitHeader) -> bool {
        let in_range =
            |revision: u64| self.from.is_none_or(|from| revision >= from) && self.to.is_none_or(|to| revision <= to);
        let is_ranged = self.from.is_some() || self.to.is_some();
        (!is_ranged || record.revision.is_some_and(in_range))
            && self.actor.as_ref().is_none_or(|actor| is_actor(&record.author, actor))
            && self.source.as_ref().is_none_or(|source| source_of(record) == source)
            && self.commit.as_ref().is_none_or(|commit| is_from(&record.author, commit))
    }
}

/// A search in the history, newest first.
#[derive(Debug)]
pub(crate) struct HistorySearch<'a> {
    /// The selection.
    pub filter: &'a HistoryFilter,
    /// The position before which the search begins.
    pub before: u64,
    /// How many headers are read at once.
    pub batch: usize,
    /// How many records are read in all.
    pub most: u64,
}

/// How a search ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SearchEnd {
    /// All selected records were visited.
    Complete,
    /// The visitor ended the search.
    Stopped,
    /// As many records were read as the search allows, or it was cancelled. It can go on before this position.
    Exhausted(u64),
}

impl Store {
    /// Visits the selected records, until `visit` breaks or `is_cancelled` returns true.
    pub(crate) fn search(
        &self,
        search: &HistorySearch<'_>,
        is_cancelled: &dyn Fn() -> bool,
        visit: &mut dyn FnMut(CommitHeader) -> ControlFlow<()>,
    ) -> Result<SearchEnd, StoreError> {
        let HistorySearch { filter, mut before, batch, most } = *search;
        let mut read: u64 = 0;
        while read < most && !is_cancelled() {
            let records = match &filter.resource {
                Some(path) => self.headers_of(path, before, batch)?,
                None => self.headers(&Query::All, before, batch)?,
            };
            let Some(last) = records.last().map(|record| record.position) else {
                return Ok(SearchEnd::Complete);
            };
            read = read.saturating_add(records.len() as u64);
            for record in records {
                if filter.is_before_range(&record) {
                    return Ok(SearchEnd::Complete);
                }
                if filter.selects(&record) && visit(record).is_break() {
                    return Ok(SearchEnd::Stopped);
                }
            }
            before = last;
        }
        Ok(SearchEnd::Exhausted(before))
    }
}

fn is_actor(author: &Author, actor: &str) -> bool {
    let is_key = |through: &Option<(Id, Id)>| {
        through.as_ref().is_some_and(|(key, owner)| key.as_str() == actor || owner.as_str() == actor)
    };
    match author {
        Author::Api { key, owner } => key.as_str() == actor || owner.as_str() == actor,
        Author::Local => actor == "local",
        Author::Rollback { through, .. } => is_key(through),
        Author::Source { commit_author, through, .. } => {
            is_key(through) || commit_author.as_ref().is_some_and(|who| who.email == actor)
        }
    }
}

/// The source of the manifests, or the source that was rolled back, suspended or resumed; empty if there is none.
fn source_of(record: &CommitHeader) -> &str {
    if let Some(source) = &record.source {
        return source;
    }
    match &record.author {
        Author::Source { source, .. } | Author::Rollback { source: Some(source), .. } => source,
        Author::Api { .. } | Author::Local | Author::Rollback { source: None, .. } => "",
    }
}

fn is_from(author: &Author, wanted: &CommitPrefix) -> bool {
    matches!(author, Author::Source { commit: Some(commit), .. } if wanted.begins(commit))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::store::{Attempt, MEMORY, commit::header::Outcome};

    /// The positions that a search visits, at most three, and how it ends.
    fn found(store: &Store, filter: &HistoryFilter, most: u64) -> (Vec<u64>, SearchEnd) {
        let search = HistorySearch { filter, before: u64::MAX, batch: 2, most };
        let mut positions = Vec::new();
        let end = store.search(&search, &|| false, &mut |record: CommitHeader| {
            if positions.len() == 3 {
                return ControlFlow::Break(());
            }
            positions.push(record.position);
            ControlFlow::Continue(())
        });
        (positions, end.unwrap())
    }

    #[test]
    fn a_search_ends_where_it_must() {
        let store = Store::open(MEMORY).unwrap();
        for commit in ["4f2a111", "4f2a222", "4f2a111-dirty", "4F2A111", "4f2a333"] {
            let author = Author::source("shop", Some(commit.to_owned()));
            store.note(Attempt::new(author), Outcome::Refused, String::new()).unwrap();
        }
        store.note(Attempt::new(Author::Local), Outcome::Refused, String::new()).unwrap();
        let all = HistoryFilter::default();
        let of = |commit: &str| HistoryFilter { commit: CommitPrefix::parse(commit), ..HistoryFilter::default() };
        let by = |actor: &str| HistoryFilter { actor: Some(actor.to_owned()), ..HistoryFilter::default() };
        assert_eq!(found(&store, &of("4f2a111"), u64::MAX), (vec![4, 3, 1], SearchEnd::Complete));
        assert_eq!(found(&store, &by("local"), u64::MAX), (vec![6], SearchEnd::Complete));
        assert_eq!(found(&store, &all, u64::MAX), (vec![6, 5, 4], SearchEnd::Stopped));
        // A search that selects little is bounded, and can go on.
        assert_eq!(found(&store, &by("nobody"), 4), (vec![], SearchEnd::Exhausted(3)));
        let search = HistorySearch { filter: &all, before: u64::MAX, batch: 2, most: u64::MAX };
        let cancelled = store.search(&search, &|| true, &mut |_| ControlFlow::Continue(()));
        assert_eq!(cancelled.unwrap(), SearchEnd::Exhausted(u64::MAX));
    }
}
