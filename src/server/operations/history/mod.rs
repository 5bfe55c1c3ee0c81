//! `/history`: who changed what, revision by revision and field by field (D77).

pub(crate) mod document;

use std::ops::ControlFlow;

use axum::{body::Body, http::Request as HttpRequest, response::Response};
use serde_json::json;

use crate::{
    model::{
        Kind,
        diagnostics::{
            code::Code,
            fault::{Fault, Path},
        },
        key::{Key, segment},
    },
    reconcile::run::cancel::Cancel,
    server::{
        auth::{caller::Caller, permission::Intent},
        http::{
            page::{self, DEFAULT_LIMIT, Page},
            query,
            response::{self, ApiError, json_response},
        },
        resources::at_revision,
        state::AppState,
    },
    store::{
        commit::header::CommitHeader,
        history::{
            commits::CommitPrefix,
            select::{HistoryFilter, HistorySearch, SearchEnd},
        },
    },
    syntax::text::printable,
};
use document::{HistoryEntry, HistoryItem, PATH, ResourceBlame};

/// How many records are found at once.
const RECORDS: usize = 50;
/// How many records are read for one page. A page of a filter that selects few can have fewer records than its limit.
const MOST_RECORDS: u64 = 20_000;
/// The parameter with a Git commit.
const COMMIT: &str = "commit";
/// The parameters that select records.
const FILTERS: [&str; 6] = ["resource", "actor", "source", "from", "to", COMMIT];

/// The attempts to change the store, newest first.
pub(crate) async fn list(app: AppState, request: HttpRequest<Body>) -> Result<Response, ApiError> {
    let caller = admit(&app, &request)?;
    let known: Vec<&str> = page::PARAMETERS.iter().chain(&FILTERS).copied().collect();
    query::check(request.uri().query(), &known)?;
    let page = Page::from_query(request.uri().query())?;
    let filter = filter_from(request.uri().query())?;
    let place = app.admissions.searches.of_owner(&caller.owner)?;
    place.run(move |cancel| listed(&app, &page, &filter, &cancel)).await
}

fn listed(app: &AppState, page: &Page, filter: &HistoryFilter, cancel: &Cancel) -> Result<Response, ApiError> {
    let limit = page.limit.unwrap_or(DEFAULT_LIMIT);
    let before = match &page.before_id {
        None => u64::MAX,
        Some(id) => {
            let position =
                at_revision::number(id).filter(|position| *position <= app.served.store.statistics().position);
            position.filter(|position| *position > 0).ok_or_else(Page::unknown)?
        }
    };
    let (base_url, state) = (&app.served.site.base_url, app.served.store.snapshot());
    let mut items: Vec<HistoryItem> = Vec::new();
    let search = HistorySearch { filter, before, batch: RECORDS, most: MOST_RECORDS };
    let end = app.served.store.search(&search, &|| cancel.is_cancelled(), &mut |record: CommitHeader| {
        if items.len() >= limit {
            return ControlFlow::Break(());
        }
        items.push(HistoryItem::of(&record, base_url, &state));
        ControlFlow::Continue(())
    })?;
    if cancel.is_cancelled() {
        return Err(ApiError::of(Code::Unavailable, "the request was cancelled"));
    }
    let last = match end {
        SearchEnd::Complete => None,
        SearchEnd::Stopped => items.last().map(|last| last.id.clone()),
        SearchEnd::Exhausted(position) => Some(position.to_string()),
    };
    let next = last.map(|last| format!("{base_url}{PATH}?limit={limit}&before_id={last}{}", parameters_of(filter)));
    let body = json!({"history": items, "uri": format!("{base_url}{PATH}"), "next_page_uri": next});
    Ok(json_response(axum::http::StatusCode::OK, &body)?)
}

