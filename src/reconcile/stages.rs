//! The stages of a run, each from one value to the next: load, resolve, judge, isolate, diff, try.
//!
//! Loading returns [`Prepared`]. All later stages depend on a Snapshot, and can be repeated on another one without
//! reading the manifests again.

use std::{collections::BTreeMap, sync::Arc};

use super::{LintLevels, Options, Planned, judging::findings};
use crate::{
    lint::{KnownFindings, Subject},
    manifest::{
        self, Loaded, ParsedFiles,
        resolve::{Resolved, resolve, resolve_offline},
        tree::Tree,
    },
    model::{
        desired::Desired,
        diagnostic::{Diagnostic, Severity, cap},
        fault::{Fault, Path},
        key::Key,
        snapshot::{Entry, Refusal, Snapshot},
    },
    plan::{Plan, diff, safety::Budget},
    store::{Tried, mint},
};

/// Loaded manifests, which can be planned on any revision.
pub(crate) struct Prepared {
    /// The options of the run.
    pub options: Options,
    loaded: Arc<Loaded>,
    /// The findings of the last run, for a source that is loaded again and again.
    findings: Option<Arc<KnownFindings>>,
}

/// Resolved resources with the findings of all rules and lints.
struct Judged {
    resolved: Resolved,
    diagnostics: Vec<Diagnostic>,
    /// The skipped resources (D44).
    set_aside: Vec<Desired>,
}

/// Reads manifests and checks them against every rule and lint, using only the files.
pub fn validate(tree: &dyn Tree, lints: &LintLevels) -> Planned {
    validate_with(tree, lints, None)
}

/// Like [`validate`], with a cache of parsed files.
pub(crate) fn validate_with(tree: &dyn Tree, lints: &LintLevels, parsed: Option<&ParsedFiles>) -> Planned {
    validate_loaded(&manifest::load_with(tree, parsed), lints)
}

/// Like [`validate`], for loaded manifests.
pub(crate) fn validate_loaded(loaded: &Loaded, lints: &LintLevels) -> Planned {
    let resolved = resolve_offline(loaded, super::DEFAULT_SOURCE);
    judge(loaded, resolved, &[], lints, None).capped().planned(loaded, None)
}

/// Reads manifests and plans the changes from `snapshot` to their desired state. Changes nothing.
pub fn plan(options: &Options, snapshot: &Snapshot) -> Planned {
    plan_with(options, snapshot, None)
}

/// Like [`plan`], with a cache of parsed files.
pub(crate) fn plan_with(options: &Options, snapshot: &Snapshot, parsed: Option<&ParsedFiles>) -> Planned {
    Prepared::load_with(options.clone(), parsed).plan(snapshot)
}

impl Prepared {
    /// Reads the manifests.
    pub(crate) fn load(options: Options) -> Self {
        Self::load_with(options, None)
    }

    /// Reads the manifests, with a cache of parsed files.
    fn load_with(options: Options, parsed: Option<&ParsedFiles>) -> Self {
        let loaded = Arc::new(manifest::load_with(options.tree.as_ref(), parsed));
        Self { options, loaded, findings: None }
    }

    /// Reads the manifests of a source that is followed. What has not changed since the last run is not read, merged or
    /// judged again.
    pub(crate) fn load_again(options: Options, last: Option<Self>) -> Self {
        let tree = options.tree.as_ref();
        let (loaded, findings) = match last {
            Some(last) => (manifest::load_again(tree, &last.loaded), last.findings),
            None => (Loaded::load(tree), None),
        };
        Self { options, loaded: Arc::new(loaded), findings: Some(findings.unwrap_or_default()) }
    }

    /// Plans the changes from `snapshot` to the desired state. Changes nothing.
    pub(crate) fn plan(&self, snapshot: &Snapshot) -> Planned {
        let (options, loaded) = (&self.options, &self.loaded);
        let stops = || options.cancel.is_cancelled();
        if stops() {
            return Judged::nothing().planned(loaded, None).given_up();
        }
        let resolved = resolve(loaded, snapshot, &options.source, options.prune);
        let others = others(snapshot, &options.source);
        let judged = judge(loaded, resolved, &others, &options.lints, self.findings.as_deref());
        if stops() {
            return judged.capped().planned(loaded, None).given_up();
        }
        let faulty = judged.has_errors();
        if faulty && !options.isolate {
            return judged.capped().planned(loaded, None);
        }
        let judged = if faulty { isolate(judged, &others, &options.lints) } else { judged };
        let judged = judged.capped();
        // A resource may have moved to an invalid manifest, so nothing is deleted while there are errors.
        let prune = options.prune && !faulty;
        let plan = diff(snapshot, &judged.resolved.desired, &options.source, prune, options.budget);
        if stops() {
            return judged.planned(loaded, None).given_up();
        }
        match try_on(snapshot, &plan) {
            Err(refusal) => judged.refused(refusal).planned(loaded, None),
            Ok(_) if stops() => judged.planned(loaded, None).given_up(),
            Ok(tried) => Planned { tried, ..judged.planned(loaded, Some(plan)) },
        }
    }
}

