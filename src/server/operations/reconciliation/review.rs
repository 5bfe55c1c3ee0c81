//! Dry runs that return something else than a plan of the store: the changes between two sets of manifests, and how
//! requests are routed by what a plan leaves (D111).

use super::wire::{ReconciliationRequest, RoutingOfPlan, TraceOfPlan};
use crate::manifest::tree::{Sent, SentFile, SurroundedTree, Tree, UnsetValues};
use crate::model::Path;
use crate::plan::behaviour::request_difference;
use crate::reconcile::{PlanResult, Prepared};
use crate::routing::{Trace, TracedRequest, trace};
use crate::server::handler_prelude::*;
use crate::server::operations::routing_report::RoutingState;
use crate::server::operations::trace::TraceReport;

/// Checks the fields of a comparison and of a trace, and returns the request to trace.
pub(super) fn checked(request: &ReconciliationRequest, faults: &mut Vec<Fault>) -> Option<TracedRequest> {
    let fault = |path: Path, message: &str, help: &str| Fault::new(Code::NotAllowed, message).at(path).help(help);
    if !request.compare
        && let Some(at) = request.files.iter().position(|file| file.older)
    {
        let path = Path::from(("files", at)).join("older");
        faults.push(fault(path, "`older` requires `compare`", "set `compare`, or remove the file"));
    }
    let (applies, compares) = (!request.dry_run, request.compare);
    let expects = request.expect.as_deref().is_some_and(|expect| !expect.is_empty());
    let ReconciliationRequest { routing, page, trace, .. } = request;
    let no_routing = "a comparison has no state that routes requests";
    let conflicts = [
        (compares && applies, "compare", "a comparison cannot be applied", "set `dry_run`"),
        (compares && expects, "expect", "a comparison has no outcome", "remove `expect` or `compare`"),
        (*routing && applies, "routing", "only a dry run returns what routes requests", "set `dry_run`"),
        (*routing && compares, "routing", no_routing, "remove `routing` or `compare`"),
        (*page && applies, "page", "only a dry run has a page", "set `dry_run`"),
        (*page && compares, "page", "a comparison has no page", "remove `page` or `compare`"),
        (trace.is_some() && applies, "trace", "only a dry run can be traced", "set `dry_run`"),
        (trace.is_some() && compares, "trace", "a comparison cannot be traced", "remove `trace` or `compare`"),
    ];
    let found = conflicts.into_iter().filter(|(is_conflict, ..)| *is_conflict);
    faults.extend(found.map(|(_, field, message, help)| fault(field.into(), message, help)));
    match trace.clone()?.parse() {
        Ok(wanted) => Some(wanted),
        Err(fault) => {
            faults.push(fault.under(&Path::from("trace")));
            None
        }
    }
}

/// Separates the older files of a comparison from the others. `is_older` has an item for each file.
pub(super) fn split_older(files: Vec<SentFile>, is_older: &[bool]) -> (Vec<SentFile>, Vec<SentFile>) {
    let (mut older, mut newer) = (Vec::new(), Vec::with_capacity(files.len()));
    for (file, is_older) in files.into_iter().zip(is_older) {
        if *is_older { older.push(file) } else { newer.push(file) }
    }
    (older, newer)
}

/// The older manifests of a comparison: none if the change adds the source.
pub(super) fn tree(older: Vec<SentFile>, unset: UnsetValues) -> Arc<dyn Tree> {
    SurroundedTree::wrap(Arc::new(Sent::new(older, None).or_empty()), None, unset)
}

/// The ways of a request at a revision and once a plan is applied to it.
pub(super) fn trace_of_plan(
    request: &TracedRequest,
    snapshot: &Snapshot,
    prepared: &Prepared,
    planned: &PlanResult,
) -> TraceOfPlan {
    let report = |traced: &Trace, state: &Snapshot| TraceReport::new(request, traced, state);
    let then = trace(snapshot, request);
    let after = state_after(snapshot, prepared, planned).map(|state| {
        let now = trace(&state, request);
        (report(&now, &state), request_difference([(snapshot, &then), (&state, &now)], request.port))
    });
    let (after, difference) = after.unzip();
    TraceOfPlan { before: report(&then, snapshot), after, difference }
}

/// The routing at a revision, and after a plan is applied to it.
pub(super) fn routing_of_plan(
    snapshot: &Snapshot,
    prepared: &Prepared,
    planned: &PlanResult,
) -> Result<RoutingOfPlan, JsonError> {
    let after = state_after(snapshot, prepared, planned).map(|state| RoutingState::new(&state)).transpose()?;
    Ok(RoutingOfPlan { before: RoutingState::new(snapshot)?, after })
}

/// The state once a plan is applied, also if invariants refuse it; none if anything else does.
fn state_after(snapshot: &Snapshot, prepared: &Prepared, planned: &PlanResult) -> Option<Snapshot> {
    let refused = planned.is_refused_by_invariants().then(|| prepared.unjudged_changes(snapshot)).flatten();
    let plan = planned.plan.as_ref().or(refused.as_ref()).filter(|plan| plan.refusals.is_empty())?;
    // The plan was tried, so that nothing but invariants refuses it.
    snapshot.apply(&plan.each_operation(), clock::now()).ok().map(|(state, _)| state)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn faults(more: &Value) -> Vec<String> {
        let mut request = json!({"files": [{"name": "a.yaml", "text": ""}], "dry_run": true});
        if let (Some(request), Some(more)) = (request.as_object_mut(), more.as_object()) {
            request.extend(more.clone());
        }
        let mut faults = Vec::new();
        let request = serde_json::from_value::<ReconciliationRequest>(request);
        assert!(request.is_ok(), "{request:?}");
        let _ = request.map(|request| checked(&request, &mut faults));
        faults.iter().map(|fault| fault.path.to_string()).collect()
    }

    #[test]
    fn what_has_no_plan_of_the_store_is_a_dry_run_of_one_kind() {
        let url = json!({"url": "a.example"});
        let older = json!([{"name": "a.yaml", "text": "", "older": true}]);
        for (more, paths) in [
            (json!({}), vec![]),
            (json!({"compare": true, "files": older}), vec![]),
            (json!({"trace": url}), vec![]),
            (json!({"compare": true, "dry_run": false}), vec!["/compare"]),
            (json!({"compare": true, "expect": "x"}), vec!["/expect"]),
            (json!({"compare": true, "expect": ""}), vec![]),
            (json!({"files": older}), vec!["/files/0/older"]),
            (json!({"trace": url, "dry_run": false}), vec!["/trace"]),
            (json!({"trace": url, "compare": true}), vec!["/trace"]),
            (json!({"trace": {"url": "ftp://a.example"}}), vec!["/trace/url"]),
            (json!({"routing": true}), vec![]),
            (json!({"routing": true, "dry_run": false}), vec!["/routing"]),
            (json!({"routing": true, "compare": true}), vec!["/routing"]),
            (json!({"page": true}), vec![]),
            (json!({"page": true, "dry_run": false}), vec!["/page"]),
            (json!({"page": true, "compare": true}), vec!["/page"]),
        ] {
            assert_eq!(faults(&more), paths, "{more}");
        }
    }
}
