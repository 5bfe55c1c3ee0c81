//! What a plan does besides its changes: to requests, to invariants and to other sources.

use super::behaviour::BehaviourDiff;
use crate::lint::Level;
use crate::model::{Diagnostic, Fault, Key, Name};
use crate::tenancy::certificates::LostCertificate;

/// The effects of a plan, which are known once it was tried.
#[derive(Debug, Clone, Default)]
pub struct PlanEffects {
    /// The access that the plan opens (D113), and the invariants that refuse less, or are gone (D120).
    pub warnings: Vec<AccessWarning>,
    /// How requests are treated differently, if that was asked for.
    pub behaviour: Option<BehaviourDiff>,
    /// The hosts of other sources' edges that lose their last certificate (D112).
    pub lost_certificates: Vec<LostCertificate>,
    /// The invariants that routes would break if routes of other sources did not take the requests, each with the route
    /// (D112).
    pub broken_behind_others: Vec<(Key, Fault)>,
}

/// Access that a plan opens, or an invariant that it weakens. The level of a lint decides what that does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccessWarning {
    /// The resource that has the opened requests once the plan is applied, or the invariant.
    pub key: Key,
    /// The lint.
    pub lint: &'static str,
    /// The level of the lint for that resource.
    pub level: Level,
    /// What the plan does.
    pub message: String,
    /// One of the opened requests, as a URL.
    pub(super) example: Option<String>,
    /// How to correct it if the lint denies it.
    pub(super) cure: &'static str,
}

impl AccessWarning {
    /// The warning or error to report; none if the lint is allowed.
    pub(crate) fn diagnostic(&self) -> Option<Diagnostic> {
        let severity = self.level.severity()?;
        let example = self.example.iter().map(|url| format!("`{url}` is one of these requests; "));
        let how = match self.level {
            Level::Deny => self.cure.to_owned(),
            _ => format!("apply it if this is intended; in CI, deny `{}` or require an approval", self.lint),
        };
        let found = Diagnostic::error(Name::Lint(self.lint), self.message.as_str());
        Some(Diagnostic { severity, ..found.help(example.chain([how]).collect::<String>()) })
    }
}
