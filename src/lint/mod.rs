//! Lints flag configuration that the API accepts but that is probably a mistake.
//!
//! # The problem
//!
//! A rule of the API must hold for everyone, so the API accepts a route that no request can reach, or a login that
//! admits the whole world. The author wants to know before users do.
//!
//! # The idea
//!
//! A lint is a condition and its words: one file each, with a [`Lint`] and a `check`, and a line in [`LINTS`]. The type
//! of the check says what it looks at ([`LintCheck`]), and its view shows nothing else (`view.rs`). So the stage is a
//! pure function of each part of a source (`partition.rs`), and a server judges only parts that differ from those of
//! its last run (`memo.rs`).
//!
//! # An example
//!
//! `open-login` iterates over the apps of all `oauth` modules, and reports each without an allow list:
//!
//! ```text
//! for (key, app) in view.oauth_apps() → findings.report(key, path, "everyone with an account at `google` has access")
//! ```
//!
//! The engine adds the name of the lint, its level, the file and line, and `explain` shows the rest of the [`Lint`].
//!
//! # What it never does
//!
//! A lint rejects nothing that the API accepts: levels decide what a finding does. It reads no file and no clock, and
//! never quotes a secret. What is missing because of an error in the manifests is no finding (`is_whole`). It does not
//! guess about other systems, and one cause is one finding (D70): a false alarm teaches people to ignore the others.
//!
//! See D2 and D74.

use std::{collections::BTreeSet, sync::Arc};

use foldhash::{HashMap, HashSet};
use jiff::Timestamp;
use rayon::prelude::*;

use crate::{
    background::give_way,
    model::{
        Desired, Entry, Key,
        diagnostics::{Aim, Path, suggestions::Suggestions},
        names::names,
    },
};
pub(crate) use memo::LintMemo;
use memo::{NumberedFindings, SharedInputs};
use partition::{LintPart, PartLints};
pub use rules::LINTS;
use view::{EdgeView, EstateView, HostView, ManifestsView};

mod clean_modules;
mod host_groups;
mod memo;
mod partition;
pub(crate) mod rules;
pub(crate) mod validity;
mod view;

/// A lint level: the effect of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Findings are hidden.
    Allow,
    /// Findings are shown.
    Warn,
    /// Findings stop a reconciliation.
    Deny,
}

names!(Level: Allow "allow", Warn "warn", Deny "deny");

/// A lint, with the text for `edgewright explain`.
pub struct Lint {
    /// The name, in kebab case.
    pub name: &'static str,
    /// The level unless a configuration file or manifest sets another.
    pub default: Level,
    /// The finding, in one sentence.
    pub summary: &'static str,
    /// Why it is probably a mistake.
    pub why: &'static str,
    /// How to fix it.
    pub cure: &'static str,
    /// The check. Its type determines its input.
    pub(crate) check: LintCheck,
}

