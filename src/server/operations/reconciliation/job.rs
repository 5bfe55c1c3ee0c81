//! The run of a reconciliation that was sent: it plans, as its caller may see it, or applies the plan that was reviewed.

use super::checked_request::CheckedRequest;
use super::kept_plans::KeptPlan;
use super::records::find;
use super::review;
use super::wire::{self, ReconciliationRequest, ReconciliationRun, RoutingOfPlan, TraceOfPlan};
use crate::manifest::tree::{GitCommitDetails, Sent, SurroundedTree, Tree, UnsetValues};
use crate::model::{CommitAuthor, Path, Severity};
use crate::plan::format::json::ReportDocument;
use crate::plan::proof_report::ProofReport;
use crate::plan::saved_plan::{SavedPlan, is_masked};
use crate::reconcile::run::token::TokenHashes;
use crate::reconcile::sync_loop::{plan_drift, sync_log};
use crate::reconcile::{ApplyError, Options, PlanResult, Prepared, apply_current};
use crate::routing::TracedRequest;
use crate::server::handler_prelude::*;
use crate::server::operations::history::document::HistoryAuthor;
use crate::server::operations::planned_change::{
    self, is_expected, note_attempt, outcome, permit, permit_changes, warn_unreviewed,
};
use crate::server::replicas::read_your_writes::set_revision;
use crate::syntax::text::without_tokens;

/// A valid request.
pub(super) struct ReconciliationJob<'a> {
    app: &'a AppState,
    /// The request's headers, which identify the caller.
    headers: HeaderMap,
    caller: Caller,
    /// The request, without its files.
    request: ReconciliationRequest,
    options: Options,
    /// The file names, in order.
    files: Vec<String>,
    /// The manifests to compare with, if it is a comparison.
    older: Option<Arc<dyn Tree>>,
    /// The request to trace.
    to_trace: Option<TracedRequest>,
    traced: Option<TraceOfPlan>,
    routing: Option<RoutingOfPlan>,
    proofs: Option<ProofReport>,
}

impl<'a> ReconciliationJob<'a> {
    pub(super) fn new(
        app: &'a AppState,
        headers: HeaderMap,
        caller: Caller,
        checked: CheckedRequest,
        cancel: Cancel,
    ) -> Result<Self, ApiError> {
        let CheckedRequest { mut request, digests, to_trace, lints } = checked;
        authorize(app, &caller, &request)?;
        // A key or a person with a scope does not find out what other keys of the owner have sent.
        let sender = if caller.scope.is_some() { caller.identity() } else { Cow::Borrowed(&caller.owner) };
        let is_older: Vec<bool> = request.files.iter().map(|file| file.older).collect();
        let sent = app.caches.files.resolve(&sender, std::mem::take(&mut request.files), &digests)?;
        let (older, sent) = review::split_older(sent, &is_older);
        let unset = if request.assume_values { UnsetValues::Assume } else { UnsetValues::Require };
        let older = request.compare.then(|| review::tree(older, unset));
        let files = sent.iter().map(|file| without_tokens(&file.name).into_owned()).collect();
        let given = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        let (name, email) = (request.commit_author_name.clone(), request.commit_author_email.clone());
        let author = Some(CommitAuthor { name, email }).filter(|it| !it.name.is_empty() || !it.email.is_empty());
        let details = GitCommitDetails { author, message: given(&request.commit_message), tag: None };
        let sent = Sent::new(sent, given(&request.commit)).with_commit_details(details);
        let options = Options {
            tree: SurroundedTree::wrap(Arc::new(sent), None, unset),
            source: request.source.clone(),
            prune: request.prune,
            isolate: request.isolate,
            recreate_ids: request.recreate_ids,
            budget: request.max_deletes,
            lints,
            key_owner: Some(caller.owner.clone()),
            scope: Arc::default(), // that of the key decides
            behaviour: request.behaviour,
            cancel,
        };
        request.expect = request.expect.filter(|expect| !expect.is_empty());
        let (traced, routing, proofs) = (None, None, None);
        Ok(Self { app, headers, caller, request, options, files, older, to_trace, traced, routing, proofs })
    }

