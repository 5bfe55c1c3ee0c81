//! The stages of a run, each from one value to the next: load, resolve, judge, isolate, diff, try, test.
//!
//! # The problem
//!
//! A plan is computed for a snapshot, and the store moves on. With `--isolate` (D44), a part of the manifests is left
//! out, and what is left out decides what else has to be.
//!
//! # The idea
//!
//! Loading returns [`Prepared`]. All later stages depend on a Snapshot, and can be repeated on another one without
//! reading the manifests again. `isolate` sets aside what is invalid and everything that depends on it, and judges the
//! rest as a whole, until nothing is left to set aside. What only the plan shows, such as an adoption that the source
//! may not make, is set aside in the same way, and the rest is planned again.
//!
//! For example, an edge with a misspelt field takes its routes with it. A route of another edge is planned.
//!
//! # What it never does
//!
//! While there are errors, nothing is deleted, because a resource may have moved to the part that cannot be read. Nothing is
//! applied that fails a route test of the source, not even a part of it (D118).

mod changes_from;
mod comparison;

use std::borrow::Cow;

use super::lint_stage::{findings, judge_exposure};
use super::memo::Memo;
use super::options::{DEFAULT_SOURCE, LintLevels, Options};
use super::plan_result::PlanResult;
use super::proof_stage::{has_invariants, judge_invariants};
use super::spans::stage;
use super::speculative::{apply_speculatively, note_behaviour, note_refused_behaviour};
use super::test_stage::{TestRun, run_tests};
use super::validation::cancelled;
use crate::lint::JudgedParts;
use crate::manifest::resolve::{LastResolution, Resolution, resolve, resolve_again, resolve_offline};
use crate::manifest::{self, Loaded, with_source};
use crate::model::{Entry, JsonError, Kind};
use crate::plan::diff;
use crate::plan::proof_report::ProofReport;
use crate::reconcile::prelude::*;
use crate::reconcile::sources::secret_visibility::{SecretFilter, hide_unseen_secrets, uncompared_warning};
use crate::reconcile::sync_loop::clock::Clock;
use crate::routing::routed_state::RoutedState;

pub(crate) use comparison::compare;

/// Loaded manifests, which can be planned on any revision.
pub(crate) struct Prepared {
    /// The options of the run.
    pub options: Options,
    loaded: Arc<Loaded>,
    /// What runs on a source keep for the next one, if it is loaded repeatedly.
    memo: Option<Lock<Memo>>,
    clock: Clock,
    /// The resources whose secrets the reader of the plan sees, if not all.
    pub sees: Option<SecretFilter>,
    /// Whether the route tests of the source are run.
    runs_tests: bool,
}

/// How a plan ends.
struct PlanEnd {
    resolved: Resolution,
    /// The plan, unless there is none to apply, and its result.
    plan: Option<(Plan, Option<Arc<SpeculativeCommit>>)>,
    /// The plan that only invariants refuse, if its effect on requests was asked for.
    refused: Option<Plan>,
    /// The resources that differ from those in the store. None if these may be any.
    differing: Option<BTreeSet<Key>>,
    /// The results of the route tests.
    tests: TestRun,
}

impl PlanEnd {
    fn without_plan(resolved: Resolution, differing: Option<BTreeSet<Key>>) -> Self {
        Self { resolved, plan: None, refused: None, differing, tests: TestRun::default() }
    }
}

/// Reads manifests and checks them against every rule and lint, using only the files.
pub fn validate(tree: &dyn Tree, lints: &LintLevels) -> PlanResult {
    let loaded = manifest::load(tree);
    let validated = validate_loaded(&loaded, lints, DEFAULT_SOURCE);
    free(loaded);
    validated
}

/// Like [`validate`], for loaded manifests of a source.
pub(crate) fn validate_loaded(loaded: &Loaded, lints: &LintLevels, source: &str) -> PlanResult {
    let surrounding = loaded.resolve_surrounding(&Snapshot::default(), source);
    let (resolved, now) = (resolve_offline(loaded, &surrounding.state, source), clock::now());
    let mut resolved = judge(loaded, resolved, lints, None, now);
    if resolved.has_errors() {
        return resolved.capped().planned(loaded, None);
    }
    if loaded.tests.is_empty() && !has_invariants(&resolved, &surrounding.state) {
        return resolved.capped().planned(loaded, None);
    }
    let state = with_source(&surrounding.state, source, &resolved.desired);
    let unseen = surrounding.unseen(&state, &resolved.origins);
    let broken = judge_invariants(&resolved, &state, &unseen, now);
    let routed = RoutedState { snapshot: &surrounding.state, source, desired: Some(&resolved.desired) };
    let (tests, failed) = run_tests(loaded, routed, &unseen, || false);
    resolved.diagnostics.extend(broken.into_iter().chain(failed).chain(surrounding.told));
    PlanResult { tests, ..resolved.capped().planned(loaded, None) }
}

