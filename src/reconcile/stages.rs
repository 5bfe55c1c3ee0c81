//! The stages of a run, each from one value to the next: load, resolve, judge, isolate, diff, try.
//!
//! Loading returns [`Prepared`]. All later stages depend on a Snapshot, and can be repeated on another one without
//! reading the manifests again.

mod changes_from;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use jiff::Timestamp;
use rayon::iter::{IndexedParallelIterator, IntoParallelIterator, ParallelIterator};

use super::{
    LintLevels, Options, Planned,
    clock::Clock,
    judged::Judged,
    judging::{Before, JudgedChange, Surroundings, findings},
    settled::SettledRun,
    spans::stage,
    unseen::{Sees, uncompared, without_unseen},
};
use crate::{
    lint::KnownFindings,
    manifest::{
        self, Loaded,
        again::{LastResolved, Lasting},
        resolve::{Resolved, resolve, resolve_offline},
        tree::Tree,
    },
    model::{
        desired::Desired,
        diagnostic::{Diagnostic, Severity},
        key::Key,
        snapshot::{Entry, Refusal, Snapshot},
    },
    plan::{Plan, diff, safety::Budget},
    store::{Tried, ids_and_clock},
};

/// Loaded manifests, which can be planned on any revision.
pub(crate) struct Prepared {
    /// The options of the run.
    pub options: Options,
    loaded: Arc<Loaded>,
    /// What the runs on a source leave for the next one, if it is loaded again and again.
    memory: Option<Arc<SourceMemory>>,
    clock: Clock,
    /// The resources whose secrets the reader of the plan sees, if not all.
    sees: Option<Sees>,
}

/// What a run on a followed source leaves for the next one.
#[derive(Default)]
struct SourceMemory {
    findings: KnownFindings,
    /// The last run without a fault.
    resolved: Mutex<Option<LastResolved>>,
    /// What the last run no longer needs. It is freed when nobody waits.
    former: Mutex<Vec<Arc<Loaded>>>,
}

/// A source that was resolved.
struct ResolvedSource {
    resolved: Resolved,
    /// The resources that may differ from those in the store, if they are known.
    may_differ: Option<BTreeSet<Key>>,
    lasting: Lasting,
    /// What has changed since the lints ran, if that is known.
    change: Option<JudgedChange>,
}

impl SourceMemory {
    fn resolved(&self) -> MutexGuard<'_, Option<LastResolved>> {
        self.resolved.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn former(&self) -> MutexGuard<'_, Vec<Arc<Loaded>>> {
        self.former.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reads manifests and checks them against every rule and lint, using only the files.
pub fn validate(tree: &dyn Tree, lints: &LintLevels) -> Planned {
    let loaded = manifest::load(tree);
    let validated = validate_loaded(&loaded, lints, super::DEFAULT_SOURCE);
    free(loaded);
    validated
}

/// Like [`validate`], for loaded manifests of a source.
pub(crate) fn validate_loaded(loaded: &Loaded, lints: &LintLevels, source: &str) -> Planned {
    let context = loaded.context_state();
    let resolved = resolve_offline(loaded, &context, source);
    let others = others(&context, source, &resolved.desired);
    judge(loaded, resolved, &others, lints, Before::default(), ids_and_clock::now()).capped().planned(loaded, None)
}

/// Reads manifests and plans the changes from `snapshot` to their desired state. Changes nothing.
pub fn plan(options: &Options, snapshot: &Snapshot) -> Planned {
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
        let loaded = Arc::new(manifest::load(options.tree.as_ref()));
        Self { options, loaded, memory: None, clock: Clock::default(), sees: None }
    }

    /// Reads the manifests of a source that is followed. What has not changed since the last run is not read, merged or
    /// judged again.
    pub(crate) fn load_again(options: Options, last: Option<Self>) -> Self {
        let tree = options.tree.as_ref();
        let (loaded, memory) = stage("load", || match last {
            Some(last) => (manifest::load_again(tree, &last.loaded), last.memory),
            None => (manifest::load_again(tree, &Loaded::default()), None),
        });
        let memory = Some(memory.unwrap_or_default());
        Self { options, loaded: Arc::new(loaded), memory, clock: Clock::default(), sees: None }
    }