    pub(super) fn run(self) -> ApiResult {
        let (began, dry_run) = (Instant::now(), self.request.dry_run);
        let (app, author) = (self.app, self.author());
        let source = self.options.source.clone();
        let answer = self.attempt();
        if !dry_run {
            let applied = answer.as_ref().map(|answer| answer.status() == StatusCode::CREATED);
            note_attempt(&app.served.store, author, began, applied);
            if answer.is_ok() {
                app.sources.syncs.note(source, clock::now().as_second());
            }
        }
        answer
    }

    fn attempt(mut self) -> ApiResult {
        if let Some(older) = self.older.take() {
            return self.compared(older);
        }
        let prepared = Prepared::load(self.options.clone());
        // Whoever traces a request may look for the reason why a test of it fails.
        let prepared = if self.to_trace.is_some() { prepared.without_tests() } else { prepared };
        if self.request.dry_run { self.plan_only(prepared) } else { self.apply(&prepared) }
    }

    /// Plans the changes from older manifests. For a caller who does not see the secrets of the source, too: both sides have
    /// those that the caller has sent.
    fn compared(mut self, older: Arc<dyn Tree>) -> ApiResult {
        let snapshot = self.app.served.store.snapshot();
        let older = Prepared::load_to_compare(Options { tree: older, ..self.options.clone() });
        let newer = Prepared::load_to_compare(self.options.clone()).masked();
        let planned = newer.changes_from(&older, &snapshot);
        let plans = Intent::Plan(&self.options.source);
        self.caller = self.app.access.admit_again(&snapshot, &plans, &self.headers)?;
        self.answer(&planned, None, None)
    }

    /// Plans, and changes nothing.
    fn plan_only(mut self, prepared: Prepared) -> ApiResult {
        let store = Arc::clone(&self.app.served.store);
        let (snapshot, visibility) = (store.snapshot(), SecretVisibility::from_caller(&self.caller));
        let is_blind = !visibility.sees_source(&self.options.source);
        let prepared = match visibility {
            // One form for all who do not see the secrets of the source, so that others can expect it.
            _ if is_blind => prepared.masked(),
            SecretVisibility::Everything => prepared,
            SecretVisibility::Nothing | SecretVisibility::OfSources(_) => {
                let (visibility, state) = (visibility.clone(), Arc::clone(&snapshot));
                prepared.seen_by(Arc::new(move |entry: &Entry| visibility.compares(&state, entry)))
            }
        };
        self.permit_unjudged(&prepared, &snapshot)?;
        let mut planned = prepared.plan(&snapshot);
        annotate_drift(&store, &prepared, &snapshot, &mut planned);
        self.admit(&snapshot, &planned)?;
        if SecretVisibility::from_caller(&self.caller) != visibility {
            return Err(ApiError::with_code(
                Code::Conflict,
                "the permissions of the API key changed during the request",
            ));
        }
        let traced = |request| review::trace_of_plan(request, &snapshot, &prepared, &planned);
        self.traced = self.to_trace.as_ref().map(traced);
        if self.request.routing {
            self.routing = Some(review::routing_of_plan(&snapshot, &prepared, &planned)?);
        }
        self.proofs = self.request.proofs.then(|| prepared.proofs(&snapshot, &planned));
        if self.request.expect.as_deref().is_some_and(is_masked) && !is_blind {
            warn_unreviewed(&mut planned);
            let saved = self.saved(&prepared.masked().plan(&snapshot), Secrets::Masked)?;
            return self.answer(&planned, saved, None);
        }
        let secrets = if is_blind { Secrets::Masked } else { Secrets::Revealed };
        let saved = self.saved(&planned, secrets)?;
        self.answer(&planned, saved, None)
    }