/// Reads manifests and plans the changes from `snapshot` to their desired state. Changes nothing.
pub fn plan(options: &Options, snapshot: &Snapshot) -> PlanResult {
    let prepared = Prepared::load(options.clone());
    let planned = prepared.plan(snapshot);
    free(prepared.loaded);
    planned
}

/// Frees something large while nobody waits for it.
fn free(unused: impl Send + 'static) {
    rayon::spawn(move || drop(unused));
}

impl Prepared {
    /// Reads the manifests.
    pub(crate) fn load(options: Options) -> Self {
        let loaded = manifest::load(options.tree.as_ref());
        Self::new(options, loaded)
    }

    fn new(options: Options, loaded: Loaded) -> Self {
        let (loaded, clock) = (Arc::new(loaded), Clock::default());
        Self { options, loaded, memo: None, clock, sees: None, runs_tests: true }
    }

    /// Reads the manifests of a source that is followed. What has not changed since the last run is not read, merged or
    /// judged again.
    pub(crate) fn load_again(options: Options, last: Option<Self>) -> Self {
        let (earlier, memo) = last.map(|last| (last.loaded, last.memo)).unwrap_or_default();
        let loaded = stage("load", || manifest::load_again(options.tree.as_ref(), &earlier));
        Self { memo: Some(memo.unwrap_or_default()), ..Self::new(options, loaded) }
    }

    /// The state of a store that has only the resources of the surrounding manifests.
    pub(crate) fn surrounding_state(&self) -> Snapshot {
        self.loaded.surrounding_state(&self.options.source)
    }

    /// The answers about the invariants of a state and of the surrounding manifests once the source has what a plan found desired.
    pub(crate) fn proofs(&self, snapshot: &Snapshot, planned: &PlanResult) -> ProofReport {
        let source = &self.options.source;
        planned.proofs(&self.loaded.with_surrounding_invariants(snapshot, source, &planned.desired), source)
    }

    /// Sets the clock that tells the time of the lints.
    pub(crate) fn with_clock(self, clock: Clock) -> Self {
        Self { clock, ..self }
    }

    /// Plans for a reader who sees the secrets of some resources only: these plans do not depend on those of the others.
    /// They are not the ones to apply.
    #[must_use]
    pub(crate) fn seen_by(self, sees: SecretFilter) -> Self {
        Self { sees: Some(sees), ..self }
    }

    /// Plans these manifests for a reader who sees no secrets at all.
    pub(crate) fn masked(&self) -> Self {
        let (options, loaded, clock) = (self.options.clone(), Arc::clone(&self.loaded), self.clock.clone());
        let sees: Option<SecretFilter> = Some(Arc::new(|_: &Entry| false));
        Self { options, loaded, memo: None, clock, sees, runs_tests: self.runs_tests }
    }

    /// Plans although route tests may fail, to find out why. These plans are not the ones to apply.
    #[must_use]
    pub(crate) fn without_tests(self) -> Self {
        Self { runs_tests: false, ..self }
    }

    fn resolve(&self, snapshot: &Snapshot) -> Resolution {
        let options = self.options.resolving();
        match &self.memo {
            Some(memo) => resolve_again(&mut memo.lock().resolved, &self.loaded, snapshot, options, free),
            None => resolve(&self.loaded, snapshot, options),
        }
    }

