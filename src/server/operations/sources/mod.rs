//! `/sources`: the sources that the server follows, their status and syncs (D83), and their suspension (D84).
//!
//! The loop of a source publishes its status, and a request reads the last one: no request waits for a sync. A sync or
//! a suspension that a request asks for is noted, and the loop acts on it. Other sources that own resources are listed
//! after the followed ones, with what the history has of them (`client_revisions`). `view` has the bodies, which the
//! command line reads too, and `destroy` plans the deletion of all that a source owns.

pub(crate) mod client_revisions;
pub(crate) mod destroy;
pub(crate) mod drift_view;
pub(crate) mod view;

use axum::extract::{FromRequestParts, Path};
use axum::http::request::Parts;

use super::checks::RequestBody;
use crate::manifest::tree::whole_commit;
use crate::model::key_scope::end_time;
use crate::model::suggest;
use crate::reconcile::sync_loop::condition::Condition;
use crate::reconcile::sync_loop::status::SourceStatus;
use crate::reconcile::sync_loop::suspension::Suspension;
use crate::server::handler_prelude::*;
use view::{SourceList, SourceResume, SourceSuspend, SourceView, SuspensionView};

/// The path of the list.
pub(crate) const PATH: &str = "/sources";
/// When a client should try again for which a source has not started, in seconds.
const RETRY_UNSTARTED: u64 = 5;
/// The most sources that nobody follows and that are listed: clients choose their names.
pub(crate) const MOST_UNFOLLOWED: usize = 100;

pub(super) static LIST: ApiOperation = ApiOperation::get(PATH, Intent::Read, |method| on(method, list))
    .of_writer()
    .named("Sources", "listSources", "List sources")
    .described("Returns the sources that the server follows, with their status, in the order of the configuration. After them come the first hundred other sources that own resources, with the reason `NotFollowed` and what a client applied last.")
    .documented("400 401 429 500 503", |operation, schemas| {
        operation.ok(schemas.whole_list_of::<SourceView>("Source", "sources")).conditional()
    });

pub(super) static GET: ApiOperation = ApiOperation::get("/sources/{name}", Intent::Read, |method| on(method, get))
    .of_writer()
    .named("Sources", "getSource", "Get the status of a source")
    .described("Returns the status of a source that the server follows or that owns resources: its conditions, the last sync and the last one that applied the manifests, diagnostics with their positions, and counts.")
    .documented("400 401 404 429 500 503", |operation, schemas| {
        operation.ok(schemas.response::<SourceView>()).conditional()
    });

pub(super) static SUSPEND: ApiOperation = ApiOperation::post("/sources/{name}/suspend", Intent::Apply("{name}"), |method| on(method, suspend))
    .named("Sources", "suspendSource", "Suspend a source")
    .described("Suspends a source until it is resumed or until a time: the server plans its manifests and reports what it would change, but applies nothing. A sync in progress does not apply its plan.")
    .documented("400 401 403 404 408 413 415 429 500 503", |operation, schemas| {
        let example = json!({"reason": "Emergency fix of the checkout route", "until": ""});
        let operation = operation.body(schemas.request::<SourceSuspend>(), example);
        operation.ok(schemas.response::<SourceView>()).tagged()
    });

pub(super) static RESUME: ApiOperation = ApiOperation::post("/sources/{name}/resume", Intent::Apply("{name}"), |method| on(method, resume))
    .named("Sources", "resumeSource", "Resume a source")
    .described("Ends the suspension of a source, if it has one, and syncs it. With `accept_commit`, a source with `verify` continues from a commit that it refuses because the commit does not descend from the last applied one.")
    .documented("400 401 403 404 408 409 413 415 429 500 503", |operation, schemas| {
        let example = json!({"accept_commit": "4f2a9c51d0b7e38642f1a5c9e0d3b7864f2a9c51"});
        let operation = operation.optional_body(schemas.request::<SourceResume>(), example);
        operation.ok(schemas.response::<SourceView>()).tagged()
    });

pub(super) static SYNC: ApiOperation = ApiOperation::post("/sources/{name}/sync", Intent::Apply("{name}"), |method| on(method, sync))
    .named("Sources", "syncSource", "Sync a source")
    .described("Requests a sync of a source, which first fetches a remote repository. The response does not wait for it: a sync that began after the request has ended once `syncs_ended` of the source is greater than `syncs_begun` of the response.")
    .documented("400 401 403 404 429 500 503", |operation, schemas| {
        operation.ok(schemas.response::<SourceView>()).tagged()
    });

/// Lists the sources in the order of the configuration, and then those that own resources and that nobody follows.
async fn list(State(app): State<AppState>, headers: HeaderMap) -> ApiResult {
    blocking(move || {
        let uri = format!("{}{PATH}", app.served.base_urls.base_url);
        let list = SourceList { sources: views(&app, &app.served.store.snapshot(), None), uri };
        conditional::json_response(&headers, &list)
    })
    .await
}

