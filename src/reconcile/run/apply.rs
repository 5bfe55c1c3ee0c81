//! Applies a plan as a revision.
//!
//! # The problem
//!
//! A large plan takes a second, and others commit meanwhile. If it was required that the store is still at the revision
//! of the plan, a large run beside a few small writes would never be applied. If the store was locked for the whole
//! run, everybody else would wait.
//!
//! # The idea
//!
//! A plan is computed without holding anyone up. If the store has another revision by then, it is computed again, and
//! the third time under the lock of the commit ([`apply_current`]). Each plan is decided upon anew: whether its outcome
//! is the reviewed one (D59), and whether it may run at all.
//!
//! Planning tries the operations on the state that they were computed from. If the store is still in that state, the
//! commit takes the result of the try instead of applying everything once more under the lock ([`SpeculativeCommit`]).
//!
//! For example, a plan of 10,000 routes and a PATCH every 100 ms: two plans find that the store has moved on, and the
//! third one is committed while the PATCHes wait.
//!
//! # What it never does
//!
//! It applies no plan with a refusal or with assumed values (D106). On an error, nothing has changed, and the files of
//! new tokens are taken back.

use rayon::iter::{IntoParallelIterator, ParallelIterator};

use super::apply_error::ApplyError;
use super::options::Options;
use super::plan_result::PlanResult;
use super::spans::start_stage;
use super::token::{TokenFiles, Tokens, with_hashes};
use crate::reconcile::prelude::*;
use crate::reconcile::sync_loop::attempt_notes;
use crate::store::{Declined, NextState, Places};

/// The number of attempts to plan while others can commit, before the plan is computed under the lock (D59).
const OPTIMISTIC: usize = 2;

/// Applies a plan as one revision, provided that the store is still at the revision it was computed from. Writes the
/// tokens of new API keys to the files named by the manifests. Returns the store's new revision.
///
/// Fails if the manifests are invalid or a safety limit refuses the plan. On an error, nothing has changed.
pub fn apply(store: &Store, options: &Options, planned: &PlanResult) -> Result<u64, ApplyError> {
    apply_with(store, options, planned, None)
}

/// Applies as [`apply`] does, but commits what was tried when the plan was made, if the store is still in that state.
/// The plan must not have been changed since.
pub(crate) fn commit_speculative(store: &Store, options: &Options, planned: &PlanResult) -> Result<u64, ApplyError> {
    apply_with(store, options, planned, planned.tried.as_ref())
}

fn apply_with(
    store: &Store,
    options: &Options,
    planned: &PlanResult,
    tried: Option<&Arc<SpeculativeCommit>>,
) -> Result<u64, ApplyError> {
    if options.tree.assumes_values() {
        let refusal = Diagnostic::error(Code::AssumedValues, "a plan with assumed values cannot be applied");
        return Err(ApplyError::Refused(vec![refusal.help("set the values, and plan again without --secrets=assume")]));
    }
    let Some(plan) = &planned.plan else {
        let errors = planned.diagnostics.iter().filter(|it| it.is_error());
        return Err(ApplyError::Refused(errors.cloned().collect()));
    };
    if !plan.refusals.is_empty() {
        return Err(ApplyError::Refused(plan.refusals.clone()));
    }
    apply_plan(store, plan, tried, planned.places(), options.author())
}

/// Applies a plan without checking its refusals.
pub(crate) fn apply_plan(
    store: &Store,
    plan: &Plan,
    tried: Option<&Arc<SpeculativeCommit>>,
    places: Places,
    author: Author,
) -> Result<u64, ApplyError> {
    store.has_room_for(&author).map_err(|error| ApplyError::Commit(CommitError::Failed(error)))?;
    let mut tokens = TokenFiles::default();
    let attempt = attempt_notes::attempt(author, Some(plan), places);
    let committed = store.commit_next(attempt, |current| match current.revision == plan.base {
        true => next_state(plan, tried, current, &mut tokens),
        false => Err(ApplyError::Commit(CommitError::Stale { base: plan.base, current: current.revision })),
    });
    let applied = committed.map(|snapshot| snapshot.revision).map_err(|error| match error {
        Declined::Declined(error) => error,
        Declined::Commit(error) => ApplyError::Commit(error),
    });
    if applied.is_err() {
        tokens.take_back();
    }
    applied
}

/// Returns the commit of a plan: the operations, or their result if they were tried on the current state. A key whose
/// token is created now was tried without its hash, so it is applied once more.
fn next_state(
    plan: &Plan,
    tried: Option<&Arc<SpeculativeCommit>>,
    current: &Snapshot,
    tokens: &mut dyn Tokens,
) -> Result<NextState, ApplyError> {
    match tried.filter(|tried| tried.fits(current)) {
        Some(tried) if plan.changes.iter().all(|change| change.token_file.is_none()) => {
            let calls = plan.each_operation().into_par_iter().map(ToString::to_string).collect();
            Ok(NextState::Speculative(Arc::clone(tried), calls))
        }
        // Invariants say the same about keys with the hashes of their tokens.
        tried => {
            let verdict = tried.map(|tried| Ok(tried.doubts().to_vec()));
            with_hashes(plan, tokens).map(|operations| NextState::Operations(operations, verdict))
        }
    }
}

