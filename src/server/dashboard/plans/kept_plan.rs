//! The plan of a dry run, for whoever got its address: what it would change, and whether the store has changed since.

use maud::html;

use super::preview::PlanPreview;
use crate::server::dashboard::elements::{author, commit, facts, numbered_pager, time};
use crate::server::dashboard::page::{DashboardPage, PageContent, PageRequest};
use crate::server::handler_prelude::*;
use crate::server::operations::reconciliation::kept_plans::KeptPlan;

/// The address names a plan, whose source decides who may read it.
pub(in crate::server::dashboard) static PAGE: DashboardPage =
    DashboardPage::new("/ui/plans/{p0}", render).taking(&["from"]).of_writer();

/// The changes on a page.
const CHANGES: usize = 50;

fn render(request: &PageRequest) -> Result<PageContent, ApiError> {
    let kept = request.app.caches.plans.get(request.parameter(0)).ok_or_else(|| gone(request))?;
    let KeptPlan { source, commit: id, commit_message, by, at, report } = kept;
    let planner = permission::allows(&request.caller, &Intent::Plan(&source), &request.snapshot);
    planner.map_err(|fault| request.caller.refused(fault))?;
    let (forge, current) = (request.forge(&source), request.snapshot.revision);
    let plan = PlanPreview::new(report, request.skipped(), CHANGES);
    let body = html! {
        (facts(&[
            ("Source", html! { b { (source) } }),
            ("Planned", html! { (time(&at, request.now)) " by " (author(&by, &forge)) }),
            ("Commit", html! { (commit(&id, &forge)) @if !commit_message.is_empty() { " " q { (commit_message) } } }),
            ("Changes", html! { (plan.summary.changes()) }),
            ("State", html! { @if let Some(base) = plan.report.plan.as_ref().map(|plan| plan.base) {
                "Planned on revision " (base)
                @if base == current { ", which is the current one" } @else { "; the store is now at revision " (current) }
            } }),
        ]))
        (plan.findings(&id, &forge))
        (plan.changes())
        (numbered_pager(request, plan.shown().len(), plan.all, "More changes"))
    };
    Ok(PageContent { title: format!("Plan of {source}"), section: "Sources", body })
}

/// The error for a plan that this server does not have.
fn gone(request: &PageRequest) -> ApiError {
    let message = if request.lacks_writer {
        "only the server that writes to the store keeps plans, and it does not show this one: try again, or plan again"
    } else {
        "this plan is not kept any more: plan again"
    };
    ApiError::with_code(Code::NotFound, message)
}
