//! POST `/reconciliations`: plans and applies sent manifests as one revision (D24, D45). [`records`] has those of the history.
//!
//! A review is identified by the outcome of its plan and not by the revision of the store: unrelated changes between
//! the dry run and the apply do not matter ([`is_expected`]).

pub(crate) mod files;
pub(super) mod records;
mod review;
mod upload;
pub(crate) mod wire;

use std::{collections::BTreeMap, sync::Arc, time::Instant};

use axum::{
    body::Body,
    extract::State,
    http::{HeaderMap, HeaderValue, StatusCode, header},
    routing::on,
};
use serde_json::json;

use super::{
    checks::RequestBody,
    operation::ApiOperation,
    planned_change::{self, empty_expectation, is_expected, note_attempt, outcome, permit, warn_unreviewed},
};
use crate::{
    manifest::tree::{ContextTree, Sent, Tree, UnsetValues},
    model::{
        diagnostics::{
            code::Code,
            diagnostic::{Diagnostic, Severity},
            fault::{Fault, MOST_FAULTS, Path},
        },
        id::Id,
        json::JsonError,
        operation::{Author, CommitAuthor},
        snapshot::{Entry, Snapshot},
    },
    plan::{
        format::json::ReportDocument,
        saved::{SavedPlan, is_masked},
    },
    reconcile::{
        ApplyError, LintLevels, Options, PlanResult, Prepared, apply_current, check_new_source,
        run::{cancel::Cancel, token::TokenHashes},
        sync_loop::{plan_drift, sync_log},
    },
    routing::TracedRequest,
    server::{
        auth::{
            caller::Caller,
            permission::{self, Intent, SecretVisibility},
        },
        http::{
            body::{self, Limits},
            response::{ApiError, ApiResult, json_response},
        },
        state::AppState,
        telemetry::security::note::SecurityNote,
    },
    store::Store,
    syntax::text::without_tokens,
};
use records::find;
use upload::Upload;
use wire::{PATH, Request, Run, TraceOfPlan};

/// The manifest of the example.
const MANIFEST: &str =
    "apiVersion: edgewright/v1\nkind: HttpsEdge\nmetadata: {name: example}\nspec: {description: An example}\n";

pub(super) static CREATE: ApiOperation = ApiOperation::post(PATH, Intent::Propose, |method| on(method, create))
    .named("Reconciliations", "createReconciliation", "Plan or apply manifests")
    .described("Plans manifests and applies the plan as one revision, unless `dry_run` is set. A dry run responds with 200: its diagnostics and refusals are the errors that would prevent applying the plan. If the server lacks the text of a file with a `digest`, it responds with 409 and `ERR_EDGEWRIGHT_MISSING_FILES`, plans and changes nothing, and keeps the texts of the request for the next one. With `compare`, a dry run returns the changes from the files with `older` to the others; with `trace`, it also returns how a request is routed before and after the plan.")
    .documented("400 401 403 408 409 413 415 429 500 503", |operation, schemas| {
        let example =
            json!({"dry_run": true, "source": "example", "files": [{"name": "example.yaml", "text": MANIFEST}]});
        let run = schemas.response::<Run>();
        operation
            .body(schemas.request::<Request>(), example)
            .responds("200", "Planned, or no changes", run.clone())
            .responds("201", "Applied as a new revision", run)
            .header("201", "Location", "Its address.")
    });

/// Plans what the manifests in the body ask for, and applies it unless it is a dry run.
async fn create(State(app): State<AppState>, caller: Caller, headers: HeaderMap, body: Body) -> ApiResult {
    let mut upload = Upload::receive(&app, &caller, &headers, body).await?;
    let place = upload.place(&app, &caller).await?;
    let run = move |cancel: Cancel| {
        let bytes = upload.into_bytes();
        let caller = app.access.admit_again(&app.served.store.snapshot(), &Intent::Propose, &headers)?;
        let (content, faults) = body::parse(&bytes, Limits::MANIFESTS)?;
        let request = RequestBody::from_parts(content, faults).decode_required::<Request>()?;
        ReconciliationJob::new(&app, headers, caller, request, cancel)?.run()
    };
    place.run(run).await
}

