//! The ends of a command: its exit code, or the failure with the reasons.

use crate::model::{Code, Diagnostic, Fault, JsonError, Name};
use crate::plan::exposure::ACCESS_OPENED;
use crate::plan::weakened_invariant::INVARIANT_WEAKENED;
use crate::reconcile::ApplyError;
use crate::store::StoreError;

/// An exit code (D31).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Done, or nothing to do.
    Done = 0,
    Error = 1,
    /// Changes are pending, only with `--detailed-exitcode`; a source is not synced, only for `status`; or something is to be
    /// done, only for `store repair` and `store scrub`.
    Pending = 2,
    /// The manifests are invalid, or an invariant or a route test refuses the plan.
    Invalid = 3,
    /// A safety limit refuses the plan.
    Refused = 4,
    Stale = 5,
}

impl Exit {
    /// The exit code of a plan that is refused, by the reason and whether it is at a line of a manifest. The same on a store and
    /// through a server.
    pub(crate) fn of_refusal(reason: Name, is_in_manifest: bool) -> Self {
        let code = match reason {
            Name::Lint(ACCESS_OPENED | INVARIANT_WEAKENED) => return Exit::Refused,
            Name::Lint(_) => return Exit::Invalid,
            Name::Code(code) => code,
        };
        match code {
            Code::Stale => Exit::Stale,
            Code::PreventDestroy | Code::TooManyDeletions => Exit::Refused,
            Code::LintDenied
            | Code::RouteTestFailed
            | Code::InvariantBroken
            | Code::InvariantUnproven
            | Code::NotDelegated
            | Code::RequiredModule => Exit::Invalid,
            _ if is_in_manifest => Exit::Invalid,
            // A rollback, a transfer and `destroy` have no manifests.
            Code::InUse | Code::LastAdmin | Code::OwnerConflict | Code::SecretsGone => Exit::Refused,
            _ => Exit::Error,
        }
    }
}

/// An error that ends a command, with its exit code.
#[derive(Debug)]
pub(crate) struct Failure {
    pub diagnostics: Vec<Diagnostic>,
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
        let reason = error.diagnostic();
        let exit = Exit::of_refusal(reason.code, reason.place.is_some());
        Self::new(vec![reason], exit)
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

pub(crate) type CommandResult = Result<Exit, Failure>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exit_code_of_a_refused_plan_tells_why() {
        for (reason, in_manifest, elsewhere) in [
            (Name::Code(Code::Stale), Exit::Stale, Exit::Stale),
            (Name::Code(Code::TooManyDeletions), Exit::Refused, Exit::Refused),
            (Name::Code(Code::PreventDestroy), Exit::Refused, Exit::Refused),
            (Name::Lint(ACCESS_OPENED), Exit::Refused, Exit::Refused),
            (Name::Lint(INVARIANT_WEAKENED), Exit::Refused, Exit::Refused),
            (Name::Lint("shadowed-route"), Exit::Invalid, Exit::Invalid),
            (Name::Code(Code::InvariantBroken), Exit::Invalid, Exit::Invalid),
            (Name::Code(Code::InvariantUnproven), Exit::Invalid, Exit::Invalid),
            (Name::Code(Code::RouteTestFailed), Exit::Invalid, Exit::Invalid),
            (Name::Code(Code::RequiredModule), Exit::Invalid, Exit::Invalid),
            (Name::Code(Code::UnknownReference), Exit::Invalid, Exit::Error),
            (Name::Code(Code::InUse), Exit::Invalid, Exit::Refused),
            (Name::Code(Code::Forbidden), Exit::Invalid, Exit::Error),
        ] {
            let exits = [true, false].map(|is_in_manifest| Exit::of_refusal(reason, is_in_manifest));
            assert_eq!(exits, [in_manifest, elsewhere], "{reason}");
        }
    }
}
