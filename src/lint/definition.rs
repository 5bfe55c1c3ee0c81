//! A lint: its words, its level, and its check with the input that the check has.

use super::finding::Findings;
use super::view::{EdgeView, HostView};
use super::world::World;
use crate::model::Severity;
use crate::model::names::names;

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

impl Level {
    /// The severity of a finding; none if it is hidden.
    pub(crate) fn severity(self) -> Option<Severity> {
        match self {
            Self::Allow => None,
            Self::Warn => Some(Severity::Warning),
            Self::Deny => Some(Severity::Error),
        }
    }
}

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
    /// The resources of [`LintCheck::Edge`], and all edges with the same hosts, with their routes, including those of other
    /// sources and those that no source owns.
    Host(fn(&HostView<'_>, &mut Findings)),
    /// All resources of the source, and those of other sources. It runs each time, so it must be cheap for 10,000 edges.
    Source(fn(&HostView<'_>, &mut Findings)),
    /// The input of all lints, for its facts about the manifests that are no resources. It runs each time.
    Manifests(fn(&World<'_>, &mut Findings)),
    /// A plan, which shows what it opens or weakens: the planner reports the findings.
    Plan,
    /// Two checks.
    EdgeAndManifests(fn(&EdgeView<'_>, &mut Findings), fn(&World<'_>, &mut Findings)),
}