/// Returns one revision.
pub(crate) async fn get(app: AppState, id: String, request: HttpRequest<Body>) -> Result<Response, ApiError> {
    let caller = admit(&app, &request)?;
    query::check(request.uri().query(), &[])?;
    let place = app.admissions.searches.of_owner(&caller.owner)?;
    place
        .run(move |_| {
            let state = app.served.store.snapshot();
            let current = state.revision;
            let unknown = || {
                let message = format!("revision {} does not exist; the store is at revision {current}", printable(&id));
                ApiError::of(Code::RevisionNotFound, message)
            };
            let revision = at_revision::number(&id).filter(|revision| *revision > 0).ok_or_else(unknown)?;
            let Some(found) = app.served.store.details(revision)? else {
                if revision > current {
                    return Err(unknown());
                }
                let oldest = app.served.store.oldest_revision()?;
                let message = format!("revision {revision} is no longer in the history; the oldest one is {oldest}");
                return Err(ApiError::of(Code::RevisionGone, message));
            };
            let rendered = response::rendered(HistoryEntry::body_of(
                &found,
                &app.served.site.base_url,
                &app.served.store,
                &state,
            )?);
            Ok(response::conditional(request.headers(), &rendered))
        })
        .await
}

/// Returns who set each field of a resource.
pub(crate) async fn blame(app: AppState, request: HttpRequest<Body>) -> Result<Response, ApiError> {
    let caller = admit(&app, &request)?;
    query::check(request.uri().query(), &["resource"])?;
    let Some(path) = parameter(request.uri().query(), "resource") else {
        return Err(ApiError::new(query::at("resource", "`resource` is required".into())));
    };
    let place = app.admissions.searches.of_owner(&caller.owner)?;
    place
        .run(move |_| {
            let snapshot = app.served.store.snapshot();
            let kinds = Kind::all().map(|info| info.kind).filter(|kind| *kind != Kind::Owner);
            let keys = kinds.filter_map(|kind| Key::at_path(kind, &path));
            let found = keys.filter_map(|key| snapshot.get(&key)).find(|entry| entry.key.path() == path);
            let missing = || {
                let fault = Fault::new(Code::NotFound, "no resource has this path");
                ApiError::new(fault.at(Path::root().join("resource")))
            };
            let key = found.map(|entry| entry.key.clone()).ok_or_else(missing)?;
            let blame = app.served.store.blame(&key)?.ok_or_else(missing)?;
            Ok(json_response(axum::http::StatusCode::OK, &ResourceBlame::of(&key, blame, &snapshot))?)
        })
        .await
}

fn admit(app: &AppState, request: &HttpRequest<Body>) -> Result<Caller, ApiError> {
    app.access.admit(&app.served.store.snapshot(), &Intent::Read, request.headers())
}

fn parameter(query: Option<&str>, name: &str) -> Option<String> {
    let mut pairs = form_urlencoded::parse(query.unwrap_or_default().as_bytes());
    pairs.find(|(known, _)| known == name).map(|(_, value)| value.into_owned())
}

/// Reads the filter of a list.
fn filter_from(query: Option<&str>) -> Result<HistoryFilter, ApiError> {
    let revision = |name: &str| match parameter(query, name) {
        None => Ok(None),
        Some(value) => match at_revision::number(&value) {
            Some(revision) => Ok(Some(revision)),
            None => Err(ApiError::new(query::at(name, format!("`{name}` must be the number of a revision")))),
        },
    };
    let named = |name: &str| match parameter(query, name) {
        Some(value) if value.is_empty() => {
            Err(ApiError::new(query::at(name, format!("`{name}` is empty; leave it out or give it a value"))))
        }
        value => Ok(value),
    };
    let commit = match parameter(query, COMMIT) {
        None => None,
        Some(value) => Some(CommitPrefix::parse(&value).ok_or_else(|| {
            let message = format!("`{COMMIT}` must have 7 to 64 hexadecimal digits (found `{}`)", printable(&value));
            ApiError::new(query::at(COMMIT, message))
        })?),
    };
    Ok(HistoryFilter {
        resource: named("resource")?,
        actor: named("actor")?,
        source: parameter(query, "source"),
        from: revision("from")?,
        to: revision("to")?,
        commit,
    })
}

/// The parameters of a filter, for the next page and for clients.
pub(crate) fn parameters_of(filter: &HistoryFilter) -> String {
    let HistoryFilter { resource, actor, source, from, to, commit } = filter;
    let number = |value: &Option<u64>| value.map(|value| value.to_string());
    let commit = commit.as_ref().map(CommitPrefix::to_string);
    let values = [resource.clone(), actor.clone(), source.clone(), number(from), number(to), commit];
    let given = FILTERS.into_iter().zip(values).filter_map(|(name, value)| Some((name, value?)));
    given.map(|(name, value)| format!("&{name}={}", segment(&value))).collect()
}