/// A valid request.
struct ReconciliationJob<'a> {
    app: &'a AppState,
    /// The request's headers, which identify the caller.
    headers: HeaderMap,
    caller: Caller,
    options: Options,
    /// The file names, in order.
    files: Vec<String>,
    dry_run: bool,
    /// The outcome of the only plan to apply, if not any.
    expect: Option<String>,
    tokens: TokenHashes,
    /// The manifests to compare with, if it is a comparison.
    older: Option<Arc<dyn Tree>>,
    /// The request to trace.
    to_trace: Option<TracedRequest>,
    traced: Option<TraceOfPlan>,
}

impl<'a> ReconciliationJob<'a> {
    fn new(
        app: &'a AppState,
        headers: HeaderMap,
        caller: Caller,
        request: Request,
        cancel: Cancel,
    ) -> Result<Self, ApiError> {
        let mut faults = Vec::new();
        let field = |name: &str| Path::root().join(name);
        if let Err(reason) = check_new_source(&request.source) {
            faults.push(Fault::new(Code::InvalidFormat, reason).at(field("source")));
        }
        let of_commit = [
            ("commit", &request.commit, 255),
            ("commit_author_name", &request.commit_author_name, 1024),
            ("commit_author_email", &request.commit_author_email, 1024),
            ("commit_message", &request.commit_message, 1024),
        ];
        for (name, value, most) in of_commit {
            if value.len() > most || value.contains(char::is_control) {
                let message = format!("`{name}` must be at most {most} bytes without control characters");
                faults.push(Fault::new(Code::InvalidFormat, message).at(field(name)));
            }
        }
        let mut names = BTreeMap::new();
        for (at, file) in request.files.iter().enumerate() {
            let path = field("files").join(at).join("name");
            if file.name.is_empty() || file.name.len() > 4096 {
                faults.push(Fault::new(Code::InvalidFormat, "a file name must have 1 to 4096 bytes").at(path));
            } else if let Some(first) = names.insert((file.older, file.name.as_str()), at) {
                let fault = Fault::new(Code::DuplicateName, format!("duplicate file name (same as file {first})"));
                faults.push(fault.at(path));
            }
        }
        let digests = files::digests(&request.files, &mut faults);
        let to_trace = review::checked(&request, &mut faults);
        faults.extend(empty_expectation(request.expect.as_deref(), request.dry_run));
        for (key, hash) in &request.token_hashes {
            if !files::is_hash(hash.expose()) {
                let fault = Fault::new(Code::InvalidFormat, "a hash must be 64 lower-case hexadecimal digits");
                faults.push(fault.at(field("token_hashes").join(key.as_str())));
            }
        }
        let lints = LintLevels::named(&request.lints, request.allowed_labels).unwrap_or_else(|fault| {
            faults.push(fault.under(&field("lints")));
            LintLevels::default()
        });
        let lints = LintLevels { certificate_expiry_days: request.certificate_expiry_days, ..lints };
        if request.assume_values && !request.dry_run {
            let fault = Fault::new(Code::NotAllowed, "assumed values cannot be applied").at(field("assume_values"));
            faults.push(fault.help("set `dry_run`, or send the values"));
        }
        ApiError::check(faults)?;
        let wanted = intent(&request.source, request.dry_run);
        permission::allows(&caller, &wanted, &app.served.store.snapshot()).map_err(|fault| caller.refused(fault))?;
        app.access.check_share(&caller, &wanted)?;
        if is_followed(app, &request.source) && !request.dry_run {
            // The loop would revert everything in its next run.
            let fault = Fault::new(Code::Conflict, wire::followed_message(&request.source)).at(field("source"));
            return Err(ApiError::new(fault.help(wire::FOLLOWED_HELP)));
        }
        // A key with a scope does not find out what other keys of its owner have sent.
        let sender = if caller.scope.is_some() { &caller.key } else { &caller.owner };
        let is_older: Vec<bool> = request.files.iter().map(|file| file.older).collect();
        let sent = app.caches.files.resolve(sender, request.files, &digests)?;
        let (older, sent) = review::apart(sent, &is_older);
        let unset = if request.assume_values { UnsetValues::Assume } else { UnsetValues::Require };
        let older = request.compare.then(|| review::tree(older, unset));
        let files = sent.iter().map(|file| without_tokens(&file.name).into_owned()).collect();
        let commit = Some(request.commit).filter(|commit| !commit.is_empty());
        let author = CommitAuthor { name: request.commit_author_name, email: request.commit_author_email };
        let author = Some(author).filter(|author| !author.name.is_empty() || !author.email.is_empty());
        let message = Some(request.commit_message).filter(|message| !message.is_empty());
        let hashes = request.token_hashes.into_iter().map(|(key, hash)| (Id::new(&key), hash));
        let sent = Sent::shared(sent, commit).with_commit_author(author).with_commit_message(message);
        let options = Options {
            tree: ContextTree::wrap(Arc::new(sent), None, unset),
            source: request.source,
            prune: request.prune,
            isolate: request.isolate,
            recreate_ids: request.recreate_ids,
            budget: request.max_deletes,
            lints,
            key_owner: Some(caller.owner.clone()),
            scope: Arc::default(), // that of the key decides
            cancel,
        };
        let (dry_run, tokens) = (request.dry_run, TokenHashes(hashes.collect()));
        let expect = request.expect.filter(|expect| !expect.is_empty());
        Ok(Self { app, headers, caller, options, files, dry_run, expect, tokens, older, to_trace, traced: None })
    }