/// Returns the status of a source, followed or not.
async fn get(State(app): State<AppState>, Path(name): Path<String>, headers: HeaderMap) -> ApiResult {
    blocking(move || conditional::json_response(&headers, &view(&app, &app.served.store.snapshot(), &name)?)).await
}

/// A source that the server follows, which the path names.
pub(in crate::server) struct SourceInPath {
    app: AppState,
    handle: Arc<SourceHandle>,
}

impl FromRequestParts<AppState> for SourceInPath {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &AppState) -> Result<Self, ApiError> {
        let name = Path::<String>::from_request_parts(parts, app).await.map_err(|_| ApiError::no_endpoint())?;
        Self::new(app, &name)
    }
}

impl SourceInPath {
    /// Finds the source.
    pub(in crate::server) fn new(app: &AppState, name: &str) -> Result<Self, ApiError> {
        Ok(Self { handle: followed(app, name)?, app: app.clone() })
    }

    /// Suspends or resumes the source, or requests a sync, and responds with its status. Once it is suspended, a current run
    /// does not apply its plan any more.
    async fn change(
        self,
        change: impl FnOnce(&SourceHandle) -> Result<Option<Suspension>, StoreError> + Send + 'static,
    ) -> ApiResult {
        blocking(move || {
            let (app, name) = (&self.app, self.handle.source.as_str());
            let source = followed(app, name)?;
            let before = change(&source)?;
            let state = app.served.store.snapshot();
            let mut found = view(app, &state, name)?;
            found.replaced_suspension = before.map(|before| SuspensionView::new(before, &state));
            let rendered = response::rendered(json::bytes(&found, Secrets::Masked)?);
            Ok(response::resource(StatusCode::OK, &rendered))
        })
        .await
    }
}

/// Finds a source that the server follows.
fn followed(app: &AppState, name: &str) -> Result<Arc<SourceHandle>, ApiError> {
    app.sources.registry.find(name).ok_or_else(|| unknown(app, name))
}

/// Suspends a source: it is planned and not applied until it is resumed or the suspension ends.
pub(in crate::server) async fn suspend(
    source: SourceInPath,
    caller: Caller,
    JsonBody(wanted): JsonBody<SourceSuspend>,
) -> ApiResult {
    let since = clock::now();
    let until = end(&wanted, since).map_err(ApiError::new)?;
    let suspension = Suspension::new(wanted.reason, caller.name(), since, until).map_err(ApiError::new)?;
    source.change(move |handle| handle.set_suspension(Some(suspension), caller.author())).await
}

/// When a suspension that begins now ends. This server decides when it is over, so a duration is counted by its clock: that of
/// a client may be wrong.
fn end(wanted: &SourceSuspend, now: Timestamp) -> Result<Option<Timestamp>, Fault> {
    let fault = |code, field: &'static str, message: &str| Fault::new(code, message).at(field);
    match (wanted.until.trim(), wanted.for_seconds) {
        ("", None) => Ok(None),
        ("", Some(0)) => Err(fault(Code::OutOfRange, "for_seconds", "`for_seconds` must be greater than 0")),
        ("", Some(seconds)) => {
            let end = now.checked_add(Duration::from_secs(seconds.into()));
            let too_long = |_| fault(Code::OutOfRange, "for_seconds", "`for_seconds` is too large");
            end.map(Some).map_err(too_long)
        }
        (text, None) => {
            let message = "`until` must be a time such as 2027-01-31T18:00:00Z";
            let end = end_time(text).ok_or_else(|| fault(Code::InvalidFormat, "until", message))?;
            Ok(Some(end).filter(|end| *end < Timestamp::MAX))
        }
        (_, Some(_)) => {
            let both = fault(Code::NotAllowed, "for_seconds", "`for_seconds` cannot be set together with `until`");
            Err(both.help("remove one of them"))
        }
    }
}

/// Ends the suspension of a source, and accepts a commit that the source refuses because it was rewound.
pub(in crate::server) async fn resume(source: SourceInPath, caller: Caller, body: RequestBody) -> ApiResult {
    let SourceResume { accept_commit } = if body.is_null() { SourceResume::default() } else { body.decode()? };
    let accepted = accept_commit.map(|commit| whole_commit(&commit)).transpose();
    let accepted = accepted.map_err(|_| {
        let message = "`accept_commit` must be a commit ID of 40 hexadecimal digits";
        ApiError::new(Fault::new(Code::InvalidFormat, message).at("accept_commit"))
    })?;
    if accepted.is_some() && source.handle.settings.lineage.is_none() {
        let fault = Fault::new(Code::NotAllowed, "the manifests of the source are not in a Git repository");
        return Err(ApiError::new(fault.at("accept_commit")));
    }
    if source.handle.configured.is_some() {
        let fault = Fault::new(Code::Conflict, "the configuration file of the server suspends the source");
        return Err(ApiError::new(fault.help("remove `suspend` from the source in the file")));
    }
    let resume = move |handle: &SourceHandle| {
        if let Some(commit) = accepted {
            handle.accept_commit(&commit, caller.author())?;
        }
        handle.set_suspension(None, caller.author())
    };
    source.change(resume).await
}