    /// The state of a store that has only the resources of the context.
    pub(crate) fn context_state(&self) -> Snapshot {
        self.loaded.context_state()
    }

    /// The same, judged at the time of a clock.
    pub(super) fn on(self, clock: Clock) -> Self {
        Self { clock, ..self }
    }

    /// The same for a reader who sees the secrets of some resources only: its plans do not depend on those of the others.
    /// They are not the ones to apply.
    #[must_use]
    pub(crate) fn seen_by(self, sees: Sees) -> Self {
        Self { sees: Some(sees), ..self }
    }

    /// The resources whose secrets the reader of the plans sees, if not all.
    pub(crate) fn sees(&self) -> Option<&Sees> {
        self.sees.as_ref()
    }

    /// The same manifests for a reader who sees no secrets at all.
    pub(crate) fn masked(&self) -> Self {
        let (options, loaded, clock) = (self.options.clone(), Arc::clone(&self.loaded), self.clock.clone());
        Self { options, loaded, memory: None, clock, sees: Some(Arc::new(|_: &Entry| false)) }
    }

    /// Resolves the manifests: what has changed since the last run, if that keeps all names.
    fn resolve(&self, snapshot: &Snapshot) -> ResolvedSource {
        let (source, prune) = (self.options.source.as_str(), self.options.prune);
        if let Some(memory) = &self.memory {
            let mut last = memory.resolved();
            let concerned = last.as_ref().and_then(|last| last.concerned(&self.loaded, snapshot, source, prune));
            if let (Some(concerned), Some(last)) = (concerned, last.take()) {
                let (may_differ, lasting) = (Some(concerned.may_differ.clone()), last.lasting.clone());
                let findings = last.findings;
                let change = concerned.judged_again().map(|changed| JudgedChange { findings, changed });
                let (resolved, former) = last.resolved(concerned);
                memory.former().push(former);
                return ResolvedSource { resolved, may_differ, lasting, change };
            }
        }
        let resolved = resolve(&self.loaded, snapshot, self.options.resolving());
        let lasting = Lasting::new(Arc::new(others(snapshot, source, &resolved.desired)));
        ResolvedSource { resolved, may_differ: None, lasting, change: None }
    }

    /// Frees what the last run no longer needs, and makes what the next one needs. Both take as long as the source is
    /// large, so this is for a time when nobody waits.
    pub(super) fn tidy(&self) {
        let Some(memory) = &self.memory else { return };
        drop(std::mem::take(&mut *memory.former()));
        if let Some(last) = memory.resolved().as_ref() {
            last.prepare();
        }
    }

    /// Whether all names are as in the last run, so that only what a change concerns is resolved.
    #[cfg(test)]
    pub(super) fn keeps_all_names(&self, snapshot: &Snapshot) -> bool {
        let (source, prune) = (self.options.source.as_str(), self.options.prune);
        let concerned = |last: &LastResolved| last.concerned(&self.loaded, snapshot, source, prune).is_some();
        self.memory.as_ref().is_some_and(|memory| memory.resolved().as_ref().is_some_and(concerned))
    }

    /// The number of the findings of the lints: it grows by one if only a change was judged, and by more otherwise.
    #[cfg(test)]
    pub(super) fn findings(&self) -> u64 {
        self.memory.as_ref().map(|memory| memory.findings.number()).unwrap_or_default()
    }

