//! `/history`: who changed what, revision by revision and field by field (D77).
//!
//! Three reads: the list of attempts, one revision with its changes, and who set each field of a resource. A page of
//! the list reads a bounded number of records, whatever the history has, and says where the next page goes on.
//! `document` has the bodies, which the command line reads too.

pub(crate) mod document;

use std::ops::ControlFlow;

use axum::extract::Path;

use crate::model::key::segment;
use crate::server::handler_prelude::*;
use crate::server::resources::at_revision;
use crate::store::history::select::{HistorySearch, SearchEnd};
use crate::store::{CommitHeader, CommitPrefix, HistoryFilter};
use document::{HistoryEntry, HistoryItem, PATH, ResourceBlame};

/// How many records are found at once.
const RECORDS: usize = 50;
/// How many records are read for one page. A page of a filter that selects few can have fewer records than its limit.
const MOST_RECORDS: u64 = 20_000;
/// The parameter with a Git commit.
const COMMIT: &str = "commit";
/// The parameters that select records.
static FILTERS: [QueryParameter; 6] = [
    QueryParameter("resource", || {
        let description = "Only attempts that changed the resource with this path, such as `/edges/https/edghts_…`.";
        json!({"description": description, "schema": {"type": "string", "minLength": 1}})
    }),
    QueryParameter("actor", || {
        let description =
            "Only attempts of this API key, owner or commit author (email address), or `local` for the command line.";
        json!({"description": description, "schema": {"type": "string", "minLength": 1}})
    }),
    QueryParameter("source", || {
        let description = "Only attempts of this source; empty for those of no source.";
        json!({"description": description, "schema": {"type": "string"}})
    }),
    QueryParameter("from", || {
        let description = "Only this revision and later ones.";
        json!({"description": description, "schema": {"type": "integer", "minimum": 0, "maximum": u64::MAX}})
    }),
    QueryParameter("to", || {
        let description = "Only this revision and earlier ones.";
        json!({"description": description, "schema": {"type": "integer", "minimum": 0, "maximum": u64::MAX}})
    }),
    QueryParameter(COMMIT, || {
        let description = "Only attempts to apply the manifests of this Git commit: at least 7 digits of its ID.";
        json!({"description": description, "schema": {"type": "string", "pattern": "^[0-9A-Fa-f]{7,64}$"}})
    }),
];

pub(super) static LIST: ApiOperation = ApiOperation::get(PATH, Intent::Read, |method| on(method, list))
    .paged("record", "records")
    .query(&FILTERS)
    .named("History", "listHistory", "List the history")
    .described("Returns the attempts to change the store, including refused ones, newest first, one page at a time. `next_page_uri` is the URI of the next page. With a filter that selects few records, a page can be shorter than its limit.")
    .documented("400 401 429 500 503", |operation, schemas| {
        operation.ok(schemas.page_of::<HistoryItem>("History", "history"))
    });

pub(super) static GET: ApiOperation = ApiOperation::get("/history/{revision}", Intent::Read, |method| on(method, get))
    .named("History", "getRevision", "Get a revision")
    .described("Returns who made the revision, from which commit, and every resource before and after it, with secrets hidden.")
    .documented("400 401 404 410 429 500 503", |operation, schemas| operation.ok(schemas.response::<HistoryEntry>()));

pub(super) static BLAME: ApiOperation = ApiOperation::get("/history/blame", Intent::Read, |method| on(method, blame))
    .query(&[QueryParameter("resource", || {
        json!({
            "required": true,
            "description": "The path of the resource, such as `/edges/https/edghts_…`.",
            "schema": {"type": "string", "minLength": 1},
        })
    })])
    .named("History", "getBlame", "Get who set each field")
    .described("Returns for each field of a resource the revision, time and author that set its current value.")
    .documented("400 401 404 429 500 503", |operation, schemas| operation.ok(schemas.response::<ResourceBlame>()));

/// The attempts to change the store, newest first.
async fn list(search: SearchRequest, RawQuery(query): RawQuery) -> ApiResult {
    let page = Page::from_query(query.as_deref())?;
    let filter = filter_from(query.as_deref())?;
    search.run(move |served, cancel| listed(served, &page, &filter, cancel)).await
}