    /// Plans the current state, and commits the plan as one revision if it may run.
    fn apply(mut self, prepared: &Prepared) -> ApiResult {
        let store = Arc::clone(&self.app.served.store);
        let author = self.author();
        self.permit_unjudged(prepared, &store.snapshot())?;
        let hashes = std::mem::take(&mut self.request.token_hashes).into_iter();
        let mut tokens = TokenHashes(hashes.map(|(key, hash)| (Id::new(&key), hash)).collect());
        let reviewed = self.request.expect.as_deref().is_some_and(is_masked).then(|| prepared.masked());
        let accept = |snapshot: &Snapshot, mut planned: PlanResult| {
            annotate_drift(&store, prepared, snapshot, &mut planned);
            let masked = reviewed.as_ref().map(|reviewed| reviewed.plan(snapshot));
            if masked.is_some() {
                warn_unreviewed(&mut planned);
            }
            self.accept(snapshot, &planned, masked.as_ref())?;
            Ok::<_, ApiError>(planned)
        };
        let plan = |current: &Snapshot| prepared.plan(current);
        let (planned, revision) = apply_current(&store, plan, |_| Ok(author.clone()), &mut tokens, accept, || Ok(()))?;
        match (&planned.plan, revision) {
            (Some(plan), Some(revision)) => {
                sync_log::applied(&author, plan, revision);
                self.app.sources.registry.request_syncs_after(&self.options.source, plan);
            }
            (Some(plan), None) => sync_log::in_sync(&author, plan.unchanged, plan.base),
            (None, _) => {}
        }
        let saved = self.saved(&planned, Secrets::Revealed)?;
        let Caller { key, owner, .. } = &self.caller;
        let applied = planned.plan.as_ref().filter(|_| revision.is_some());
        let note = applied.and_then(|plan| SecurityNote::for_operations((key, owner), &plan.each_operation()));
        Ok(response::noted(self.answer(&planned, saved, revision)?, note))
    }

    fn author(&self) -> Author {
        self.options.author().with_api_key(self.caller.key.clone(), self.caller.owner.clone())
    }

    /// Refuses changes that the caller may not make before they are judged: a refused request does not keep its place for as
    /// long as a proof takes. What may be made is decided once more when it is planned. Nothing is refused to an admin whose key
    /// has no scope.
    fn permit_unjudged(&self, prepared: &Prepared, snapshot: &Snapshot) -> Result<(), ApiError> {
        let has_limits = self.caller.scope.is_some() || self.caller.role != Role::Admin;
        // A dry run of somebody who cannot apply the source shows everything.
        if !has_limits || permission::allows(&self.caller, &Intent::Apply(&self.options.source), snapshot).is_err() {
            return Ok(());
        }
        let changes = prepared.unjudged_changes(snapshot);
        changes.map_or(Ok(()), |plan| permit_changes(&self.caller, &plan, snapshot))
    }

    /// Planning may take its time, and the key may be revoked meanwhile: it counts at the revision that is planned.
    fn admit(&mut self, snapshot: &Snapshot, planned: &PlanResult) -> Result<(), ApiError> {
        let intent = intent(&self.options.source, self.request.dry_run);
        self.caller = self.app.access.admit_again(snapshot, &intent, &self.headers)?;
        let applies = Intent::Apply(&self.options.source);
        // A dry run reports what would be refused, unless its caller cannot apply the source anyway.
        match permission::allows(&self.caller, &applies, snapshot) {
            Ok(()) => permit(&self.caller, planned, snapshot),
            Err(_) => Ok(()),
        }
    }

    /// Whether a plan may run: it is the one that the client expects, whatever else has happened in the store (D45).
    /// `masked` is the same plan without secrets, if that is what was reviewed.
    fn accept(
        &mut self,
        snapshot: &Snapshot,
        planned: &PlanResult,
        masked: Option<&PlanResult>,
    ) -> Result<(), ApiError> {
        self.admit(snapshot, planned)?;
        let Some(plan) = &planned.plan else { return Err(self.invalid(planned)) };
        let outcome = |planned: &PlanResult, secrets| outcome(self.saved(planned, secrets)?.as_ref());
        if !is_expected(self.request.expect.as_deref(), planned, masked, outcome)? {
            return Err(planned_change::stale("the store or the values have"));
        }
        ApiError::check(plan.refusals.iter().map(|it| self.fault(it)))
    }

    /// The plan as a document; none for one that cannot be applied.
    fn saved(&self, planned: &PlanResult, secrets: Secrets<'_>) -> Result<Option<SavedPlan>, JsonError> {
        let Options { tree, source, .. } = &self.options;
        if tree.assumes_values() {
            return Ok(None);
        }
        planned_change::saved(&self.app.served.store, planned, source, tree.commit(), secrets)
    }

