//! A transfer: resources move from one source to another as one revision, through the same checks as any plan (D104).

use super::{apply::apply_current, apply_error::ApplyError, plan_result::PlanResult, token::TokenFiles};
use crate::plan::transfer::Transfer;
use crate::reconcile::prelude::*;
use crate::syntax::text::printable;
use crate::tenancy::{not_admitted, received_hostports};

/// The most routes, and hostports, that a plan warns about.
const MOST_WARNINGS: usize = 10;

/// Plans a transfer. Changes nothing.
pub(crate) fn plan_transfer(transfer: &Transfer, current: &Snapshot) -> PlanResult {
    let mut planned = PlanResult::without_manifests(current, transfer.plan(current));
    if let (Some(plan), Some(tried)) = (&planned.plan, &planned.tried) {
        let found = not_delegated(transfer, plan, (current, tried.after()));
        planned.diagnostics.extend(found);
    }
    planned
}

/// The warnings about routes that the new source must not declare, because their edge stays with a source that does not
/// delegate them to it (D103), and about hosts that others than the former source have not left to it (D112).
fn not_delegated(transfer: &Transfer, plan: &Plan, (before, after): (&Snapshot, &Snapshot)) -> Vec<Diagnostic> {
    let to = printable(&transfer.to);
    let moved = || plan.changes.iter().map(|change| &change.key);
    let warning = |fault: Fault, what: &str| {
        Diagnostic::warning(fault.code, format!("{what}: {}", fault.message)).help(fault.help.unwrap_or_default())
    };
    let routes = not_admitted(moved(), after, &transfer.to).into_iter().map(|(key, fault)| {
        let route = after.name_of(&key);
        warning(fault, &format!("the next apply of source `{to}` will fail for {route}"))
    });
    let hosts = received_hostports(moved(), before, &transfer.to).into_iter().map(|(key, fault)| {
        let edge = before.name_of(&key);
        warning(fault, &format!("source `{to}` gets a host with {edge} that its owner has not left to it"))
    });
    routes.take(MOST_WARNINGS).chain(hosts.take(MOST_WARNINGS)).collect()
}

/// Plans a transfer on the current revision, and applies the plan if `accept` returns it. Returns the plan and its
/// revision, or no revision if there was nothing to do.
pub(crate) fn apply_transfer<E: From<ApplyError>>(
    transfer: &Transfer,
    store: &Store,
    author: &Author,
    accept: impl FnMut(&Snapshot, PlanResult) -> Result<PlanResult, E>,
) -> Result<(PlanResult, Option<u64>), E> {
    let plan = |current: &Snapshot| plan_transfer(transfer, current);
    apply_current(store, plan, |_| Ok(author.clone()), &mut TokenFiles::default(), accept, || Ok(()))
}
