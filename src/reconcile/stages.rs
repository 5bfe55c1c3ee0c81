//! The stages of a run, each from one value to the next: load, resolve, judge, isolate, diff, try.
//!
//! Loading returns [`Prepared`]. All later stages depend on a Snapshot, and can be repeated on another one without
//! reading the manifests again.

use std::{collections::BTreeMap, sync::Arc};

use super::{LintLevels, Options, Planned};
use crate::{
    lint::{self, Finding, Level, Subject, World},
    manifest::{
        self, Loaded,
        resolve::{Resolved, resolve, resolve_offline},
        tree::Tree,
    },
    model::{
        desired::Desired,
        diagnostic::{Diagnostic, Name, Severity, sort},
        fault::{Aim, Fault, MOST_FAULTS, Path},
        key::Key,
        snapshot::{Entry, Refusal, Snapshot},
    },
    plan::{Plan, diff, safety::Budget},
    store::mint,
};

/// Loaded manifests, which can be planned on any revision.
pub(crate) struct Prepared {
    /// The options of the run.
    pub options: Options,
    loaded: Loaded,
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
    validate_loaded(&manifest::load(tree), lints)
}

/// Like [`validate`], for loaded manifests.
pub(crate) fn validate_loaded(loaded: &Loaded, lints: &LintLevels) -> Planned {
    let resolved = resolve_offline(loaded, super::DEFAULT_SOURCE);
    let judged = judge(loaded, resolved, &[], lints);
    judged.planned(loaded, None)
}

/// Reads manifests and plans the changes from `snapshot` to their desired state. Changes nothing.
pub fn plan(options: &Options, snapshot: &Snapshot) -> Planned {
    Prepared::load(options.clone()).plan(snapshot)
}

impl Prepared {
    /// Reads the manifests.
    pub(crate) fn load(options: Options) -> Self {
        let loaded = manifest::load(options.tree.as_ref());
        Self { options, loaded }
    }

    /// Plans the changes from `snapshot` to the desired state. Changes nothing.
    pub(crate) fn plan(&self, snapshot: &Snapshot) -> Planned {
        let (options, loaded) = (&self.options, &self.loaded);
        let stops = || options.cancel.is_cancelled();
        if stops() {
            return Judged::nothing().planned(loaded, None).given_up();
        }
        let resolved = resolve(loaded, snapshot, &options.source, options.prune);
        let judged = judge(loaded, resolved, &others(snapshot, &options.source), &options.lints);
        if stops() {
            return judged.planned(loaded, None).given_up();
        }
        let faulty = judged.has_errors();
        if faulty && !options.isolate {
            return judged.planned(loaded, None);
        }
        let judged = if faulty { isolate(judged, &options.lints) } else { judged };
        // A resource may have moved to an invalid manifest, so nothing is deleted while there are errors.
        let prune = options.prune && !faulty;
        let plan = diff(snapshot, &judged.resolved.desired, &options.source, prune, options.budget);
        if stops() {
            return judged.planned(loaded, None).given_up();
        }
        match try_on(snapshot, &plan) {
            Err(refusal) => judged.refused(refusal).planned(loaded, None),
            Ok(()) if stops() => judged.planned(loaded, None).given_up(),
            Ok(()) => judged.planned(loaded, Some(plan)),
        }
    }
}

