//! Shows a change that is planned from the store, and applies it: a rollback, a transfer, the end of a source.

use crate::{
    cli::{
        CommandResult, Exit, Failure, leave,
        manifests::reconcile::{applied, failed},
        output::{
            Output,
            diagnostics::{self, say},
        },
        target::{ChangeTarget, StoreChange, store_or_server::StoreOrServer},
    },
    model::diagnostics::diagnostic::{Diagnostic, Name},
    plan::outline::Outline,
};

/// How a change is shown and applied.
pub(super) struct ChangeCommand<'a, C: StoreChange> {
    /// The change.
    pub change: &'a C,
    /// Where it is planned and applied.
    pub target: ChangeTarget<C>,
    /// How it is shown.
    pub output: &'a Output,
    /// Whether it is only shown.
    pub dry_run: bool,
    /// Whether pending changes have an exit code of their own.
    pub detailed_exitcode: bool,
}

impl<C: StoreChange> ChangeTarget<C> {
    /// Opens the place that the arguments name.
    pub(super) fn at(place: &StoreOrServer, dry_run: bool) -> Result<Self, Failure> {
        match place.client()? {
            Some(client) => Ok(Self::through(client)),
            None => Self::open(&place.store, dry_run),
        }
    }
}

impl<C: StoreChange> ChangeCommand<'_, C> {
    /// Runs it. `refusal` is one that only the command knows; `confirm` is asked before the plan is applied.
    pub(super) fn run(
        mut self,
        refusal: Option<Diagnostic>,
        confirm: impl FnOnce() -> Result<(), Failure>,
    ) -> CommandResult {
        let mut report = self.target.propose(self.change, self.output.detail())?;
        report.refusals.extend(refusal);
        let is_empty = report.plan.as_ref().is_none_or(Outline::is_empty);
        // "No changes" would contradict the errors.
        if !is_empty || report.refusals.is_empty() {
            self.output.announce(&report, self.target.plan()).inspect_err(|_| self.say_unchanged())?;
        }
        let mut started = None;
        let exit = if report.has_errors() {
            self.say_unchanged();
            Exit::Error
        } else if !report.refusals.is_empty() {
            if let Some(first) = report.refusals.first().filter(|_| !self.dry_run) {
                self.target.refuse(self.change, &first.message);
            }
            diagnostics::diagnostics(&report.refusals);
            self.say_unchanged();
            // A mistake in the arguments is no plan that a limit refuses (D31).
            let is_mistake = |refusal: &Diagnostic| C::MISTAKES.iter().any(|code| refusal.code == Name::Code(*code));
            if report.refusals.iter().any(is_mistake) { Exit::Error } else { Exit::Refused }
        } else if is_empty {
            Exit::Done
        } else if self.dry_run {
            if self.detailed_exitcode { Exit::Pending } else { Exit::Done }
        } else if let Err(failure) = confirm() {
            let exit = failed(&mut report, failure);
            self.say_unchanged();
            exit
        } else {
            started = Some(self.output.start(&report).inspect_err(|_| self.say_unchanged())?);
            match self.target.apply(self.change) {
                Ok(revision) => {
                    report.applied = Some(revision);
                    let exit = applied(revision);
                    if let Some(remark) = C::REMARK {
                        say(remark);
                    }
                    exit
                }
                Err(failure) => failed(&mut report, failure),
            }
        };
        match started {
            Some(started) => self.output.finish(started, &report)?,
            None => self.output.conclude(&report)?,
        }
        leave(report);
        Ok(exit)
    }

    fn say_unchanged(&self) {
        if !self.dry_run {
            say(C::UNCHANGED);
        }
    }
}
