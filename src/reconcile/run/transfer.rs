//! A transfer: resources move from one source to another as one revision, through the same checks as any plan (D104).

use super::plan_result::PlanResult;
use super::planned_change::PlannedChange;
use crate::plan::transfer::Transfer;
use crate::reconcile::prelude::*;
use crate::syntax::text::printable;
use crate::tenancy::{not_admitted, received_hostports};

/// The most routes, and hostports, that a plan warns about.
const MOST_WARNINGS: usize = 10;

impl PlannedChange for Transfer {
    fn plan(&self, current: &Snapshot) -> PlanResult {
        let mut planned = PlanResult::without_manifests(current, self.moves(current));
        if let (Some(plan), Some(tried)) = (&planned.plan, &planned.tried) {
            let found = not_delegated(self, plan, (current, tried.after()));
            planned.diagnostics.extend(found);
        }
        planned
    }
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
