//! The ends of a command: its exit code, or the failure with the reasons.

use crate::model::{Code, Diagnostic, Fault, JsonError, Name};
use crate::reconcile::ApplyError;
use crate::store::{CommitError, StoreError};

/// An exit code (D31).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Done, or nothing to do.
    Done = 0,
    /// An error.
    Error = 1,
    /// Changes are pending, only with `--detailed-exitcode`; a source is not synced, only for `status`; or something is to be
    /// done, only for `store repair` and `store scrub`.
    Pending = 2,
    /// The manifests are invalid.
    Invalid = 3,
    /// A safety limit refuses the plan.
    Refused = 4,
    /// The plan is stale.
    Stale = 5,
}

/// An error that ends a command, with its exit code.
#[derive(Debug)]
pub(crate) struct Failure {
    /// The reasons.
    pub diagnostics: Vec<Diagnostic>,
    /// The exit code.
    pub exit: Exit,
    /// Whether the configuration file is invalid, so that the command did not run.
    pub is_of_configuration: bool,
}

impl Failure {
    /// A failure of a command that runs.
    pub(crate) fn new(diagnostics: Vec<Diagnostic>, exit: Exit) -> Self {
        Self { diagnostics, exit, is_of_configuration: false }
    }

    /// A failure before the command runs, because the configuration file is invalid.
    pub(crate) fn of_configuration(diagnostics: Vec<Diagnostic>) -> Self {
        Self { is_of_configuration: true, ..Self::new(diagnostics, Exit::Error) }
    }

    /// Whether the reason has a code.
    pub(super) fn has_code(&self, code: Code) -> bool {
        self.diagnostics.iter().any(|diagnostic| diagnostic.code == Name::Code(code))
    }

    /// Replaces the help of the reasons with a code.
    pub(super) fn with_help(mut self, code: Code, help: &str) -> Self {
        for diagnostic in self.diagnostics.iter_mut().filter(|it| it.code == Name::Code(code)) {
            diagnostic.help = Some(help.to_owned());
        }
        self
    }
}

/// Converts the failure that something was not found to none.
pub(super) fn if_found<T>(result: Result<T, Failure>) -> Result<Option<T>, Failure> {
    match result {
        Ok(found) => Ok(Some(found)),
        Err(failure) if failure.has_code(Code::NotFound) => Ok(None),
        Err(failure) => Err(failure),
    }
}

impl From<Diagnostic> for Failure {
    fn from(diagnostic: Diagnostic) -> Self {
        Self::new(vec![diagnostic], Exit::Error)
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Diagnostic::from(error).into()
    }
}

impl From<ApplyError> for Failure {
    fn from(error: ApplyError) -> Self {
        let is_stale = matches!(error, ApplyError::Commit(CommitError::Stale { .. }));
        Self::new(vec![error.diagnostic()], if is_stale { Exit::Stale } else { Exit::Error })
    }
}

impl From<Vec<Fault>> for Failure {
    fn from(faults: Vec<Fault>) -> Self {
        let diagnostic = |Fault { code, message, help, .. }| Diagnostic { help, ..Diagnostic::error(code, message) };
        Self::new(faults.into_iter().map(diagnostic).collect(), Exit::Error)
    }
}

impl From<Fault> for Failure {
    fn from(fault: Fault) -> Self {
        vec![fault].into()
    }
}

impl From<JsonError> for Failure {
    fn from(error: JsonError) -> Self {
        Diagnostic::from(error).into()
    }
}

/// The result of a command.
pub(crate) type CommandResult = Result<Exit, Failure>;