fn listed(served: &ServedStore, page: &Page, filter: &HistoryFilter, cancel: &Cancel) -> ApiResult {
    let limit = page.limit.unwrap_or(DEFAULT_LIMIT);
    let before = match &page.before_id {
        None => u64::MAX,
        Some(id) => {
            let position = at_revision::number(id).filter(|position| *position <= served.store.position());
            position.filter(|position| *position > 0).ok_or_else(Page::unknown)?
        }
    };
    let (base_url, state) = (&served.base_urls.base_url, served.store.snapshot());
    let mut items: Vec<HistoryItem> = Vec::new();
    let search = HistorySearch { filter, before, batch: RECORDS, most: MOST_RECORDS };
    let end = served.store.search(&search, &|| cancel.is_cancelled(), &mut |record: CommitHeader| {
        if items.len() >= limit {
            return ControlFlow::Break(());
        }
        items.push(HistoryItem::from_header(&record, base_url, &state));
        ControlFlow::Continue(())
    })?;
    if cancel.is_cancelled() {
        return Err(ApiError::with_code(Code::Unavailable, "the request was cancelled"));
    }
    let last = match end {
        SearchEnd::Complete => None,
        SearchEnd::Stopped => items.last().map(|last| last.id.clone()),
        SearchEnd::Exhausted(position) => Some(position.to_string()),
    };
    let next = last.map(|last| format!("{base_url}{PATH}?limit={limit}&before_id={last}{}", parameters_of(filter)));
    let body = json!({"history": items, "uri": format!("{base_url}{PATH}"), "next_page_uri": next});
    json_response(StatusCode::OK, &body)
}

/// Returns one revision.
async fn get(search: SearchRequest, Path(id): Path<String>, headers: HeaderMap) -> ApiResult {
    let run = move |served: &ServedStore, _: &Cancel| {
        let state = served.store.snapshot();
        let current = state.revision;
        let unknown = || {
            let message = format!("revision {} does not exist; the store is at revision {current}", printable(&id));
            ApiError::with_code(Code::RevisionNotFound, message)
        };
        let revision = at_revision::number(&id).filter(|revision| *revision > 0).ok_or_else(unknown)?;
        let Some(found) = served.store.details(revision)? else {
            if revision > current {
                return Err(unknown());
            }
            let oldest = served.store.oldest_revision()?;
            let message = format!("revision {revision} is no longer in the history; the oldest one is {oldest}");
            return Err(ApiError::with_code(Code::RevisionGone, message));
        };
        let rendered =
            response::rendered(HistoryEntry::body_of(&found, &served.base_urls.base_url, &served.store, &state)?);
        Ok(conditional::response(&headers, &rendered))
    };
    search.run(run).await
}

/// Returns who set each field of a resource.
async fn blame(search: SearchRequest, RawQuery(query): RawQuery) -> ApiResult {
    let Some(path) = query::value(query.as_deref(), "resource") else {
        return Err(ApiError::new(query::at("resource", "`resource` is required".into())));
    };
    let run = move |served: &ServedStore, _: &Cancel| {
        let snapshot = served.store.snapshot();
        let kinds = Kind::all().map(|info| info.kind).filter(|kind| *kind != Kind::Owner);
        let keys = kinds.filter_map(|kind| Key::at_path(kind, &path));
        let found = keys.filter_map(|key| snapshot.get(&key)).find(|entry| entry.key.path() == path);
        let missing = || ApiError::new(Fault::new(Code::NotFound, "no resource has this path").at("resource"));
        let key = found.map(|entry| entry.key.clone()).ok_or_else(missing)?;
        let blame = served.store.blame(&key)?.ok_or_else(missing)?;
        json_response(StatusCode::OK, &ResourceBlame::new(&key, blame, &snapshot))
    };
    search.run(run).await
}

/// Reads the filter of a list.
fn filter_from(query: Option<&str>) -> Result<HistoryFilter, ApiError> {
    let revision = |name: &str| {
        query::parsed(query, name, at_revision::number, |_| format!("`{name}` must be the number of a revision"))
    };
    let named = |name: &str| {
        let text = |value: &str| (!value.is_empty()).then(|| value.to_owned());
        query::parsed(query, name, text, |_| format!("`{name}` is empty; omit it or set a value"))
    };
    let commit = query::parsed(query, COMMIT, CommitPrefix::parse, |value| {
        format!("`{COMMIT}` must have 7 to 64 hexadecimal digits (found `{}`)", printable(value))
    })?;
    Ok(HistoryFilter {
        resource: named("resource")?,
        actor: named("actor")?,
        source: query::value(query, "source"),
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
    let given = FILTERS.iter().zip(values).filter_map(|(QueryParameter(name, _), value)| Some((*name, value?)));
    given.map(|(name, value)| format!("&{name}={}", segment(&value))).collect()
}
