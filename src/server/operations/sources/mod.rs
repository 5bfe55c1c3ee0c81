//! `/sources`: the sources that the server follows, their status (D83), and their suspension (D84).

pub(crate) mod client_revisions;
pub(crate) mod destroy;
pub(crate) mod document;
pub(crate) mod view;

use std::{collections::HashMap, sync::Arc};

use axum::{
    body::Body,
    http::{Request, StatusCode},
    response::Response,
};
use jiff::Timestamp;

use crate::{
    manifest::tree::whole_commit,
    model::{
        decode::decode,
        diagnostics::{
            code::Code,
            fault::{Fault, Path},
        },
        json,
        secrets::secret::Secrets,
    },
    reconcile::{
        sources::handle::SourceHandle,
        sync_loop::{status::SourceStatus, suspension::Suspension},
    },
    server::{
        auth::{caller::Caller, permission::Intent},
        http::{
            body::{self, Limits},
            query,
            response::{self, ApiError},
        },
        state::AppState,
    },
    store::StoreError,
    syntax::text::printable,
};
use view::{SourceList, SourceResume, SourceSuspend, SourceView, SuspensionView};

/// The most sources that nobody follows and that are listed: clients choose their names.
pub(crate) const MOST_UNFOLLOWED: usize = 100;

/// Lists the sources in the order of the configuration, and then those that own resources and that nobody follows.
pub(crate) async fn list(app: AppState, request: Request<Body>) -> Result<Response, ApiError> {
    admit(&app, &request, &Intent::Read)?;
    blocking(app, move |app| {
        let list = SourceList { sources: views(app, None), uri: format!("{}/sources", app.served.site.base_url) };
        let rendered = response::rendered(json::bytes(&list, Secrets::Masked)?);
        Ok(response::conditional(request.headers(), &rendered))
    })
    .await
}

/// Returns the status of a source, followed or not.
pub(crate) async fn get(app: AppState, name: String, request: Request<Body>) -> Result<Response, ApiError> {
    admit(&app, &request, &Intent::Read)?;
    blocking(app, move |app| {
        let found =
            views(app, Some(&name)).into_iter().find(|source| source.name == name).ok_or_else(|| unknown(&name))?;
        let rendered = response::rendered(json::bytes(&found, Secrets::Masked)?);
        Ok(response::conditional(request.headers(), &rendered))
    })
    .await
}

/// Suspends a source: it is looked at and not applied until it is resumed or the suspension ends.
pub(crate) async fn suspend(app: AppState, name: String, request: Request<Body>) -> Result<Response, ApiError> {
    admit(&app, &request, &Intent::Apply(&name))?;
    if !app.sources.following.iter().any(|following| following.source == name) {
        return Err(unknown(&name));
    }
    let (parts, body) = request.into_parts();
    let (content, mut faults, _) = body::read(&parts.headers, body, Limits::RESOURCE).await?;
    // The key may have been revoked meanwhile.
    let caller = app.access.admit_again(&app.served.store.snapshot(), &Intent::Apply(&name), &parts.headers)?;
    if content.root().is_null() {
        return Err(ApiError::of(Code::Syntax, "the request body must be a JSON object"));
    }
    let (wanted, found) = decode::<SourceSuspend>(content.root(), None);
    faults.extend(found);
    let wanted = match wanted {
        Some(wanted) if faults.is_empty() => wanted,
        _ => return Err(ApiError::from_faults(faults)),
    };
    let until = match wanted.until.trim() {
        "" => None,
        text => Some(text.parse::<Timestamp>().map_err(|_| {
            let fault = Fault::new(Code::InvalidFormat, "`until` must be a time such as 2027-01-31T18:00:00Z");
            ApiError::new(fault.at(Path::root().join("until")))
        })?),
    };
    let suspension = Suspension::new(wanted.reason, caller.owner.as_str(), until).map_err(ApiError::new)?;
    let author = caller.author();
    change(app, name, move |following| following.set_suspension(Some(suspension), author)).await
}

