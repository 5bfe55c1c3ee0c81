//! The errors and warnings of one file: the first hundred of each with their places, and the number of the others.

use crate::model::{Code, Diagnostic, MOST_FAULTS, Name, Severity};

/// Collects the diagnostics of one file, limited because each costs time and memory.
#[derive(Debug, Default)]
pub(crate) struct FileFindings {
    kept: Vec<Diagnostic>,
    /// The number of errors, kept or not.
    pub(super) errors: usize,
    warnings: usize,
}

impl FileFindings {
    /// Adds an error; `make` is called only if it is kept.
    pub(super) fn error(&mut self, make: impl FnOnce() -> Diagnostic) {
        self.errors += 1;
        if self.errors <= MOST_FAULTS {
            self.kept.push(make());
        }
    }

    /// Adds a warning; `make` is called only if it is kept.
    pub(super) fn warning(&mut self, make: impl FnOnce() -> Diagnostic) {
        self.warnings += 1;
        if self.warnings <= MOST_FAULTS {
            self.kept.push(make());
        }
    }

    /// Whether an error ended the reading of the file.
    pub(crate) fn is_cut(&self) -> bool {
        self.kept.iter().any(|it| matches!(it.code, Name::Code(Code::Syntax | Code::TooLarge)))
    }

    /// Returns the diagnostics; the last one of each severity states the number of those not kept.
    pub(crate) fn into_diagnostics(mut self) -> Vec<Diagnostic> {
        for (severity, count) in [(Severity::Error, self.errors), (Severity::Warning, self.warnings)] {
            if let Some(last) = self.kept.iter_mut().rfind(|it| it.severity == severity) {
                last.omit(count.saturating_sub(MOST_FAULTS));
            }
        }
        self.kept
    }
}