    fn answer(&self, planned: &PlanResult, saved: Option<SavedPlan>, revision: Option<u64>) -> ApiResult {
        let mut report = planned.report(if self.request.dry_run { "plan" } else { "reconcile" });
        report.applied = revision;
        report.tests = self.request.tests.then(|| planned.test_report());
        report.proofs.clone_from(&self.proofs);
        let run = ReconciliationRun {
            report: self.with_page(ReportDocument::from_report(&report))?,
            left_out: planned.left_out_names(),
            outcome: outcome(saved.as_ref())?,
            saved_plan: saved,
            reconciliation: revision.and_then(|revision| find(&self.app.served, revision).ok().flatten()),
            followed: self.app.sources.registry.is_configured(&self.options.source),
            traced: self.traced.clone(),
            routing: self.routing.clone(),
        };
        let mut response = json_response(if revision.is_some() { StatusCode::CREATED } else { StatusCode::OK }, &run)?;
        set_revision(response.headers_mut(), revision);
        if let Some(made) = &run.reconciliation {
            response::set_header(response.headers_mut(), header::LOCATION, &made.head.uri);
        }
        Ok(response)
    }

    /// Keeps the plan for a page of the dashboard if the request asks for one, and adds its address.
    fn with_page(&self, report: ReportDocument) -> Result<ReportDocument, JsonError> {
        let Self { app, request, .. } = self;
        // A page of a server that follows is that of the one which writes.
        let has_page = request.page && app.has_dashboard && !app.forwarder.is_needed();
        let has_changes = report.plan.as_ref().is_some_and(|plan| !plan.changes.is_empty());
        if !has_page || !has_changes {
            return Ok(report);
        }
        let kept = KeptPlan {
            source: request.source.clone(),
            commit: request.commit.clone(),
            commit_message: request.commit_message.clone(),
            by: HistoryAuthor::new(&self.caller.author(), &app.served.store.snapshot()),
            at: clock::now().to_string(),
            report,
        };
        let page = app.caches.plans.keep(&kept)?.map(|id| format!("{}/ui/plans/{id}", app.served.base_urls.base_url));
        Ok(ReportDocument { page, ..kept.report })
    }

    fn invalid(&self, planned: &PlanResult) -> ApiError {
        let errors = planned.diagnostics.iter().filter(|it| it.severity == Severity::Error);
        ApiError::from_faults(errors.map(|it| self.fault(it)))
    }

    /// Converts a diagnostic, with the field of the file in the request.
    fn fault(&self, it: &Diagnostic) -> Fault {
        let fault = planned_change::fault(it);
        let at = it.place.as_ref().and_then(|place| self.files.iter().position(|name| *name == place.file.name));
        match at {
            Some(at) => fault.at(Path::root().join("files").join(at).join("text")),
            None => fault,
        }
    }
}

/// The intent of a request for a source.
fn intent(source: &str, dry_run: bool) -> Intent<'_> {
    if dry_run { Intent::Plan(source) } else { Intent::Apply(source) }
}

/// Refuses a caller who may not plan or apply the source, and a source that the server reconciles itself.
fn authorize(app: &AppState, caller: &Caller, request: &ReconciliationRequest) -> Result<(), ApiError> {
    let wanted = intent(&request.source, request.dry_run);
    permission::allows(caller, &wanted, &app.served.store.snapshot()).map_err(|fault| caller.refused(fault))?;
    app.access.check_change(caller, &wanted)?;
    if app.sources.registry.is_configured(&request.source) && !request.dry_run {
        // The loop would revert everything in its next run.
        let fault = Fault::new(Code::Conflict, wire::followed_message(&request.source)).at("source");
        return Err(ApiError::new(fault.help(wire::FOLLOWED_HELP)));
    }
    Ok(())
}

/// Adds to a plan what others have changed. Without the history, the plan is as right as with it.
fn annotate_drift(store: &Store, prepared: &Prepared, snapshot: &Snapshot, planned: &mut PlanResult) {
    let source = prepared.options.source.as_str();
    if let Err(error) = plan_drift::find_drift(store, source, snapshot, planned, prepared.sees.as_ref()) {
        tracing::warn!(source, code = %error.code, "cannot tell drift from pending changes: {error}");
    }
}

impl From<ApplyError> for ApiError {
    fn from(error: ApplyError) -> Self {
        match error {
            ApplyError::Commit(error) => error.into(),
            ApplyError::NoTokenHash(key) => {
                let path = Path::root().join("token_hashes").join(key.as_str());
                let message = format!("the token hash of the new API key {key} is required");
                ApiError::new(Fault::new(Code::Required, message).at(path))
            }
            ApplyError::Refused(_) | ApplyError::TokenFile(..) => {
                Self::with_code(Code::Internal, error.diagnostic().message)
            }
        }
    }
}