/// Ends the suspension of a source, and accepts a commit that the source refuses because it was rewound.
pub(crate) async fn resume(app: AppState, name: String, request: Request<Body>) -> Result<Response, ApiError> {
    admit(&app, &request, &Intent::Apply(&name))?;
    let following =
        app.sources.following.iter().find(|following| following.source == name).ok_or_else(|| unknown(&name))?;
    let (parts, body) = request.into_parts();
    let (content, mut faults, _) = body::read(&parts.headers, body, Limits::RESOURCE).await?;
    // The key may have been revoked meanwhile.
    let caller = app.access.admit_again(&app.served.store.snapshot(), &Intent::Apply(&name), &parts.headers)?;
    let (wanted, found) = match content.root().is_null() {
        true => (Some(SourceResume::default()), Vec::new()),
        false => decode::<SourceResume>(content.root(), None),
    };
    faults.extend(found);
    let accepted = match wanted {
        Some(SourceResume { accept_commit }) if faults.is_empty() => accept_commit,
        _ => return Err(ApiError::from_faults(faults)),
    };
    let field = || Path::root().join("accept_commit");
    let accepted = accepted.map(|commit| whole_commit(&commit)).transpose();
    let accepted = accepted.map_err(|_| {
        let message = "`accept_commit` must be a commit ID of 40 hexadecimal digits";
        ApiError::new(Fault::new(Code::InvalidFormat, message).at(field()))
    })?;
    if accepted.is_some() && !following.is_in_repository() {
        let fault = Fault::new(Code::NotAllowed, "the manifests of the source are not in a Git repository");
        return Err(ApiError::new(fault.at(field())));
    }
    if following.is_suspended_by_configuration() {
        let fault = Fault::new(Code::Conflict, "the configuration file of the server suspends the source");
        return Err(ApiError::new(fault.help("remove `suspend` from the source in the file")));
    }
    let author = caller.author();
    change(app, name, move |following| {
        if let Some(commit) = accepted {
            following.accept_commit(&commit, author.clone())?;
        }
        following.set_suspension(None, author)
    })
    .await
}

/// Suspends or resumes a source, and responds with its status. Once it is suspended, a current run does not apply its plan
/// any more.
async fn change(
    app: AppState,
    name: String,
    change: impl FnOnce(&SourceHandle) -> Result<Option<Suspension>, StoreError> + Send + 'static,
) -> Result<Response, ApiError> {
    blocking(app, move |app| {
        let following = app.sources.following.iter().find(|it| it.source == name).ok_or_else(|| unknown(&name))?;
        let before = change(&following)?;
        let mut found =
            views(app, Some(&name)).into_iter().find(|source| source.name == name).ok_or_else(|| unknown(&name))?;
        found.replaced_suspension = before.map(SuspensionView::of);
        let rendered = response::rendered(json::bytes(&found, Secrets::Masked)?);
        Ok(response::resource(StatusCode::OK, &rendered))
    })
    .await
}

fn admit(app: &AppState, request: &Request<Body>, intent: &Intent<'_>) -> Result<Caller, ApiError> {
    let caller = app.access.admit(&app.served.store.snapshot(), intent, request.headers())?;
    query::check(request.uri().query(), &[])?;
    Ok(caller)
}

fn unknown(name: &str) -> ApiError {
    let fault = Fault::new(Code::NotFound, format!("this server follows no source `{}`", printable(name)));
    ApiError::new(fault.help("list the sources with `edgewright status` or GET `/sources`"))
}

/// Counts the resources on a blocking thread, which takes long in a large store.
async fn blocking(
    app: AppState,
    respond: impl FnOnce(&AppState) -> Result<Response, ApiError> + Send + 'static,
) -> Result<Response, ApiError> {
    let answer = tokio::task::spawn_blocking(move || respond(&app)).await;
    answer.map_err(|_| ApiError::internal())?
}

/// The status of each followed source, and of those that only own resources: of one of them, or of the first ones.
fn views(app: &AppState, only: Option<&str>) -> Vec<SourceView> {
    let snapshot = app.served.store.snapshot();
    let mut owned: HashMap<&str, usize> = HashMap::new();
    for claim in snapshot.iter().filter_map(|entry| entry.claim.as_deref()) {
        *owned.entry(claim.source.as_str()).or_default() += 1;
    }
    let followed = app.sources.following.now();
    let all: Vec<(&str, SourceStatus)> =
        followed.iter().map(|following| (following.source.as_str(), following.status.current())).collect();
    let view = |following: &Arc<SourceHandle>| {
        let count = owned.get(following.source.as_str()).copied().unwrap_or_default();
        SourceView::of(following, &all, count, &app.served.site.base_url)
    };
    let mut views: Vec<SourceView> = followed.iter().map(view).collect();
    for following in followed.iter() {
        owned.remove(following.source.as_str());
    }
    owned.retain(|source, _| only.is_none_or(|only| only == *source));
    let mut left: Vec<(&str, usize)> = owned.into_iter().collect();
    left.sort_unstable();
    left.truncate(MOST_UNFOLLOWED);
    let names: Vec<&str> = left.iter().map(|(source, _)| *source).collect();
    let applied = app.sources.client_revisions.of(&app.served.store, &snapshot, &names);
    views.extend(left.into_iter().map(|(source, owned)| {
        let (last, sent) = (applied.get(source), app.sources.syncs.of(source));
        SourceView::unfollowed(source, owned, &snapshot, last, sent, &app.served.site.base_url)
    }));
    views
}