    /// The run that has just judged and planned this, after which the store is at a revision.
    pub(super) fn done<'a>(&self, planned: &'a Planned, revision: u64) -> SettledRun<'a> {
        match &self.memory {
            // Each part knows it since it was judged.
            Some(memory) => SettledRun { planned, revision, until: memory.findings.hold_until() },
            None => SettledRun::judged_now(planned, revision, &self.options),
        }
    }

    /// Plans the changes from `snapshot` to the desired state. Changes nothing.
    pub(crate) fn plan(&self, snapshot: &Snapshot) -> Planned {
        let (options, loaded) = (&self.options, &self.loaded);
        let stops = || options.cancel.is_cancelled();
        if stops() {
            return Judged::nothing().planned(loaded, None).given_up();
        }
        let source = stage("resolve", || self.resolve(snapshot));
        let ResolvedSource { mut resolved, may_differ, lasting, change } = source;
        resolved.limit(&options.scope, snapshot);
        let keeps = may_differ.is_some() || resolved.keeps_all_names();
        let others = Arc::clone(&lasting.others);
        let known = self.memory.as_ref().map(|memory| &memory.findings);
        let (before, now) = (Before { known, change: change.as_ref() }, self.clock.time());
        let mut judged = stage("judge", || judge(loaded, resolved, &others, &options.lints, before, now));
        let keep = |mut judged: Judged, pending: Option<BTreeSet<Key>>, end: &dyn Fn(Judged) -> Planned| {
            let facts = std::mem::take(&mut judged.resolved.facts);
            let planned = end(judged);
            if let (true, Some(memory), Some(pending)) = (keeps, &self.memory, pending) {
                let (desired, origins) = (Arc::clone(&planned.desired), Arc::clone(&planned.origins));
                let (loaded, snapshot, lasting) = (Arc::clone(loaded), snapshot.clone(), lasting.clone());
                let findings = memory.findings.number();
                let last = LastResolved { loaded, snapshot, desired, origins, facts, pending, findings, lasting };
                *memory.resolved() = Some(last);
            }
            planned
        };
        if stops() {
            return keep(judged, may_differ, &|judged| judged.capped().planned(loaded, None).given_up());
        }
        let mut faulty = judged.has_errors();
        if faulty && !options.isolate {
            return keep(judged, may_differ, &|judged| judged.capped().planned(loaded, None));
        }
        if faulty {
            judged = stage("isolate", || isolate(judged, &others, options, snapshot, now));
        }
        let mut judged = judged.capped();
        let known = match &self.sees {
            None => Ok(None),
            Some(sees) => {
                let desired = &judged.resolved.desired;
                judged.diagnostics.extend(uncompared(snapshot, desired, sees));
                without_unseen(snapshot, desired, sees).map(Some)
            }
        };
        let known = match known {
            Ok(known) => known,
            Err(error) => {
                judged.diagnostics.push(error.into());
                return judged.planned(loaded, None);
            }
        };
        let snapshot = known.as_ref().unwrap_or(snapshot);
        let whole = |judged: Judged| judged.planned(loaded, None);
        let (mut plan, pending) = loop {
            // A resource may have moved to an invalid manifest, so nothing is deleted while there are errors.
            let prune = options.prune && !faulty;
            let only = may_differ.as_ref().filter(|_| !faulty);
            let desired = &judged.resolved.desired;
            let owner = options.key_owner.as_ref();
            let mut plan =
                stage("diff", || diff(snapshot, desired, &options.source, prune, options.budget, owner, only));
            // Only the next run on a followed source asks for them.
            let is_followed = !faulty && self.memory.is_some();
            let pending: Option<BTreeSet<Key>> = is_followed.then(|| {
                let changed = plan.changes.iter().map(|change| &change.key);
                changed.chain(plan.kept.iter().map(|kept| &kept.key)).cloned().collect()
            });
            if stops() {
                return keep(judged, pending, &whole).given_up();
            }
            let origins = &judged.resolved.origins;
            let changed = plan.changes.iter().map(|change| &change.key);
            plan.stated = changed.filter(|key| origins.states_subscription(key)).cloned().collect();
            let refused = options.scope.refused(snapshot, &plan.each_operation(), &plan.stated, &options.source);
            if refused.is_empty() {
                break (plan, pending);
            }
            // A deletion has no manifest to set aside, but the next plan has no deletions.
            let has_rest = judged.mark(refused, snapshot) || !faulty;
            if !options.isolate || !has_rest {
                return keep(judged.capped(), pending, &whole);
            }
            judged = stage("isolate", || isolate(judged, &others, options, snapshot, now)).capped();
            faulty = true;
        };
        match stage("try", || try_on(snapshot, &mut plan)) {
            Err(refusal) => keep(judged.refused(refusal, snapshot), pending, &whole),
            Ok(_) if stops() => keep(judged, pending, &whole).given_up(),
            Ok(tried) => Planned { plan: Some(plan), tried, ..keep(judged, pending, &whole) }.with_warnings_of_kept(),
        }
    }
}