/// Plans the changes from one set of manifests to another, without a store.
pub(crate) fn compare(old: &Options, new: &Options) -> Planned {
    let lenient = |options: &Options| Options { budget: Budget::Percent(100.0), ..options.clone() };
    let mut before = plan(&lenient(old), &Snapshot::default());
    let Some(first) = before.plan.take() else { return before };
    match Snapshot::default().apply(&first.operations(), mint::now()) {
        Ok((snapshot, _)) => {
            let mut after = plan(&lenient(new), &snapshot);
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

/// Checks the rules, and the lints if no rule is violated.
fn judge(loaded: &Loaded, mut resolved: Resolved, others: &[Arc<Entry>], lints: &LintLevels) -> Judged {
    let mut diagnostics = loaded.diagnostics.clone();
    diagnostics.append(&mut resolved.diagnostics);
    let mut judged = Judged { resolved, diagnostics, set_aside: Vec::new() };
    // Lints compare resources with each other, so they would report false findings on incomplete manifests.
    if !judged.has_errors() {
        let (found, denied) = findings(&judged.resolved, others, lints);
        judged.diagnostics.extend(capped(found));
        judged.resolved.faulty.extend(denied);
    }
    sort(&mut judged.diagnostics);
    judged
}

/// Keeps the first findings of each file and severity; the last one states how many more there are (D48). A report of
/// all findings could be larger than the manifests.
fn capped(mut found: Vec<Diagnostic>) -> Vec<Diagnostic> {
    let file = |it: &Diagnostic| (it.place.as_ref().map(|place| place.file.name.clone()), it.severity);
    sort(&mut found);
    let mut counts: BTreeMap<_, usize> = BTreeMap::new();
    for it in &found {
        *counts.entry(file(it)).or_default() += 1;
    }
    let mut seen: BTreeMap<_, usize> = BTreeMap::new();
    let first = found.into_iter().filter_map(|mut it| {
        let key = file(&it);
        let seen = seen.entry(key.clone()).or_default();
        *seen += 1;
        let more = counts.get(&key).copied().unwrap_or_default().saturating_sub(MOST_FAULTS);
        if *seen == MOST_FAULTS && more > 0 {
            it.message += &format!(" (and {more} more in this file)");
        }
        (*seen <= MOST_FAULTS).then_some(it)
    });
    first.collect()
}

/// Skips invalid resources and everything that depends on them.
fn isolate(mut judged: Judged, lints: &LintLevels) -> Judged {
    judged.set_aside.extend(judged.resolved.set_aside());
    // Lints at level `deny` still apply to the rest: one broken file must not switch them off.
    let (found, denied) = findings(&judged.resolved, &[], lints);
    judged.diagnostics.extend(found.into_iter().filter(|it| it.severity == Severity::Error));
    sort(&mut judged.diagnostics);
    judged.resolved.faulty = denied.into_iter().collect();
    judged.set_aside.extend(judged.resolved.set_aside());
    judged
}

/// Tries a plan on the Snapshot, to report now what a commit would refuse.
fn try_on(snapshot: &Snapshot, plan: &Plan) -> Result<(), Refusal> {
    if !plan.refusals.is_empty() {
        return Ok(());
    }
    snapshot.apply(&plan.operations(), mint::now()).map(|_| ())
}

impl Judged {
    fn nothing() -> Self {
        Self { resolved: Resolved::default(), diagnostics: Vec::new(), set_aside: Vec::new() }
    }

    fn has_errors(&self) -> bool {
        self.diagnostics.iter().any(|it| it.severity == Severity::Error)
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
        }
    }
}

/// Runs the lints. Levels come from the manifests, the configuration or the defaults, in this order. Also returns the
/// resources with findings at level `deny`.
fn findings(resolved: &Resolved, others: &[Arc<Entry>], lints: &LintLevels) -> (Vec<Diagnostic>, Vec<Key>) {
    let world = World {
        desired: &resolved.desired,
        others,
        manifests: &resolved.facts,
        now: mint::now(),
        expiry_days: lints.certificate_expiry_days.unwrap_or(lint::expiring_certificate::DAYS),
        allowed_labels: lints.allowed_labels.as_ref(),
    };
    let level = |finding: &Finding| {
        let own = resolved.levels.get(&finding.subject).and_then(|levels| levels.get(finding.lint));
        let default = || lint::find(finding.lint).map_or(Level::Warn, |lint| lint.default);
        own.or_else(|| lints.levels.get(finding.lint)).copied().unwrap_or_else(default)
    };
    let mut denied = Vec::new();
    let shown: Vec<Diagnostic> = lint::run(&world)
        .into_iter()
        .filter_map(|finding| {
            let severity = match level(&finding) {
                Level::Allow => return None,
                Level::Warn => Severity::Warning,
                Level::Deny => Severity::Error,
            };
            if let (Severity::Error, Subject::Resource(key)) = (severity, &finding.subject) {
                denied.push(key.clone());
            }
            let origin = resolved.origin(&finding.subject)?;
            let place = match finding.in_document {
                true => origin.document().place(&finding.path, finding.aim),
                false => origin.place(&finding.path, finding.aim),
            };
            let related = finding.related.iter().filter_map(|(subject, path, label)| {
                Some((resolved.origin(subject)?.place(path, Aim::Value), (*label).to_owned()))
            });
            let cure = || lint::find(finding.lint).map(|lint| lint.cure).unwrap_or_default();
            let help = finding.help.unwrap_or_else(cure);
            Some(Diagnostic {
                severity,
                related: related.collect(),
                ..Diagnostic::error(Name::Lint(finding.lint), finding.message.clone()).help(help).at(place)
            })
        })
        .collect();
    (shown, denied)
}

fn at_their_lines(refusal: Refusal, resolved: &Resolved) -> Vec<Diagnostic> {
    let Refusal { key, faults } = refusal;
    let origin = resolved.origins.get(&key);
    let placed = faults.into_iter().map(|fault| match origin {
        Some(origin) => origin.diagnostic(fault),
        None => Diagnostic { help: fault.help.clone(), ..Diagnostic::error(fault.code, about(&key, &fault)) },
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
