//! The result of planning, as a report and for a commit.

use std::{collections::BTreeMap, sync::Arc};

use rayon::iter::{IntoParallelRefIterator, ParallelIterator};

use super::speculative::{apply_speculatively, note_behaviour, note_refused_behaviour};
use super::{fault_message::unplaced, test_stage::TestRun, token};
use crate::background::yield_to_requests;
use crate::manifest::{ManifestFile, Origins};
use crate::model::{Code, Desired, Diagnostic, Fault, FaultTarget, Key, Path, Refusal, Severity, Snapshot};
use crate::plan::report::Report;
use crate::plan::test_report::TestReport;
use crate::plan::{Change, Detail, Effect, Plan, RedactedPlan};
use crate::store::{Places, SpeculativeCommit, Store};
use crate::tenancy::closed_hosts;

/// A larger commit records the files of its resources without lines. For the lines, each file is parsed once more, which
/// takes longer than the commit, and nobody reads the lines of thousands of resources.
const MOST_LINES: usize = 2_000;

/// The most kept resources whose users are looked up in the history.
const MOST_LOCATED: usize = 20;

/// The result of planning.
#[derive(Debug, Default)]
pub struct PlanResult {
    /// Errors and warnings about the manifests.
    pub diagnostics: Vec<Diagnostic>,
    /// The plan; `None` if the manifests have errors.
    pub plan: Option<Plan>,
    /// The plan that invariants refuse, if it has no other errors and its effect on requests was asked for. It is only shown.
    pub(crate) refused: Option<Plan>,
    /// The desired state.
    pub desired: Arc<BTreeMap<Key, Desired>>,
    /// The resources skipped because they, or resources that they depend on, are invalid (D44).
    pub left_out: Vec<Desired>,
    /// The error because of which no manifest of the source, or not every surrounding one, was read.
    pub(crate) unread: Option<Diagnostic>,
    /// Whether a rollback undid transfers that the manifests still declare, or no longer do.
    pub(crate) transfer_was_undone: bool,
    /// The files that were read.
    pub files: Vec<Arc<ManifestFile>>,
    /// The origin of each declared resource.
    pub(crate) origins: Arc<Origins>,
    /// The result of the plan on the state it was computed from. Code that may have changed the plan must not commit
    /// it.
    pub(crate) tried: Option<Arc<SpeculativeCommit>>,
    /// The state on which a plan without manifests was refused when it was tried.
    pub(crate) refused_on: Option<Snapshot>,
    /// The results of the route tests.
    pub(crate) tests: TestRun,
}

impl PlanResult {
    /// A plan that does not come from manifests. Tries it, and adds what a commit would refuse, and warnings about hosts of
    /// others that it closes.
    pub(crate) fn without_manifests(current: &Snapshot, mut plan: Plan) -> Self {
        let mut refused_on = None;
        let tried = apply_speculatively(current, &mut plan).unwrap_or_else(|refusals| {
            refused_on = Some(current.clone());
            for Refusal { key, faults } in refusals.into_vec() {
                plan.refusals.extend(faults.iter().map(|fault| {
                    let help = fault.help.clone().unwrap_or_else(|| fault.code.info().cure.to_owned());
                    unplaced(&key, fault).help(help)
                }));
            }
            None
        });
        let diagnostics = tried.as_deref().map(|tried| closed_hosts_of(&plan, tried)).unwrap_or_default();
        Self { diagnostics, plan: Some(plan), tried, refused_on, ..Self::default() }
    }

    /// Notes how the plan treats requests differently, or would if no invariant refused it.
    pub(crate) fn note_behaviour(&mut self) {
        match (&mut self.plan, &self.refused_on) {
            (Some(plan), Some(current)) => {
                note_refused_behaviour(plan, current);
            }
            (Some(plan), None) => note_behaviour(plan, self.tried.as_deref()),
            (None, _) => {}
        }
    }

    /// Returns the error that writing the token of a new API key would cause, at the line of its `token_file`. Only the
    /// process that writes the file can check this, not a server.
    pub fn token_fault(&self, key: &Key) -> Option<Diagnostic> {
        let file = self.desired.get(key)?.token_file.as_ref()?;
        let fault = token::check_new(file).err()?.diagnostic();
        Some(placed(&self.origins, Some(key), &Path::from("token_file"), fault))
    }

    /// Returns the errors that writing the tokens of the API keys in the plan would cause.
    pub fn token_faults(&self) -> Vec<Diagnostic> {
        let creates = |change: &&Change| matches!(change.effect, Effect::Create | Effect::Replace);
        let created = self.plan.iter().flat_map(|plan| &plan.changes).filter(creates);
        created.filter_map(|change| self.token_fault(&change.key)).collect()
    }