/// Plans the changes from one set of manifests to another, without a store.
pub(crate) fn compare(old: &Options, new: &Options, parsed: Option<&ParsedFiles>) -> Planned {
    let lenient = |options: &Options| Options { budget: Budget::Percent(100.0), ..options.clone() };
    let mut before = plan_with(&lenient(old), &Snapshot::default(), parsed);
    let Some(first) = before.plan.take() else { return before };
    match Snapshot::default().apply(&first.operations(), mint::now()) {
        Ok((snapshot, _)) => {
            let mut after = plan_with(&lenient(new), &snapshot, parsed);
            after.files.splice(0..0, before.files);
            after
        }
        Err(refusal) => Planned {
            diagnostics: refusal.faults.into_iter().map(|fault| Diagnostic::error(fault.code, fault.message)).collect(),
            ..before
        },
    }
}

/// Returns the resources of other sources, which lints compare with.
fn others(snapshot: &Snapshot, source: &str) -> Vec<Arc<Entry>> {
    let owned = |entry: &&Arc<Entry>| entry.claim.as_ref().is_some_and(|claim| claim.source != source);
    snapshot.iter().filter(owned).cloned().collect()
}

/// Checks the rules and the lints. An error in one resource does not hide the findings in others.
fn judge(
    loaded: &Loaded,
    mut resolved: Resolved,
    others: &[Arc<Entry>],
    lints: &LintLevels,
    known: Option<&KnownFindings>,
) -> Judged {
    let mut diagnostics = loaded.diagnostics.clone();
    diagnostics.append(&mut resolved.diagnostics);
    let mut judged = Judged { resolved, diagnostics, set_aside: Vec::new() };
    let is_whole = !judged.has_errors();
    judged.resolved.spread_faults();
    let (found, denied) = findings(&judged.resolved, others, lints, is_whole, known);
    judged.diagnostics.extend(found);
    judged.resolved.faulty.extend(denied);
    judged
}

/// Skips invalid resources and everything that depends on them.
fn isolate(mut judged: Judged, others: &[Arc<Entry>], lints: &LintLevels) -> Judged {
    judged.set_aside.extend(judged.resolved.set_aside());
    // What remains is all that is applied. Lints at level `deny` apply to it as to any whole: one broken file must not
    // switch them off. Findings that are already known are dropped with the other duplicates.
    let (found, denied) = findings(&judged.resolved, others, lints, true, None);
    judged.diagnostics.extend(found.into_iter().filter(|it| it.severity == Severity::Error));
    judged.resolved.faulty = denied.into_iter().collect();
    judged.set_aside.extend(judged.resolved.set_aside());
    judged
}

/// Tries a plan on the Snapshot, to report now what a commit would refuse.
pub(super) fn try_on(snapshot: &Snapshot, plan: &Plan) -> Result<Option<Arc<Tried>>, Refusal> {
    if !plan.refusals.is_empty() || plan.is_empty() {
        return Ok(None);
    }
    Tried::new(snapshot, &plan.each_operation()).map(|tried| Some(Arc::new(tried)))
}

impl Judged {
    fn nothing() -> Self {
        Self { resolved: Resolved::default(), diagnostics: Vec::new(), set_aside: Vec::new() }
    }

    fn has_errors(&self) -> bool {
        self.diagnostics.iter().any(|it| it.severity == Severity::Error)
    }

    /// Sorts the diagnostics and limits their number.
    fn capped(mut self) -> Self {
        cap(&mut self.diagnostics);
        self
    }

    fn refused(mut self, refusal: Refusal) -> Self {
        self.diagnostics.extend(at_their_lines(refusal, &self.resolved));
        self
    }

    fn planned(self, loaded: &Loaded, plan: Option<Plan>) -> Planned {
        let desired: BTreeMap<Key, Desired> = self.resolved.desired;
        Planned {
            diagnostics: self.diagnostics,
            plan,
            desired,
            left_out: self.set_aside,
            files: loaded.files.clone(),
            origins: self.resolved.origins,
            tried: None,
        }
    }
}

fn at_their_lines(refusal: Refusal, resolved: &Resolved) -> Vec<Diagnostic> {
    let Refusal { key, faults } = refusal;
    let subject = Subject::Resource(key.clone());
    let placed = faults.into_iter().map(|fault| {
        let unplaced = || Diagnostic { help: fault.help.clone(), ..Diagnostic::error(fault.code, about(&key, &fault)) };
        resolved.diagnostic(&subject, fault.clone()).unwrap_or_else(unplaced)
    });
    placed.collect()
}

/// Returns a fault's message, prefixed with the resource unless the message names it.
pub(super) fn about(key: &Key, fault: &Fault) -> String {
    let subject = key.to_string();
    if fault.message.contains(&subject) {
        return fault.message.clone();
    }
    let place = if fault.path == Path::root() { String::new() } else { format!(" at {}", fault.path) };
    format!("{subject}{place}: {}", fault.message)
}