/// A check, by its input. Its findings depend on nothing else, so a server keeps those of the first two types as long
/// as the input is the same.
pub(crate) enum LintCheck {
    /// A resource, its edge, the routes of that edge, and the names of what they reference.
    Edge(fn(&EdgeView<'_>, &mut Findings)),
    /// The resources of [`LintCheck::Edge`], and all edges with the same hosts, with their routes, including those of
    /// other sources.
    Host(fn(&HostView<'_>, &mut Findings)),
    /// All resources and other sources. It runs each time, so it must be cheap for 10,000 edges.
    Estate(fn(&EstateView<'_>, &mut Findings)),
    /// The facts about the manifests that are no resources. It runs each time.
    Manifests(fn(&ManifestsView<'_>, &mut Findings)),
    /// Two checks.
    EdgeAndManifests(fn(&EdgeView<'_>, &mut Findings), fn(&ManifestsView<'_>, &mut Findings)),
}

/// The input of all lints.
pub(crate) struct World<'a> {
    /// The resources to judge, by key: all that have no error.
    pub judged: &'a [&'a Desired],
    /// Whether nothing is left out or missing because of an error.
    pub is_whole: bool,
    /// The resources of other sources in the store, by key; empty without a store.
    pub others: &'a [Arc<Entry>],
    /// Facts about the manifests that the desired state does not include.
    pub manifests: &'a ManifestFacts,
    /// The current time, to judge the validity of certificates.
    pub now: Timestamp,
    /// How many days before a certificate expires it is reported.
    pub expiry_days: u32,
    /// The label keys that the configuration file allows; `None` allows every key.
    pub allowed_labels: Option<&'a BTreeSet<String>>,
}

/// Facts about manifests that the desired state does not include.
#[derive(Debug, Default)]
pub(crate) struct ManifestFacts {
    /// Module sets that no route uses.
    pub unused_module_sets: Vec<String>,
    /// The resources that list a module set twice, with their `modules_from`.
    pub repeated_module_sets: Vec<(Key, Vec<String>)>,
    /// The locations of secrets in plain text.
    pub plain_secrets: Vec<(Subject, Path)>,
    /// The subjects whose documents have a label, by its key. Nearly all documents have labels, with few keys.
    pub labels: HashMap<String, HashSet<Subject>>,
}

impl ManifestFacts {
    /// Removes the facts about some subjects.
    pub(crate) fn forget(&mut self, subjects: &HashSet<Subject>) {
        self.repeated_module_sets.retain(|(key, _)| !subjects.contains(&Subject::Resource(key.clone())));
        self.plain_secrets.retain(|(subject, _)| !subjects.contains(subject));
        self.labels.retain(|_, labelled| {
            subjects.iter().for_each(|subject| {
                labelled.remove(subject);
            });
            !labelled.is_empty()
        });
    }

    /// Notes a label of a subject.
    pub(crate) fn note_label(&mut self, subject: Subject, label: &str) {
        match self.labels.get_mut(label) {
            Some(labelled) => labelled.insert(subject),
            None => self.labels.entry(label.to_owned()).or_default().insert(subject),
        };
    }
}

/// The subject of a finding.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Subject {
    /// A resource.
    Resource(Key),
    /// A module set, by name.
    ModuleSet(String),
}

/// A finding of a lint.
#[derive(Debug, Clone)]
pub(crate) struct Finding {
    /// The lint.
    pub lint: &'static str,
    /// The subject.
    pub subject: Subject,
    /// The field, relative to the subject's Spec or to the whole document.
    pub path: Path,
    /// Whether the path is relative to the document, as for `metadata`.
    pub in_document: bool,
    /// Whether the finding is about the resource as a whole: a module alone, as in a module set, does not cause it.
    pub of_whole: bool,
    /// Whether the finding is about the field's key or its value.
    pub aim: Aim,
    /// One sentence without a full stop.
    pub message: String,
    /// How to fix it, if the lint's cure also covers other cases.
    pub help: Option<&'static str>,
    /// A related location and its label.
    pub related: Option<(Subject, Path, &'static str)>,
    /// The lint that explains the cause better, if it has a finding about the same place, or one about the related place
    /// that is related to this one.
    pub yields_to: Option<&'static str>,
}

impl Finding {
    /// Adds a related location in a resource.
    pub(crate) fn relate(&mut self, key: &Key, path: impl Into<Path>, label: &'static str) {
        self.related = Some((Subject::Resource(key.clone()), path.into(), label));
    }
}

/// Collects findings.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    /// The findings so far.
    pub found: Vec<Finding>,
    /// For misspelt words.
    pub suggestions: Suggestions,
}

impl Findings {
    /// Reports a finding about a field's value; [`run`] fills in the lint's name.
    pub(crate) fn report(&mut self, key: &Key, path: impl Into<Path>, message: impl Into<String>) -> &mut Finding {
        self.about(Subject::Resource(key.clone()), path, message)
    }

    /// Reports every entry of a list that has a fault. Of equal entries, it is the first one: the others are duplicates, which
    /// other lints report.
    pub(crate) fn report_entries<'t>(
        &mut self,
        key: &Key,
        list: &[&str],
        entries: &'t [String],
        mut fault: impl FnMut(&'t str) -> Option<String>,
    ) {
        let mut reported = HashSet::default();
        for (index, entry) in entries.iter().enumerate() {
            if let Some(message) = fault(entry)
                && reported.insert(entry)
            {
                let path = list.iter().fold(Path::root(), |path, step| path.join(*step));
                self.report(key, path.join(index), message);
            }
        }
    }

    /// Reports a finding about any subject.
    pub(crate) fn about(
        &mut self,
        subject: Subject,
        path: impl Into<Path>,
        message: impl Into<String>,
    ) -> &mut Finding {
        let (path, message) = (path.into(), message.into());
        self.found.push_mut(Finding {
            lint: "",
            subject,
            path,
            in_document: false,
            of_whole: false,
            aim: Aim::Value,
            message,
            help: None,
            related: None,
            yields_to: None,
        })
    }
}

impl World<'_> {
    /// Whether findings about a subject count. Facts about the manifests include those of resources that are not judged.
    fn judges(&self, subject: &Subject) -> bool {
        match subject {
            Subject::Resource(key) => self.judged.binary_search_by(|desired| desired.key.cmp(key)).is_ok(),
            Subject::ModuleSet(_) => true,
        }
    }
}

/// The findings of a run. Those of a part that is not judged again are shared with the memo.
pub(crate) struct AllFindings(Vec<Arc<NumberedFindings>>);

impl AllFindings {
    /// Returns all findings, in the order of the table of lints.
    pub(crate) fn in_order(&self) -> Vec<&Finding> {
        let mut all: Vec<&(usize, Finding)> = self.0.iter().flat_map(|findings| findings.iter()).collect();
        all.sort_by_key(|(at, _)| *at);
        all.into_iter().map(|(_, finding)| finding).collect()
    }
}

/// A lint with its position in the table.
type NumberedLint = (usize, &'static Lint);

/// Runs every lint, except those in `skipped`. With the memo of the last run on the same source, only parts that differ are judged; without one, all are, as with an empty one.
pub(crate) fn run(world: &World<'_>, skipped: &[&'static str], memo: Option<&LintMemo>) -> AllFindings {
    let runs = |(_, lint): &NumberedLint| !skipped.contains(&lint.name);
    let lints: Vec<NumberedLint> = LINTS.iter().copied().enumerate().filter(runs).collect();
    let (of_whole, of_parts) = rayon::join(|| judge_whole(world, &lints), || judge_parts(world, &lints, memo));
    AllFindings(of_whole.into_iter().map(Arc::new).chain(of_parts).collect())
}

/// The findings about the whole source, and about its manifests.
fn judge_whole(world: &World<'_>, lints: &[NumberedLint]) -> Vec<NumberedFindings> {
    let all = EstateView::new(world);
    let World { manifests: facts, is_whole, allowed_labels, .. } = *world;
    let manifests = ManifestsView { facts, is_whole, allowed_labels };
    let findings = lints.par_iter().map(|lint| match lint.1.check {
        LintCheck::Estate(check) => findings_of(*lint, |findings| check(&all, findings)),
        LintCheck::Manifests(check) | LintCheck::EdgeAndManifests(_, check) => {
            let mut found = findings_of(*lint, |findings| check(&manifests, findings));
            found.retain(|(_, finding)| world.judges(&finding.subject));
            found
        }
        LintCheck::Edge(_) | LintCheck::Host(_) => Vec::new(),
    });
    findings.collect()
}

/// The findings about each part of the source: those of the last run, if its inputs are the same.
fn judge_parts(world: &World<'_>, lints: &[NumberedLint], memo: Option<&LintMemo>) -> Vec<Arc<NumberedFindings>> {
    let shared = SharedInputs::new(world, lints.iter().map(|(at, _)| *at).collect());
    let parts = LintPart::all(world, memo.map(|memo| memo.take(&shared)).unwrap_or_default());
    // Cores share the last parts, too.
    let findings = parts.par_iter().with_max_len(1).map(|part| match &part.known {
        Some(known) => Arc::clone(&known.findings),
        None => Arc::new(judge_part(part, world, lints)),
    });
    let findings: Vec<Arc<NumberedFindings>> = findings.collect();
    if let Some(memo) = memo {
        let judged = parts.into_par_iter().zip(findings.par_iter());
        let kept = judged.filter_map(|(part, findings)| part.into_known(Arc::clone(findings), world));
        memo.keep(shared, kept.collect());
    }
    findings
}

/// The findings about one part.
fn judge_part(part: &LintPart<'_>, world: &World<'_>, lints: &[NumberedLint]) -> NumberedFindings {
    let (view, judges) = (part.view(world), part.lints);
    let findings = lints.iter().flat_map(|lint| match lint.1.check {
        LintCheck::Edge(check) | LintCheck::EdgeAndManifests(check, _) if judges != PartLints::Host => {
            findings_of(*lint, |findings| check(&view, findings))
        }
        LintCheck::Host(check) if judges != PartLints::Edge => findings_of(*lint, |findings| check(&view, findings)),
        _ => Vec::new(),
    });
    findings.collect()
}

/// The findings of one lint.
fn findings_of((at, lint): NumberedLint, check: impl FnOnce(&mut Findings)) -> NumberedFindings {
    give_way();
    let mut findings = Findings::default();
    check(&mut findings);
    findings.found.into_iter().map(|finding| (at, Finding { lint: lint.name, ..finding })).collect()
}

/// Finds a lint by name.
pub(crate) fn find(name: &str) -> Option<&'static Lint> {
    LINTS.iter().copied().find(|lint| lint.name == name)
}