    /// What this run keeps for the next one.
    #[cfg(test)]
    pub(crate) fn memo(&self) -> Option<std::sync::MutexGuard<'_, Memo>> {
        self.memo.as_ref().map(Lock::lock)
    }

    /// Whether all names are as in the last run, so that only what has other inputs is resolved.
    #[cfg(test)]
    pub(crate) fn keeps_all_names(&self, snapshot: &Snapshot) -> bool {
        let holds = |last: &LastResolution| last.holds(&self.loaded, snapshot, self.options.resolving());
        self.memo().is_some_and(|memo| memo.resolved.as_ref().is_some_and(holds))
    }

    /// The time from which lints may report something else about a plan that was judged just now.
    pub(crate) fn valid_until(&self, planned: &PlanResult) -> Option<Timestamp> {
        match &self.memo {
            // Each part knows it since it was judged.
            Some(memo) => memo.lock().judged.valid_until(),
            None => self.options.lints.valid_until(&planned.desired),
        }
    }

    /// Plans the changes from `snapshot` to the desired state. Changes nothing.
    pub(crate) fn plan(&self, snapshot: &Snapshot) -> PlanResult {
        if self.options.cancel.is_cancelled() {
            return Resolution::default().cancelled().planned(&self.loaded, None);
        }
        let mut resolved = stage("resolve", || self.resolve(snapshot));
        let keeps_all_names = resolved.keeps_all_names();
        resolved.check_scope(&self.options.scope, snapshot);
        let end = self.plan_resolved(resolved, snapshot);
        self.planned(end, snapshot, keeps_all_names)
    }

    /// The changes from `snapshot` before anything judges them, so that a caller who may not make them is refused at once. None
    /// if the manifests have errors, with which `plan` ends. The run of a caller who may make them resolves and compares again,
    /// because it plans from its own snapshot.
    pub(crate) fn unjudged_changes(&self, snapshot: &Snapshot) -> Option<Plan> {
        let is_faulty = self.loaded.diagnostics.iter().any(Diagnostic::is_error);
        if is_faulty || self.options.cancel.is_cancelled() {
            return None;
        }
        let mut resolved = stage("resolve", || self.resolve(snapshot));
        if resolved.has_errors() {
            return None;
        }
        let seen = self.seen(&mut resolved, snapshot).ok()?;
        let snapshot = seen.as_ref().unwrap_or(snapshot);
        Some(self.changes(&resolved, snapshot, self.options.prune, resolved.may_differ.as_ref()))
    }

    /// The changes from `snapshot` to a resolved source, with a note of those whose manifests state their ID. `only` has the
    /// resources that may differ; none if these may be any.
    fn changes(&self, resolved: &Resolution, snapshot: &Snapshot, prune: bool, only: Option<&BTreeSet<Key>>) -> Plan {
        let Options { source, budget, key_owner, .. } = &self.options;
        let (desired, owner) = (&resolved.desired, key_owner.as_ref());
        let mut plan = stage("diff", || diff(snapshot, desired, source, prune, *budget, owner, only));
        let states = |key: &&Key| resolved.origins.get(*key).is_some_and(|it| it.states_id());
        plan.stated = plan.changes.iter().map(|change| &change.key).filter(states).cloned().collect();
        plan
    }

    /// The stated IDs that a followed source needs a right for. To create those of a lost store again is what `recreate_ids` allows,
    /// which the operator sets; records of other systems were in no store.
    fn claimed_ids<'p>(&self, plan: &'p Plan) -> Cow<'p, BTreeSet<Key>> {
        let is_foreign = |key: &&Key| key.kind == Kind::EventSource || key.kind.facts().implicit;
        match self.options.recreate_ids {
            true => Cow::Owned(plan.stated.iter().filter(is_foreign).cloned().collect()),
            false => Cow::Borrowed(&plan.stated),
        }
    }

    /// Judges a resolved source, and plans it if that found no error.
    fn plan_resolved(&self, mut resolved: Resolution, snapshot: &Snapshot) -> PlanEnd {
        let (options, loaded, now) = (&self.options, &self.loaded, self.clock.time());
        let may_differ = resolved.may_differ.clone();
        if !options.prune {
            resolved.keep_undeclared(snapshot, &options.source);
        }
        let mut resolved = stage("judge", || {
            let mut memo = self.memo.as_ref().map(Lock::lock);
            judge(loaded, resolved, &options.lints, memo.as_deref_mut().map(|memo| &mut memo.judged), now)
        });
        let faulty = resolved.has_errors();
        if options.cancel.is_cancelled() {
            return PlanEnd::without_plan(resolved.capped().cancelled(), may_differ);
        }
        // A test that cannot be read may be one that fails.
        if faulty && (!options.isolate || loaded.has_faulty_tests) {
            return PlanEnd::without_plan(resolved.capped(), may_differ);
        }
        if faulty {
            resolved = stage("isolate", || self.isolate(resolved, snapshot, now));
        }
        let mut resolved = resolved.capped();
        match self.seen(&mut resolved, snapshot) {
            Ok(seen) => {
                let snapshot = seen.as_ref().unwrap_or(snapshot);
                self.tried(self.within_scope(resolved, snapshot, may_differ.as_ref(), faulty, now), snapshot)
            }
            Err(error) => {
                resolved.diagnostics.push(error.into());
                PlanEnd::without_plan(resolved, None)
            }
        }
    }

    /// Plans a judged source within its scope. If it is isolated, what the scope refuses is left out, like what is `faulty`
    /// already. `may_differ` has the resources that may differ; none if these may be any.
    fn within_scope(
        &self,
        mut resolved: Resolution,
        snapshot: &Snapshot,
        may_differ: Option<&BTreeSet<Key>>,
        mut faulty: bool,
        now: Timestamp,
    ) -> PlanEnd {
        let options = &self.options;
        loop {
            // A resource may have moved to an invalid manifest, so nothing is deleted while there are errors.
            let prune = options.prune && !faulty;
            let plan = self.changes(&resolved, snapshot, prune, may_differ.filter(|_| !faulty));
            // Only the next run on a followed source asks for them.
            let is_followed = !faulty && self.memo.is_some();
            let differing: Option<BTreeSet<Key>> = is_followed.then(|| {
                let changed = plan.changes.iter().map(|change| &change.key);
                changed.chain(plan.kept_resources.iter().map(|kept| &kept.key)).cloned().collect()
            });
            if options.cancel.is_cancelled() {
                return PlanEnd::without_plan(resolved.cancelled(), differing);
            }
            let operations = plan.each_operation();
            let refused = options.scope.refused(snapshot, &operations, &self.claimed_ids(&plan), &options.source);
            if refused.is_empty() {
                return PlanEnd { plan: Some((plan, None)), ..PlanEnd::without_plan(resolved, differing) };
            }
            // A deletion has no manifest to set aside, but the next plan has no deletions.
            let has_rest = resolved.mark(refused, snapshot) || !faulty;
            if !options.isolate || !has_rest {
                return PlanEnd::without_plan(resolved.capped(), differing);
            }
            resolved = stage("isolate", || self.isolate(resolved, snapshot, now)).capped();
            faulty = true;
        }
    }

    /// Tries a plan, if there is one, judges what it opens, and runs the route tests.
    fn tried(&self, mut end: PlanEnd, snapshot: &Snapshot) -> PlanEnd {
        let options = &self.options;
        let Some((mut plan, _)) = end.plan.take() else { return end };
        match stage("try", || apply_speculatively(snapshot, &mut plan)) {
            Err(refusals) => {
                let is_told = options.behaviour && note_refused_behaviour(&mut plan, snapshot);
                let resolved = end.resolved.refused(refusals, snapshot);
                PlanEnd { resolved, refused: is_told.then_some(plan), ..end }
            }
            Ok(_) if options.cancel.is_cancelled() => PlanEnd { resolved: end.resolved.cancelled(), ..end },
            Ok(tried) => {
                judge_exposure(&end.resolved.origins, &options.lints, &mut plan);
                if options.behaviour {
                    note_behaviour(&mut plan, tried.as_deref());
                }
                self.tested(PlanEnd { plan: Some((plan, tried)), ..end }, snapshot)
            }
        }
    }

    /// Runs the route tests on the state that a plan leaves. If one of them fails, there is no plan to apply.
    fn tested(&self, mut end: PlanEnd, snapshot: &Snapshot) -> PlanEnd {
        let source = &self.options.source;
        let stored = RoutedState::stored(snapshot, source);
        let state = match &end.plan {
            Some((_, Some(tried))) => RoutedState::stored(tried.after(), source),
            Some((plan, None)) if plan.is_empty() => stored,
            // A plan that is refused was not tried.
            _ => RoutedState { desired: Some(&end.resolved.desired), ..stored },
        };
        let Some((tests, found)) = self.test(state) else { return end };
        if found.iter().any(Diagnostic::is_error) {
            end.plan = None;
        }
        end.resolved.diagnostics.extend(found);
        PlanEnd { resolved: end.resolved.capped(), tests, ..end }
    }

    /// Runs the route tests on a state. Returns the results and what is not as expected, or none if there is nothing to run.
    fn test(&self, state: RoutedState<'_>) -> Option<(TestRun, Vec<Diagnostic>)> {
        if !self.runs_tests || self.loaded.tests.is_empty() {
            return None;
        }
        let stops = || self.options.cancel.is_cancelled();
        let tested = stage("test", || run_tests(&self.loaded, state, &[], stops));
        Some(if stops() { (TestRun::default(), vec![cancelled()]) } else { tested })
    }

    /// Judges what a plan opens, and runs the route tests on the state that it leaves, once a part of it was left out. If one of
    /// the tests fails, there is no plan to apply.
    pub(super) fn judge_again(&self, mut planned: PlanResult, snapshot: &Snapshot) -> PlanResult {
        if let Some(plan) = &mut planned.plan {
            judge_exposure(&planned.origins, &self.options.lints, plan);
        }
        let after = planned.tried.as_ref().map_or(snapshot, |tried| tried.after());
        let Some((tests, found)) = self.test(RoutedState::stored(after, &self.options.source)) else { return planned };
        if found.iter().any(Diagnostic::is_error) {
            planned.plan = None;
        }
        planned.diagnostics.retain(|it| !it.is_one_of(&[Code::RouteTestFailed]));
        planned.diagnostics.extend(found);
        PlanResult { tests, ..planned }
    }

    /// Skips invalid resources and everything that depends on them, and judges the rest again.
    fn isolate(&self, mut resolved: Resolution, snapshot: &Snapshot, now: Timestamp) -> Resolution {
        resolved.set_aside();
        resolved.keep_undeclared(snapshot, &self.options.source);
        // Only the rest is applied. Lints at level `deny` apply to it as a whole: one broken file must not disable them.
        // Findings that are already known are dropped with the other duplicates.
        let (found, denied) = findings(&resolved, &self.loaded.raised_lints, true, now, &self.options.lints, None);
        resolved.diagnostics.extend(found.into_iter().filter(Diagnostic::is_error));
        resolved.faulty = denied.into_iter().collect();
        loop {
            resolved.set_aside();
            resolved.judge_delegation(snapshot, &self.options.source);
            if resolved.faulty.is_empty() {
                return resolved;
            }
        }
    }

    /// The state as the reader of the plan sees it, unless the reader sees all of it.
    fn seen(&self, resolved: &mut Resolution, snapshot: &Snapshot) -> Result<Option<Snapshot>, JsonError> {
        let Some(sees) = &self.sees else { return Ok(None) };
        let desired = &resolved.desired;
        resolved.diagnostics.extend(uncompared_warning(snapshot, desired, sees));
        hide_unseen_secrets(snapshot, desired, sees).map(Some)
    }

    /// Completes a plan, and keeps for the next run what was resolved.
    fn planned(&self, end: PlanEnd, snapshot: &Snapshot, keeps_all_names: bool) -> PlanResult {
        let PlanEnd { mut resolved, plan, refused, differing, tests } = end;
        let facts = std::mem::take(&mut resolved.facts);
        let (others, is_self_contained) = (Arc::clone(&resolved.others), resolved.is_self_contained);
        let (plan, tried) = plan.map_or((None, None), |(plan, tried)| (Some(plan), tried));
        let mut planned = PlanResult { tried, tests, refused, ..resolved.planned(&self.loaded, plan) };
        if let Some(memo) = &self.memo {
            memo.lock().keep(LastResolution {
                loaded: Arc::clone(&self.loaded),
                snapshot: snapshot.clone(),
                desired: Arc::clone(&planned.desired),
                origins: Arc::clone(&planned.origins),
                facts,
                others,
                is_self_contained,
                differing: differing.filter(|_| keeps_all_names),
            });
        }
        if planned.plan.is_some() {
            planned.warn_about_kept();
        }
        planned
    }
}

/// Checks the rules and the lints. An error in one resource does not hide the findings in others.
fn judge(
    loaded: &Loaded,
    mut resolved: Resolution,
    lints: &LintLevels,
    memo: Option<&mut JudgedParts>,
    now: Timestamp,
) -> Resolution {
    resolved.diagnostics.splice(0..0, loaded.diagnostics.iter().cloned());
    let is_whole = !resolved.has_errors();
    resolved.spread_faults();
    let (found, denied) = findings(&resolved, &loaded.raised_lints, is_whole, now, lints, memo);
    resolved.diagnostics.extend(found);
    resolved.faulty.extend(denied);
    resolved
}