/// Plans on the current revision and applies the plan as one commit. If others commit between planning and applying, it plans
/// again, in the last round under the lock, so that a large plan never starves. `accept` decides on each plan before it
/// runs: whether it is the reviewed one, and whether it may run at all. `permit` has the last word, inside the commit.
/// Returns the accepted plan and its revision, or no revision if there was nothing to do.
pub(crate) fn apply_current<E: From<ApplyError>>(
    store: &Store,
    plan: impl Fn(&Snapshot) -> PlanResult,
    author: impl Fn(&Snapshot) -> Result<Author, ApplyError>,
    tokens: &mut dyn Tokens,
    mut accept: impl FnMut(&Snapshot, PlanResult) -> Result<PlanResult, E>,
    permit: impl Fn() -> Result<(), E>,
) -> Result<(PlanResult, Option<u64>), E> {
    enum Stop<E> {
        Moved,
        Declined(E),
    }
    let (began, mut round) = (Instant::now(), 0);
    loop {
        let snapshot = store.snapshot();
        let mut planned = accept(&snapshot, plan(&snapshot))?;
        if planned.plan.as_ref().is_none_or(Plan::is_empty) {
            return Ok((planned, None));
        }
        let attempt = attempt_notes::attempt(author(&snapshot)?, planned.plan.as_ref(), planned.places());
        let attempt = Attempt { began, ..attempt };
        let committing = start_stage("commit");
        let committed = store.commit_next(attempt, |current| {
            if current.revision != snapshot.revision {
                if round < OPTIMISTIC {
                    return Err(Stop::Moved);
                }
                // Under the lock, the revision cannot change any more.
                planned = accept(current, plan(current)).map_err(Stop::Declined)?;
            }
            let Some(plan) = &planned.plan else { return Ok(NextState::Operations(Vec::new(), None)) };
            permit().map_err(Stop::Declined)?;
            next_state(plan, planned.tried.as_ref(), current, tokens).map_err(|error| Stop::Declined(error.into()))
        });
        drop(committing);
        let error = match committed {
            Ok(committed) => {
                let empty = planned.plan.as_ref().is_none_or(Plan::is_empty);
                return Ok((planned, (!empty).then_some(committed.revision)));
            }
            Err(Declined::Declined(Stop::Moved)) => {
                round += 1;
                continue;
            }
            Err(Declined::Declined(Stop::Declined(error))) => error,
            Err(Declined::Commit(error)) => ApplyError::Commit(error).into(),
        };
        tokens.take_back();
        return Err(error);
    }
}

/// Records the metrics of a server's reconciliation (D33).
pub(crate) fn measure(result: &'static str, began: Instant) {
    metrics::histogram!("edgewright_reconcile_duration_seconds").record(began.elapsed().as_secs_f64());
    metrics::counter!("edgewright_reconcile_total", "result" => result).increment(1);
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::manifest::tree::{Sent, SentFile};
    use crate::reconcile::plan;

    fn options(name: &str) -> Options {
        let text = format!(
            "apiVersion: edgewright/v1\nkind: HttpsEdge\nmetadata: {{name: {name}}}\nspec: {{hostports: ['{name}.example.com:443']}}\n"
        );
        let file = SentFile::new(format!("{name}.yaml"), text);
        Options { source: name.to_owned(), ..Options::new(Sent::new(vec![file], None)) }
    }

    #[test]
    fn what_was_tried_is_committed_and_not_applied_again() {
        let store = Store::open("memory:").unwrap();
        let options = options("one");
        let planned = plan(&options, &store.snapshot());
        assert_eq!(commit_speculative(&store, &options, &planned).unwrap(), 1);
        let (tried, now) = (planned.tried.as_ref().unwrap(), store.snapshot());
        let record = store.record(1).unwrap().unwrap();
        for entry in now.iter() {
            assert!(Arc::ptr_eq(entry, tried.after().get(&entry.key).unwrap()));
            assert_eq!(entry.created_at, record.at);
        }
        assert_eq!((now.len(), record.calls), (1, vec!["POST /edges/https".to_owned()]));
        assert!(commit_speculative(&store, &options, &planned).is_err(), "the store has moved on");
    }

    #[test]
    fn what_was_tried_without_the_hash_of_a_token_is_not_judged_again() {
        let store = Store::open("memory:").unwrap();
        let mut planned = plan(&options("one"), &store.snapshot());
        planned.plan.as_mut().unwrap().changes.first_mut().unwrap().token_file = Some(PathBuf::from("token"));
        let plan = planned.plan.as_ref().unwrap();
        let next = |tried: Option<&Arc<SpeculativeCommit>>| {
            next_state(plan, tried, &store.snapshot(), &mut TokenFiles::default()).ok().unwrap()
        };
        assert!(matches!(next(planned.tried.as_ref()), NextState::Operations(_, Some(Ok(_)))));
        assert!(matches!(next(None), NextState::Operations(_, None)));
    }

    #[test]
    fn what_was_tried_on_one_store_is_not_the_state_of_another() {
        let (one, other) = (Store::open("memory:").unwrap(), Store::open("memory:").unwrap());
        for (store, name) in [(&one, "one"), (&other, "other")] {
            let options = options(name);
            apply(store, &options, &plan(&options, &store.snapshot())).unwrap();
        }
        let options = options("more");
        let mut planned = plan(&options, &one.snapshot());
        assert_eq!(commit_speculative(&other, &options, &planned).unwrap(), 2);
        let now = other.snapshot();
        let mut names: Vec<&str> = now.iter().filter_map(|entry| entry.name()).collect();
        names.sort_unstable();
        assert_eq!(names, ["more", "other"]);
        planned.plan.as_mut().unwrap().changes.clear();
        assert_eq!(apply(&one, &options, &planned).unwrap(), 1, "a plan that its holder has changed runs as it is");
    }
}
