//! From a plan to a revision.

use std::{path::PathBuf, time::Instant};

use super::{
    Planned, Prepared,
    stages::about,
    token::{Tokens, with_hashes},
};
use crate::{
    model::{code::Code, diagnostic::Diagnostic, id::Id, operation::Author, snapshot::Snapshot},
    plan::Plan,
    store::{Attempt, CommitError, Declined, Store, history::Places},
};

/// How often a plan is made anew outside the lock when others commit at the same time, before it is made under it.
const OPTIMISTIC: usize = 2;

/// Commits a plan as one revision, if the store is still at the revision that it was computed from. Returns the new one.
pub fn apply(
    store: &Store,
    plan: &Plan,
    places: Places,
    author: Author,
    tokens: &mut dyn Tokens,
) -> Result<u64, ApplyError> {
    let attempt = Attempt { places, ..Attempt::new(author) };
    let committed = store.commit_with(attempt, |current| match current.revision == plan.base {
        true => with_hashes(plan, tokens),
        false => Err(ApplyError::Commit(CommitError::Stale { base: plan.base, current: current.revision })),
    });
    let applied = committed.map(|committed| committed.snapshot.revision).map_err(|error| match error {
        Declined::Declined(error) => error,
        Declined::Commit(error) => ApplyError::Commit(error),
    });
    if applied.is_err() {
        tokens.take_back();
    }
    applied
}

/// Commits what the manifests say as one revision, on whatever revision is current. When others commit between the plan
/// and its application, it is made anew; under contention while they wait, so that a large plan never starves. `accept`
/// is asked of each plan before it runs: that it is the one that was reviewed, and may run at all. Returns the plan that
/// was accepted, and the revision that it made; none if there was nothing to do.
pub fn apply_current<E: From<ApplyError>>(
    store: &Store,
    prepared: &Prepared,
    author: Author,
    tokens: &mut dyn Tokens,
    mut accept: impl FnMut(&Snapshot, Planned) -> Result<Planned, E>,
) -> Result<(Planned, Option<u64>), E> {
    enum Stop<E> {
        Moved,
        Declined(E),
    }
    let began = Instant::now();
    for round in 0..=OPTIMISTIC {
        let snapshot = store.snapshot();
        let mut planned = accept(&snapshot, prepared.plan(&snapshot))?;
        if planned.plan.as_ref().is_none_or(Plan::is_empty) {
            return Ok((planned, None));
        }
        let attempt = Attempt { places: planned.places(), began, ..Attempt::new(author.clone()) };
        let committed = store.commit_with(attempt, |current| {
            if current.revision != snapshot.revision {
                if round < OPTIMISTIC {
                    return Err(Stop::Moved);
                }
                planned = accept(current, prepared.plan(current)).map_err(Stop::Declined)?;
            }
            let plan = planned.plan.as_ref();
            plan.map_or(Ok(Vec::new()), |plan| with_hashes(plan, tokens)).map_err(|error| Stop::Declined(error.into()))
        });
        return match committed {
            Ok(committed) => {
                let empty = planned.plan.as_ref().is_none_or(Plan::is_empty);
                Ok((planned, (!empty).then_some(committed.snapshot.revision)))
            }
            Err(Declined::Declined(Stop::Moved)) => continue,
            Err(Declined::Declined(Stop::Declined(error))) => {
                tokens.take_back();
                Err(error)
            }
            Err(Declined::Commit(error)) => {
                tokens.take_back();
                Err(ApplyError::Commit(error).into())
            }
        };
    }
    // The last round plans under the lock, where nothing moves.
    Err(ApplyError::Commit(CommitError::Stale { base: 0, current: store.snapshot().revision }).into())
}

/// Measures a reconciliation that a server has made (D33).
pub fn measure(result: &'static str, began: Instant) {
    metrics::histogram!("edgewright_reconcile_duration_seconds").record(began.elapsed().as_secs_f64());
    metrics::counter!("edgewright_reconcile_total", "result" => result).increment(1);
}

/// Why a plan was not applied; nothing has changed.
#[derive(Debug)]
pub enum ApplyError {
    /// The store refused it or failed.
    Commit(CommitError),
    /// A token could not be written where the manifest wants it.
    TokenFile(PathBuf, std::io::Error),
    /// Nobody has given the hash of a new key's token.
    NoTokenHash(Id),
}

impl ApplyError {
    /// The error for a person.
    pub fn diagnostic(&self) -> Diagnostic {
        match self {
            ApplyError::TokenFile(path, error) => Diagnostic::error(
                Code::Unreadable,
                format!("the token cannot be written to {}: {error}", path.display()),
            )
            .help("there must be no such file yet, in a folder that can be written to; nothing was changed"),
            ApplyError::NoTokenHash(key) => {
                Diagnostic::error(Code::Required, format!("the new API key {key} needs the hash of its token"))
            }
            ApplyError::Commit(CommitError::Failed(error)) => {
                Diagnostic::error(error.code, error.message.clone()).help(error.code.info().cure)
            }
            ApplyError::Commit(error @ CommitError::Stale { .. }) => {
                Diagnostic::error(Code::Stale, error.to_string()).help("plan again and review the new plan")
            }
            ApplyError::Commit(CommitError::Refused(refusal)) => {
                let fault = refusal.faults.first();
                let code = fault.map_or(Code::Internal, |fault| fault.code);
                Diagnostic::error(code, fault.map(|fault| about(&refusal.key, fault)).unwrap_or_default())
                    .help(code.info().cure)
            }
        }
    }
}
