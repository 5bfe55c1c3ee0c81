//! Comparisons, traces and replays of manifests among everything else that a server has (D111).

use super::{ServerTarget, to_report};
use crate::cli::output::{diagnostics, during};
use crate::cli::prelude::*;
use crate::cli::target::api_response::ApiResponse;
use crate::cli::target::error_response::foreign_response;
use crate::cli::target::proposal::{Proposal, Target};
use crate::cli::target::upload::UploadFiles;
use crate::manifest::tree::collect;
use crate::server::operations::reconciliation::wire::ReconciliationRequest;
use crate::server::operations::routing_report::RoutingState;
use crate::server::operations::trace::{RequestToTrace, TraceReport};

impl ServerTarget {
    /// Plans the changes from older manifests of the source.
    pub(crate) fn compare(self, older: &Arc<dyn Tree>) -> Result<Report, Failure> {
        let ((old, old_files), (new, new_files)) = during("Reading", || (collect(older), collect(&self.options.tree)));
        let (old, old_stops) = self.check(&old);
        let (new, new_stops) = self.check(&new);
        if old_stops || new_stops {
            // Errors in the older manifests come first, as without a server.
            let stopped = if old_stops { old } else { new };
            return Ok(self.of_source(stopped.report("diff")));
        }
        let request = ReconciliationRequest { compare: true, ..self.request() };
        let mut files = UploadFiles::with_older(new_files, old_files);
        let mut run = self.exchange(request, &mut files, "Comparing").map_err(|error| error.failure(""))?;
        if !run.outcome.is_empty() {
            // Only a plan of the store has an outcome.
            return Err(foreign_response(&self.url, 200));
        }
        Ok(self.of_source(Report { command: "diff", ..to_report(&mut run.report, &[&old, &new]) }))
    }

    /// Plans, and traces a request in the store as it is and as the plan leaves it. Returns what the plan changes for it, too, unless
    /// the server is too old to tell.
    pub(crate) fn trace(
        mut self,
        request: RequestToTrace,
    ) -> Result<(TraceReport, TraceReport, Option<String>), Failure> {
        self.asked.trace = Some(request);
        let Proposal { report, mut traced, .. } = self.propose(None)?;
        let difference = traced.as_mut().and_then(|it| it.difference.take());
        let (before, after) = self.before_and_after(report, traced.map(|it| (it.before, it.after)))?;
        Ok((before, after, difference))
    }

    /// Plans, and returns the report of a command that shows no plan, with what else is asked for unless the manifests have errors
    /// that stop the request.
    pub(crate) fn report(mut self, command: &'static str, asked: ReconciliationRequest) -> Result<Report, Failure> {
        self.asked = asked;
        Ok(Report { command, plan: None, refusals: Vec::new(), ..self.propose(None)?.report })
    }

    /// Plans, and returns what routes requests in the store as it is and as the plan leaves it.
    pub(crate) fn routing(mut self) -> Result<(RoutingState, RoutingState), Failure> {
        self.asked.routing = true;
        let Proposal { report, routing, .. } = self.propose(None)?;
        self.before_and_after(report, routing.map(|it| (it.before, it.after)))
    }

    /// The findings of the server before and after the plan. Shows the errors of the manifests, and fails if the plan
    /// cannot be applied.
    fn before_and_after<T>(&self, planned: Report, found: Option<(T, Option<T>)>) -> Result<(T, T), Failure> {
        if planned.plan.is_some() && found.is_none() {
            return Err(foreign_response(&self.url, 200));
        }
        if planned.has_errors() {
            diagnostics::diagnostics(&planned.diagnostics);
        }
        match found {
            Some((before, Some(after))) => Ok((before, after)),
            _ if planned.refusals.is_empty() => Err(Failure::new(Vec::new(), Exit::Invalid)),
            _ => Err(Failure::new(planned.refusals, Exit::Refused)),
        }
    }

    /// The failure for a server that does not know these requests.
    pub(super) fn too_old(&self, request: &ReconciliationRequest, response: &ApiResponse) -> Option<Failure> {
        let lacks = |name: &str| response.rejects_field(|field| field == name);
        let asked = [
            (request.compare, "/compare", "it cannot compare manifests", "compare without it"),
            (request.behaviour, "/behaviour", "it cannot compare how requests are treated", "omit --behaviour"),
            (request.proofs, "/proofs", "it has no invariants", "prove the manifests without it"),
            (request.trace.is_some(), "/trace", "it cannot trace manifests", "trace the manifests without it"),
            (request.tests, "/tests", "it has no route tests", "test the manifests without it"),
            (request.routing, "/routing", "it cannot route requests by manifests", "replay without it"),
        ];
        let (.., lack, otherwise) = asked.into_iter().find(|(is_asked, field, ..)| *is_asked && lacks(field))?;
        Some(self.client.too_old(lack, &format!("upgrade the server, or {otherwise}")))
    }
}