    /// Returns the file of each resource that the plan changes, for the history; up to 2,000 changes, with the line.
    pub fn places(&self) -> Places {
        let changes = self.plan.as_ref().map(|plan| plan.changes.as_slice()).unwrap_or_default();
        let place = |key: &Key| match changes.len() <= MOST_LINES {
            true => self.declared_at(key, &Path::root()),
            false => Some(self.origins.get(key)?.origin.file.source.name.clone()),
        };
        // The first position in a file parses it.
        let places = changes.par_iter().filter_map(|change| {
            yield_to_requests();
            Some((change.key.clone(), place(&change.key)?))
        });
        places.collect::<Vec<(Key, String)>>().into_iter().collect()
    }

    /// Whether the manifests have errors.
    pub fn has_errors(&self) -> bool {
        self.diagnostics.iter().any(Diagnostic::is_error)
    }

    /// Whether nothing but invariants stands against the plan. What it would do can then still be told.
    pub(crate) fn is_refused_by_invariants(&self) -> bool {
        self.plan.is_none() && self.has_no_errors_but(&[Code::InvariantBroken, Code::InvariantUnproven])
    }

    /// Whether route tests fail, and the manifests have no other errors.
    pub(crate) fn fails_only_tests(&self) -> bool {
        self.has_no_errors_but(&[Code::RouteTestFailed])
    }

    /// Whether the manifests have errors, and each of them has one of these codes.
    fn has_no_errors_but(&self, codes: &[Code]) -> bool {
        let mut errors = self.diagnostics.iter().filter(|it| it.is_error());
        self.has_errors() && errors.all(|it| it.is_one_of(codes))
    }

    /// Whether the store matches all manifests once the plan is applied.
    pub(crate) fn settles(&self) -> bool {
        let applies = self.plan.as_ref().is_some_and(|plan| plan.refusals.is_empty());
        applies && !self.has_errors() && self.left_out.is_empty()
    }

    /// Whether the store has nothing to do at a revision: the plan is empty, or was applied as this revision.
    pub(crate) fn leaves_nothing(&self, revision: u64) -> bool {
        self.settles() && self.plan.as_ref().is_some_and(|plan| plan.is_empty() || plan.base < revision)
    }

    /// The number of files of the source, without the surrounding ones.
    pub(crate) fn own_files(&self) -> usize {
        self.files.iter().filter(|file| !file.is_surrounding).count()
    }

    /// Describes the skipped resources.
    pub fn left_out_names(&self) -> Vec<String> {
        let name = |it: &Desired| {
            it.key.full_name(&it.claim.name, |parent| {
                let left_out = || self.left_out.iter().find(|it| it.key == *parent);
                self.desired.get(parent).or_else(left_out).map(|it| it.claim.name.as_str())
            })
        };
        self.left_out.iter().map(|it| format!("{} {} ({})", it.key.kind, name(it), it.key.id)).collect()
    }

    /// The warnings of what the plan opens, weakens and takes from others, at their manifests. They come first: a
    /// reviewer must see them.
    fn exposure_warnings(&self) -> Vec<Diagnostic> {
        // A denied one is a refusal.
        let exposures = self.plan.iter().flat_map(|plan| exposures(plan, &self.origins, Severity::Warning));
        // Edges of other sources may lose their last certificate for a host.
        let lost = self.plan.iter().flat_map(|plan| &plan.effects.lost_certificates);
        let lost = lost.map(|lost| {
            let help = "keep the certificate until the edge has another one, or name this source in the edge's \
                        `certificates_from`";
            self.warning(Some(&lost.certificate), Code::NotDelegated, lost.to_string(), help)
        });
        exposures.chain(lost).chain(self.invariant_warnings()).collect()
    }

    /// The warnings about invariants of which nobody can tell after the plan whether they hold, and about those that only routes
    /// of other sources keep from being broken.
    fn invariant_warnings(&self) -> impl Iterator<Item = Diagnostic> {
        let doubts = self.tried.iter().flat_map(|tried| tried.doubts());
        let behind_others = self.plan.iter().flat_map(|plan| &plan.effects.broken_behind_others);
        doubts.chain(behind_others).map(|(key, fault)| {
            let found = Diagnostic::warning(fault.code, fault.message.clone());
            let help = fault.help.clone().unwrap_or_else(|| fault.code.info().cure.to_owned());
            placed(&self.origins, Some(key), &fault.path, found.help(help))
        })
    }