    fn run(self) -> ApiResult {
        let (began, dry_run) = (Instant::now(), self.dry_run);
        let (app, author) = (self.app, self.author());
        let source = self.options.source.clone();
        let answer = self.attempt();
        if !dry_run {
            note_attempt(&app.served.store, author, began, &answer);
            if answer.is_ok() {
                app.sources.syncs.note(&source);
            }
        }
        answer
    }

    fn attempt(mut self) -> ApiResult {
        let store = Arc::clone(&self.app.served.store);
        if let Some(older) = self.older.take() {
            return self.compared(older);
        }
        let prepared = Prepared::load(self.options.clone());
        if self.dry_run {
            let (snapshot, visibility) = (store.snapshot(), SecretVisibility::from_caller(&self.caller));
            let is_blind = !visibility.sees_source(&self.options.source);
            let prepared = match visibility {
                // One form for all who do not see the secrets of the source, so that others can expect it.
                _ if is_blind => prepared.masked(),
                SecretVisibility::Everything => prepared,
                SecretVisibility::Nothing | SecretVisibility::OfSources(_) => {
                    let (visibility, state) = (visibility.clone(), Arc::clone(&snapshot));
                    prepared.seen_by(Arc::new(move |entry: &Entry| {
                        visibility.sees(entry) && visibility.sees_required(&state, entry, None)
                    }))
                }
            };
            let mut planned = prepared.plan(&snapshot);
            tell_drift(&store, &prepared, &snapshot, &mut planned);
            self.admit(&snapshot, &planned)?;
            if SecretVisibility::from_caller(&self.caller) != visibility {
                return Err(ApiError::with_code(
                    Code::Conflict,
                    "the permissions of the API key changed during the request",
                ));
            }
            self.traced = self.to_trace.as_ref().map(|request| review::trace_of_plan(request, &snapshot, &planned));
            if self.expect.as_deref().is_some_and(is_masked) && !is_blind {
                warn_unreviewed(&mut planned);
                let saved = self.saved(&prepared.masked().plan(&snapshot), true)?;
                return self.answer(&planned, saved, None);
            }
            let saved = self.saved(&planned, is_blind)?;
            return self.answer(&planned, saved, None);
        }
        let author = self.author();
        let mut tokens = std::mem::take(&mut self.tokens);
        let reviewed = self.expect.as_deref().is_some_and(is_masked).then(|| prepared.masked());
        let accept = |snapshot: &Snapshot, mut planned: PlanResult| {
            tell_drift(&store, &prepared, snapshot, &mut planned);
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
                self.app.sources.following.request_syncs_after(&self.options.source, plan);
            }
            (Some(plan), None) => sync_log::in_sync(&author, plan.unchanged, plan.base),
            (None, _) => {}
        }
        let saved = self.saved(&planned, false)?;
        let mut response = self.answer(&planned, saved, revision)?;
        let Caller { key, owner, .. } = &self.caller;
        if let (Some(plan), Some(_)) = (&planned.plan, revision)
            && let Some(note) = SecurityNote::for_operations((key, owner), &plan.each_operation())
        {
            response.extensions_mut().insert(note);
        }
        Ok(response)
    }

    fn author(&self) -> Author {
        self.options.author().through(self.caller.key.clone(), self.caller.owner.clone())
    }

    /// Planning may take its time, and the key may be revoked meanwhile: it counts at the revision that is planned.
    fn admit(&mut self, snapshot: &Snapshot, planned: &PlanResult) -> Result<(), ApiError> {
        let intent = intent(&self.options.source, self.dry_run);
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
        let outcome = |planned: &PlanResult, masked| outcome(self.saved(planned, masked)?.as_ref());
        if !is_expected(self.expect.as_deref(), planned, masked, outcome)? {
            return Err(planned_change::stale("the store or the values have"));
        }
        self.refused(&plan.refusals)
    }

    /// The plan as a document; none for one that cannot be applied.
    fn saved(&self, planned: &PlanResult, masked: bool) -> Result<Option<SavedPlan>, JsonError> {
        let Options { tree, source, .. } = &self.options;
        if tree.assumes_values() {
            return Ok(None);
        }
        planned_change::saved(self.app, planned, source, tree.commit(), masked)
    }

    fn answer(&self, planned: &PlanResult, saved: Option<SavedPlan>, revision: Option<u64>) -> ApiResult {
        let mut report = planned.report(if self.dry_run { "plan" } else { "reconcile" });
        report.applied = revision;
        let run = Run {
            report: ReportDocument::from_report(&report),
            left_out: planned.left_out_names(),
            outcome: outcome(saved.as_ref())?,
            saved_plan: saved,
            reconciliation: revision.and_then(|revision| find(&self.app.served, revision).ok().flatten()),
            followed: is_followed(self.app, &self.options.source),
            traced: self.traced.clone(),
        };
        let mut response = json_response(if revision.is_some() { StatusCode::CREATED } else { StatusCode::OK }, &run)?;
        let uri = run.reconciliation.and_then(|made| HeaderValue::from_str(&made.head.uri).ok());
        if let Some(uri) = uri {
            response.headers_mut().insert(header::LOCATION, uri);
        }
        Ok(response)
    }

    fn invalid(&self, planned: &PlanResult) -> ApiError {
        let errors = planned.diagnostics.iter().filter(|it| it.severity == Severity::Error);
        // The limit of the response.
        ApiError::from_faults(errors.take(MOST_FAULTS).map(|it| self.fault(it)).collect())
    }

    fn refused(&self, refusals: &[Diagnostic]) -> Result<(), ApiError> {
        ApiError::check(refusals.iter().take(MOST_FAULTS).map(|it| self.fault(it)).collect())
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

/// Whether the server reconciles a source from its own manifests.
pub(super) fn is_followed(app: &AppState, source: &str) -> bool {
    app.sources.following.find(source).is_some()
}

/// Adds to a plan what others have changed. Without the history, the plan is as right as with it.
fn tell_drift(store: &Store, prepared: &Prepared, snapshot: &Snapshot, planned: &mut PlanResult) {
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