/// Requests a sync of a source.
pub(in crate::server) async fn sync(source: SourceInPath) -> ApiResult {
    let request = |handle: &SourceHandle| {
        handle.request_whole_sync();
        Ok(None)
    };
    source.change(request).await
}

fn unknown(app: &AppState, name: &str) -> ApiError {
    if app.sources.registry.is_configured(name) {
        let message = format!("the source `{}` has not started", printable(name));
        let fault =
            Fault::new(Code::Unavailable, message).help("GET `/sources` and the log of the server have the reason");
        return ApiError::new(fault).retry_after(RETRY_UNSTARTED);
    }
    let inventory = app.telemetry.inventories.count(&app.served.store.snapshot());
    if inventory.by_source.contains_key(name) {
        let message = format!("`{}` is not followed: its pipeline applies it", printable(name));
        let help = "to stop it, disable the pipeline or revoke its key (`edgewright keys list`)";
        return ApiError::new(Fault::new(Code::NotFound, message).help(help));
    }
    let fault = Fault::new(Code::NotFound, format!("this server follows no source named `{}`", printable(name)));
    let followed = app.sources.registry.now();
    let known = followed.iter().map(|handle| handle.source.as_str());
    ApiError::new(fault.help(suggest(name, known, "list the sources with `edgewright status` or GET `/sources`")))
}

/// The status of a source.
pub(crate) fn view(app: &AppState, snapshot: &Arc<Snapshot>, name: &str) -> Result<SourceView, ApiError> {
    views(app, snapshot, Some(name)).into_iter().find(|source| source.name == name).ok_or_else(|| unknown(app, name))
}

/// The status of each followed source, and of those that only own resources: of one of them, or of the first ones.
pub(crate) fn views(
    AppState { served, sources, telemetry, .. }: &AppState,
    snapshot: &Arc<Snapshot>,
    only: Option<&str>,
) -> Vec<SourceView> {
    let inventory = telemetry.inventories.count(snapshot);
    let mut owned: HashMap<&str, usize> =
        inventory.by_source.iter().map(|(source, owned)| (source.as_str(), *owned)).collect();
    let followed = sources.registry.now();
    let observed: Vec<(Condition, SourceStatus)> = followed.iter().map(|handle| handle.observed()).collect();
    let all = followed.iter().zip(&observed).map(|(handle, (_, status))| (&**handle, status));
    let all: Vec<(&SourceHandle, &SourceStatus)> = all.collect();
    let drift = sources.recent_drift.current(&served.store, &all);
    let mut views = Vec::with_capacity(all.len());
    for (&(handle, status), ((condition, _), drift)) in all.iter().zip(observed.iter().zip(drift)) {
        let count = owned.remove(handle.source.as_str()).unwrap_or_default();
        let observed = (condition, status);
        let view = SourceView::followed(handle, observed, &all, count, snapshot, &served.base_urls.base_url);
        views.push(view.with_drift(drift, snapshot.revision));
    }
    let unstarted = sources.registry.unstarted();
    let waiting = unstarted.iter().flat_map(|parts| &parts.sources).map(String::as_str);
    let waiting: Vec<(&str, usize)> =
        waiting.map(|source| (source, owned.remove(source).unwrap_or_default())).collect();
    owned.retain(|source, _| only.is_none_or(|only| only == *source));
    let mut left: Vec<(&str, usize)> = owned.into_iter().collect();
    left.sort_unstable();
    left.truncate(MOST_UNFOLLOWED);
    let names: Vec<&str> = waiting.iter().chain(&left).map(|(source, _)| *source).collect();
    let applied = sources.client_revisions.latest(&served.store, snapshot, &names);
    let unfollowed = |(source, owned): (&str, usize)| {
        let (last, sent) = (applied.get(source), sources.syncs.get(source));
        SourceView::unfollowed(source, owned, snapshot, last, sent, &served.base_urls.base_url)
    };
    let reason = unstarted.as_ref().map_or("", |parts| parts.reason.as_str());
    views.extend(waiting.into_iter().map(|waiting| unfollowed(waiting).unstarted(reason)));
    views.extend(left.into_iter().map(unfollowed));
    let proven = telemetry.proofs.last();
    views.into_iter().map(|view| view.with_invariants(&proven.report)).collect()
}