    /// A warning at the manifest of a resource, if there is one.
    fn warning(&self, key: Option<&Key>, code: Code, message: String, help: &str) -> Diagnostic {
        placed(&self.origins, key, &Path::root(), Diagnostic::warning(code, message).help(help))
    }

    /// Adds the warnings about resources that are kept, because other sources still use them, and removes earlier ones. They
    /// come first, so that no limit leaves them out.
    pub(super) fn warn_about_kept(&mut self) {
        let is_warning_of_kept = |it: &Diagnostic| !it.is_error() && it.is_one_of(&[Code::InUse]);
        self.diagnostics.retain(|it| !is_warning_of_kept(it));
        let kept = self.plan.iter().flat_map(|plan| &plan.kept_resources);
        let warnings = kept.map(|kept| {
            let help = match kept.successor {
                Some(_) => "let the other sources use the new one; the next plan then deletes this one",
                None => "remove the references in the other sources; the next plan then deletes it",
            };
            self.warning(kept.successor.as_ref(), Code::InUse, kept.to_string(), help)
        });
        let warnings: Vec<Diagnostic> = warnings.collect();
        self.diagnostics.splice(0..0, warnings);
    }

    /// Adds to the warnings about kept resources where other sources declare what uses them, as far as the history has it.
    pub(crate) fn locate_users_of_kept(&mut self, store: &Store, source: &str) {
        let Some(plan) = self.plan.as_mut().filter(|plan| !plan.kept_resources.is_empty()) else { return };
        for kept in plan.kept_resources.iter_mut().take(MOST_LOCATED) {
            kept.locate(source, |key, source| store.declared_at(key, source).ok().flatten());
        }
        self.warn_about_kept();
    }

    /// The file and line of a field of a declared resource.
    pub(crate) fn declared_at(&self, key: &Key, path: &Path) -> Option<String> {
        let place = self.origins.get(key)?.origin.place(path, FaultTarget::Value);
        Some(format!("{}:{}", place.file.name, place.line_column().0))
    }

    /// The results of the route tests, for a report.
    pub(crate) fn test_report(&self) -> TestReport {
        self.tests.report(&self.desired)
    }

    /// Creates the report of a command.
    pub fn report(&self, command: &'static str) -> Report {
        self.report_with(command, Detail::Bodies)
    }

    /// Creates the report of a command with the detail that its format shows.
    pub(crate) fn report_with(&self, command: &'static str, detail: Detail) -> Report {
        let mut diagnostics = self.exposure_warnings();
        diagnostics.extend_from_slice(&self.diagnostics);
        let plan = self.plan.as_ref().map(|plan| RedactedPlan::new(plan, detail)).transpose().unwrap_or_else(|error| {
            // A plan that cannot be shown must not be applied.
            diagnostics.push(error.into());
            None
        });
        // Without calls, nothing of it can fail.
        let refused = self.refused.as_ref().and_then(|plan| RedactedPlan::new(plan, Detail::Effects).ok());
        let refusals = self.plan.as_ref().map(|plan| plan.refusals.clone()).unwrap_or_default();
        let first_file = self.files.first().map(|file| file.source.name.clone());
        Report {
            command,
            diagnostics,
            plan,
            refused,
            refusals,
            files: self.own_files(),
            first_file,
            ..Report::default()
        }
    }
}

/// The warnings about hosts of other sources that a plan closes (D112).
fn closed_hosts_of(plan: &Plan, tried: &SpeculativeCommit) -> Vec<Diagnostic> {
    let keys = plan.changes.iter().map(|change| &change.key);
    let found = closed_hosts(keys, tried.before(), tried.after()).into_iter();
    let warning = |fault: Fault| Diagnostic::warning(fault.code, fault.message).help(fault.help.unwrap_or_default());
    found.map(|(_, fault)| warning(fault)).collect()
}

/// What a plan opens and weakens with a severity, at the manifests.
pub(super) fn exposures(plan: &Plan, origins: &Origins, severity: Severity) -> Vec<Diagnostic> {
    let all = plan.effects.warnings.iter().filter_map(|it| Some((&it.key, it.diagnostic()?)));
    let all = all.filter(|(_, found)| found.severity == severity);
    all.map(|(key, found)| placed(origins, Some(key), &Path::root(), found)).collect()
}

/// A diagnostic at a field of the manifest of a resource, if there is one.
pub(super) fn placed(origins: &Origins, key: Option<&Key>, path: &Path, found: Diagnostic) -> Diagnostic {
    match key.and_then(|key| origins.get(key)) {
        Some(declaration) => found.at(declaration.origin.place(path, FaultTarget::Value)),
        None => found,
    }
}
