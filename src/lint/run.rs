//! The run of the lints: over the whole source, and over each of its parts.

use std::sync::Arc;

use rayon::prelude::*;

use super::definition::{Lint, LintCheck};
use super::finding::{Finding, Findings};
use super::judged_parts::{JudgedParts, NumberedFindings, SharedInputs};
use super::partition::{LintPart, PartLints};
use super::rules::LINTS;
use super::view::{EdgeView, HostView};
use super::world::World;
use crate::background::yield_to_requests;

/// The findings of a run. Those of a part that is not judged again are shared with the last run.
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

/// Runs every lint, except those in `skipped`. `memo` has the parts of the last run on the same source, of which only those that
/// differ are judged, and gets the parts of this one. Without it, all are judged, as with an empty one.
pub(crate) fn run(world: &World<'_>, skipped: &[&'static str], memo: Option<&mut JudgedParts>) -> AllFindings {
    let runs = |(_, lint): &NumberedLint| !skipped.contains(&lint.name);
    let lints: Vec<NumberedLint> = LINTS.iter().copied().enumerate().filter(runs).collect();
    let (of_whole, of_parts) = rayon::join(|| judge_whole(world, &lints), || judge_parts(world, &lints, memo));
    AllFindings(of_whole.into_iter().map(Arc::new).chain(of_parts).collect())
}

/// The findings about the whole source, and about its manifests.
fn judge_whole(world: &World<'_>, lints: &[NumberedLint]) -> Vec<NumberedFindings> {
    let all = HostView::new(EdgeView::new(world, world.judged), world.others);
    let findings = lints.par_iter().map(|lint| match lint.1.check {
        LintCheck::Source(check) => findings_of(*lint, |findings| check(&all, findings)),
        LintCheck::Manifests(check) | LintCheck::EdgeAndManifests(_, check) => {
            let mut found = findings_of(*lint, |findings| check(world, findings));
            found.retain(|(_, finding)| world.judges(&finding.subject));
            found
        }
        LintCheck::Edge(_) | LintCheck::Host(_) | LintCheck::Plan => Vec::new(),
    });
    findings.collect()
}

/// The findings about each part of the source: those of the last run, if its inputs are the same.
fn judge_parts(
    world: &World<'_>,
    lints: &[NumberedLint],
    mut memo: Option<&mut JudgedParts>,
) -> Vec<Arc<NumberedFindings>> {
    let shared = SharedInputs::new(world, lints.iter().map(|(at, _)| *at).collect());
    let parts = LintPart::all(world, memo.as_deref_mut().map(|memo| memo.take(&shared)).unwrap_or_default());
    // Cores share the last parts, too.
    let findings = parts.par_iter().with_max_len(1).map(|part| match &part.known {
        Some(known) => Arc::clone(&known.findings),
        None => Arc::new(judge_part(part, world, lints)),
    });
    let findings: Vec<Arc<NumberedFindings>> = findings.collect();
    if let Some(memo) = memo {
        let judged = parts.into_par_iter().zip(findings.par_iter());
        let kept = judged.filter_map(|(part, findings)| part.into_known(Arc::clone(findings), world));
        *memo = JudgedParts::new(shared, kept.collect());
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
    yield_to_requests();
    let mut findings = Findings::default();
    check(&mut findings);
    findings.found.into_iter().map(|finding| (at, Finding { lint: lint.name, ..finding })).collect()
}
