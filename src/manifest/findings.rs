//! What is wrong with one file: the first hundred errors and warnings with their places, and the number of the others.

use crate::model::{
    diagnostic::{Diagnostic, Severity},
    fault::MOST_FAULTS,
};

/// Gathers the diagnostics of one file. Nobody reads thousands, and each costs its place and its text.
#[derive(Debug, Default)]
pub struct Findings {
    kept: Vec<Diagnostic>,
    errors: usize,
    warnings: usize,
}

impl Findings {
    /// Adds an error, which is only made if it is kept.
    pub fn error(&mut self, make: impl FnOnce() -> Diagnostic) {
        self.errors += 1;
        if self.errors <= MOST_FAULTS {
            self.kept.push(make());
        }
    }

    /// Adds a warning, which is only made if it is kept.
    pub fn warning(&mut self, make: impl FnOnce() -> Diagnostic) {
        self.warnings += 1;
        if self.warnings <= MOST_FAULTS {
            self.kept.push(make());
        }
    }

    /// How many errors there are, kept or not.
    pub fn errors(&self) -> usize {
        self.errors
    }

    /// The diagnostics; the last one of each severity names the number of those that were not kept.
    pub fn into_diagnostics(mut self) -> Vec<Diagnostic> {
        for (severity, count, noun) in
            [(Severity::Error, self.errors, "errors"), (Severity::Warning, self.warnings, "warnings")]
        {
            let more = count.saturating_sub(MOST_FAULTS);
            let last = self.kept.iter_mut().rfind(|it| it.severity == severity).filter(|_| more > 0);
            if let Some(last) = last {
                last.message += &format!(" (and {more} more {noun} in this file)");
            }
        }
        self.kept
    }
}