/// Plans the changes from one set of manifests to another, without a store.
pub(crate) fn compare(old: &Options, new: &Options) -> Planned {
    let lenient = |options: &Options| Options { budget: Budget::Percent(100.0), recreate_ids: true, ..options.clone() };
    let former = Prepared::load(lenient(old));
    let context = former.context_state();
    let mut before = former.plan(&context);
    let Some(first) = before.plan.take() else { return before };
    match context.apply(&first.operations(), ids_and_clock::now()) {
        Ok((snapshot, _)) => {
            let current = Prepared::load(lenient(new));
            let mut after = current.plan(&current.loaded.in_context(&snapshot));
            after.files.splice(0..0, before.files);
            after
        }
        Err(refusal) => Planned {
            diagnostics: refusal.faults.into_iter().map(|fault| Diagnostic::error(fault.code, fault.message)).collect(),
            ..before
        },
    }
}

/// Returns the resources of other sources, which lints compare with. Those that the source takes over are its own.
fn others(snapshot: &Snapshot, source: &str, desired: &BTreeMap<Key, Desired>) -> Vec<Arc<Entry>> {
    let owned = |entry: &&Arc<Entry>| {
        entry.claim.as_deref().is_some_and(|claim| claim.source != source) && !desired.contains_key(&entry.key)
    };
    // All cores wait for the memory of the claims.
    let entries: Vec<&Arc<Entry>> = snapshot.iter().collect();
    entries.into_par_iter().with_min_len(1024).filter(owned).cloned().collect()
}

/// Checks the rules and the lints. An error in one resource does not hide the findings in others.
fn judge(
    loaded: &Loaded,
    mut resolved: Resolved,
    others: &[Arc<Entry>],
    lints: &LintLevels,
    before: Before<'_>,
    now: Timestamp,
) -> Judged {
    let mut diagnostics = loaded.diagnostics.clone();
    diagnostics.append(&mut resolved.diagnostics);
    let mut judged = Judged { resolved, diagnostics, set_aside: Vec::new() };
    let is_whole = !judged.has_errors();
    judged.resolved.spread_faults();
    let (found, denied) = findings(&judged.resolved, Surroundings { others, is_whole, now }, lints, before);
    judged.diagnostics.extend(found);
    judged.resolved.faulty.extend(denied);
    judged
}

/// Skips invalid resources and everything that depends on them, and judges the rest again.
fn isolate(
    mut judged: Judged,
    others: &[Arc<Entry>],
    options: &Options,
    snapshot: &Snapshot,
    now: Timestamp,
) -> Judged {
    judged.set_aside.extend(judged.resolved.set_aside());
    // What remains is all that is applied. Lints at level `deny` apply to it as to any whole: one broken file must not
    // switch them off. Findings that are already known are dropped with the other duplicates.
    let surroundings = Surroundings { others, is_whole: true, now };
    let (found, denied) = findings(&judged.resolved, surroundings, &options.lints, Before::default());
    judged.diagnostics.extend(found.into_iter().filter(|it| it.severity == Severity::Error));
    judged.resolved.faulty = denied.into_iter().collect();
    judged.set_aside.extend(judged.resolved.set_aside());
    loop {
        judged.resolved.judge_consent(snapshot, &options.source);
        judged.diagnostics.append(&mut judged.resolved.diagnostics);
        if judged.resolved.faulty.is_empty() {
            return judged;
        }
        judged.set_aside.extend(judged.resolved.set_aside());
    }
}

/// Tries a plan on the Snapshot, to report now what a commit would refuse, what the plan opens, and what it takes
/// from others.
pub(super) fn try_on(snapshot: &Snapshot, plan: &mut Plan) -> Result<Option<Arc<Tried>>, Refusal> {
    plan.taken_over.clear();
    plan.lost_certificates.clear();
    if !plan.refusals.is_empty() || plan.is_empty() {
        return Ok(None);
    }
    let tried = Tried::new(snapshot, &plan.each_operation())?;
    plan.note_effects(snapshot, tried.after());
    Ok(Some(Arc::new(tried)))
}
