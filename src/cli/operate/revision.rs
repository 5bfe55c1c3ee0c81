//! Revisions that options name: by their number, or by a Git commit that they were applied from (D93).

use std::ops::ControlFlow;

use serde::de::IgnoredAny;

use crate::cli::command_prelude::*;
use crate::cli::target::each_record;
use crate::server::operations::history::document::PATH;
use crate::store::history::commits::{CommitOrigin, CommitSearch};
use crate::store::{CommitPrefix, HistoryFilter, NamingError, RevisionError};

const PAGE: usize = 1000;
/// A page that most likely has an applied revision.
const FEW: usize = 20;

pub(crate) fn revision_name(text: &str) -> Result<RevisionName, String> {
    let expected = "expected the number of a revision, at least 7 digits of a commit ID, or `latest`";
    RevisionName::parse(text).ok_or_else(|| expected.to_owned())
}

pub(crate) fn commit_prefix(text: &str) -> Result<CommitPrefix, String> {
    CommitPrefix::parse(text).ok_or_else(|| "expected 7 to 64 hexadecimal digits".to_owned())
}

/// Finds the number of a revision in a store. A commit is one of the source, if there is one.
pub(crate) fn revision_in_store(store: &Store, name: &RevisionName, source: Option<&str>) -> Result<u64, Failure> {
    store.revision_named(name, source, &[], &|| false).map_err(naming_failure)
}

/// Finds the number of a revision on a server. A commit is one of the source, if there is one.
pub(crate) fn revision_on_server(
    client: &ApiClient,
    name: &RevisionName,
    source: Option<&str>,
) -> Result<u64, Failure> {
    match name {
        RevisionName::Number(number) => Ok(*number),
        RevisionName::Latest => {
            latest(client)?.ok_or_else(|| not_found("the server's history has no revision".to_owned()))
        }
        RevisionName::Commit(commit) => newest_from(client, commit, source)?
            .ok_or_else(|| not_found(format!("no revision was applied from commit {commit}"))),
        RevisionName::Either(number, _) if is_revision(client, *number)? => Ok(*number),
        // The server reports a number that is neither.
        RevisionName::Either(number, commit) => Ok(newest_from(client, commit, source)?.unwrap_or(*number)),
    }
}

fn not_found(message: String) -> Failure {
    Diagnostic::error(Code::RevisionNotFound, message).help(Code::RevisionNotFound.info().cure).into()
}

fn latest(client: &ApiClient) -> Result<Option<u64>, Failure> {
    let mut latest = None;
    each_record(client, &HistoryFilter::default(), None, FEW, &mut |item| {
        latest = item.revision.filter(|_| item.outcome == "applied");
        Ok(if latest.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    })?;
    Ok(latest)
}

/// Whether a server has or had a revision.
fn is_revision(client: &ApiClient, number: u64) -> Result<bool, Failure> {
    match client.get::<IgnoredAny>(&format!("{PATH}/{number}")) {
        Ok(_) => Ok(true),
        Err(failure) => match failure.diagnostics.first().map(|it| it.code) {
            Some(Name::Code(Code::RevisionNotFound)) => Ok(false),
            Some(Name::Code(Code::RevisionGone)) => Ok(true),
            _ => Err(failure),
        },
    }
}

/// The newest revision that was applied from a commit, or the one that a source is in sync with.
fn newest_from(client: &ApiClient, commit: &CommitPrefix, source: Option<&str>) -> Result<Option<u64>, Failure> {
    let is_meant = |name: &str| source.is_none_or(|source| source == name);
    let filter = HistoryFilter { commit: Some(commit.clone()), ..HistoryFilter::default() };
    let (mut search, mut is_found) = (CommitSearch::new(commit), false);
    each_record(client, &filter, None, PAGE, &mut |item| {
        let origin = if item.author.key_id.is_empty() { CommitOrigin::Read } else { CommitOrigin::Stated };
        let is_over = match item.revision {
            Some(revision) if item.outcome == "applied" && is_meant(&item.author.source) => {
                search.add(&item.author.commit, revision, origin)
            }
            _ => false,
        };
        is_found |= is_over;
        Ok(if is_over { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    })?;
    if !is_found {
        let read = client.sources(None)?.sources.into_iter().filter(|it| it.applied_by.is_none() && is_meant(&it.name));
        let applied = read.filter_map(|source| source.last_applied);
        let in_sync: Vec<_> = applied.map(|look| (look.commit, look.revision)).collect();
        search.add_in_sync(&in_sync);
    }
    search.finish().map_err(naming_failure)
}

/// The failure for a commit that is no revision.
fn naming_failure(error: NamingError) -> Failure {
    let message = error.to_string();
    let (code, help) = match error {
        NamingError::Failed(error) => return error.into(),
        NamingError::Unknown { .. } => return not_found(message),
        NamingError::Ambiguous { .. } => (Code::Parameter, "use more digits of the commit ID"),
        NamingError::Cancelled => (Code::Unavailable, "run the command again"),
    };
    Diagnostic::error(code, message).help(help).into()
}

/// The failure for a revision without a state.
pub(crate) fn revision_failure(error: RevisionError) -> Failure {
    let message = error.to_string();
    let (code, help) = match error {
        RevisionError::Failed(error) => return error.into(),
        RevisionError::Future { .. } => return not_found(message),
        RevisionError::Gone { .. } => (Code::RevisionGone, Code::RevisionGone.info().cure),
    };
    Diagnostic::error(code, message).help(help).into()
}
