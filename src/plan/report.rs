//! What a command has to tell, in whichever format it is told.

use super::Plan;
use crate::model::diagnostic::{Diagnostic, Severity};

/// What came of `validate`, `reconcile` or `diff`.
pub struct Report<'a> {
    /// The command's name.
    pub command: &'static str,
    /// Faults and findings, sorted by place.
    pub diagnostics: &'a [Diagnostic],
    /// The plan, where one was made.
    pub plan: Option<&'a Plan>,
    /// How many files were read.
    pub files: usize,
    /// Whether the plan was applied, and as which revision.
    pub applied: Option<u64>,
}

impl Report<'_> {
    /// How many diagnostics of a severity there are.
    pub fn count(&self, severity: Severity) -> usize {
        self.diagnostics.iter().filter(|it| it.severity == severity).count()
    }
}
