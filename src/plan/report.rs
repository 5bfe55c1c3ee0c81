//! What a command has to tell, in whichever format it is told.

use super::outline::Outline;
use crate::model::diagnostic::{Diagnostic, Severity};

/// What came of `validate`, `reconcile` or `diff`.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// The command's name.
    pub command: &'static str,
    /// Faults and findings, sorted by place.
    pub diagnostics: Vec<Diagnostic>,
    /// The plan, where one was made.
    pub plan: Option<Outline>,
    /// Why the plan must not run.
    pub refusals: Vec<Diagnostic>,
    /// How many files were read.
    pub files: usize,
    /// Whether the plan was applied, and as which revision.
    pub applied: Option<u64>,
}

impl Report {
    /// How many diagnostics of a severity there are.
    pub fn count(&self, severity: Severity) -> usize {
        self.diagnostics.iter().filter(|it| it.severity == severity).count()
    }

    /// Whether the manifests are at fault.
    pub fn has_errors(&self) -> bool {
        self.count(Severity::Error) > 0
    }
}
