//! A transfer: resources move from one source to another as one revision, through the same checks as any plan (D104).

use std::sync::Arc;

use super::{
    ApplyError, Planned, apply_current,
    stages::{about, try_on},
    token::TokenFiles,
};
use crate::{
    model::{diagnostic::Diagnostic, operation::Author, snapshot::Snapshot},
    plan::transfer::Transfer,
    store::Store,
};

/// Plans a transfer. Changes nothing.
pub(crate) fn plan_transfer(transfer: &Transfer, current: &Snapshot) -> Planned {
    let mut plan = transfer.plan(current);
    let tried = try_on(current, &plan).unwrap_or_else(|refusal| {
        let refused = refusal.faults.iter().map(|fault| {
            let help = fault.help.clone().unwrap_or_else(|| fault.code.info().cure.to_owned());
            Diagnostic::error(fault.code, about(&refusal.key, fault)).help(help)
        });
        plan.refusals.extend(refused);
        None
    });
    Planned {
        diagnostics: Vec::new(),
        plan: Some(plan),
        desired: Arc::default(),
        left_out: Vec::new(),
        files: Vec::new(),
        origins: Arc::default(),
        tried,
    }
}

/// Plans a transfer on the current revision, and applies the plan if `accept` returns it. Returns the plan and its
/// revision, or no revision if there was nothing to do.
pub(crate) fn apply_transfer<E: From<ApplyError>>(
    transfer: &Transfer,
    store: &Store,
    author: &Author,
    accept: impl FnMut(&Snapshot, Planned) -> Result<Planned, E>,
) -> Result<(Planned, Option<u64>), E> {
    let plan = |current: &Snapshot| plan_transfer(transfer, current);
    apply_current(store, plan, |_| Ok(author.clone()), &mut TokenFiles::default(), accept, || Ok(()))
}
