//! The reconciliations of the history: GET `/reconciliations` and `/reconciliations/{id}`.

use axum::extract::Path;

use super::wire::{self, PATH, Reconciliation, ReconciliationItem};
use crate::{server::handler_prelude::*, store::engine::Query};

pub(in crate::server::operations) static LIST: ApiOperation = ApiOperation::get(PATH, Intent::Read, |method| on(method, list))
    .paged("reconciliation", "reconciliations")
    .named("Reconciliations", "listReconciliations", "List reconciliations")
    .described("Returns the revisions that sources created, newest first, one page at a time. `next_page_uri` is the URI of the next page.")
    .documented("400 401 429 500 503", |operation, schemas| {
        operation.ok(schemas.page_of::<ReconciliationItem>("Reconciliation", "reconciliations"))
    });

pub(in crate::server::operations) static GET: ApiOperation =
    ApiOperation::get("/reconciliations/{id}", Intent::Read, |method| on(method, get))
        .named("Reconciliations", "getReconciliation", "Get a reconciliation")
        .described("Returns the reconciliation with its calls, or 304 if the client's copy is current.")
        .documented("400 401 404 429 500 503", |operation, schemas| {
            operation.ok(schemas.response::<Reconciliation>()).conditional()
        });

/// The reconciliations of every source, newest first.
async fn list(search: SearchRequest, RawQuery(query): RawQuery) -> ApiResult {
    let page = Page::from_query(query.as_deref())?;
    let limit = page.limit.unwrap_or(DEFAULT_LIMIT);
    let listed = move |served: &ServedStore, _: &Cancel| {
        let before = match &page.before_id {
            None => u64::MAX,
            Some(id) => position(&served.store, id)?.ok_or_else(Page::unknown)?,
        };
        let base_url = &served.base_urls.base_url;
        let mut records = served.store.headers(&Query::Reconciliations, before, limit + 1)?;
        let more = records.len() > limit;
        records.truncate(limit);
        let found = records.into_iter().filter_map(|record| ReconciliationItem::from_header(record, base_url));
        let items: Vec<ReconciliationItem> = found.collect();
        let next = items.last().filter(|_| more);
        let next = next.map(|last| format!("{base_url}{PATH}?limit={limit}&before_id={}", last.id));
        let uri = format!("{base_url}{PATH}");
        let body = json!({"reconciliations": items, "uri": uri, "next_page_uri": next});
        json_response(StatusCode::OK, &body)
    };
    search.run(listed).await
}

/// Returns one reconciliation.
async fn get(search: SearchRequest, Path(id): Path<String>, headers: HeaderMap) -> ApiResult {
    let got = move |served: &ServedStore, _: &Cancel| {
        let missing = || ApiError::not_found(&format!("reconciliation {id}"));
        let revision = wire::revision_of(&id).ok_or_else(missing)?;
        let found = find(served, revision)?.ok_or_else(missing)?;
        conditional::json_response(&headers, &found)
    };
    search.run(got).await
}

/// Returns the reconciliation that made a revision, if one did.
pub(super) fn find(served: &ServedStore, revision: u64) -> Result<Option<Reconciliation>, StoreError> {
    let Some(found) = served.store.details(revision)? else { return Ok(None) };
    let calls = found.calls()?;
    Ok(ReconciliationItem::from_header(found.header, &served.base_urls.base_url)
        .map(|head| Reconciliation { head, calls }))
}

/// The position of a reconciliation's record in the history.
fn position(store: &Store, id: &str) -> Result<Option<u64>, ApiError> {
    let Some(revision) = wire::revision_of(id) else { return Ok(None) };
    let record = store.headers(&Query::Revision(revision), u64::MAX, 1)?.pop();
    Ok(record.filter(|record| matches!(record.author, Author::Source { .. })).map(|record| record.position))
}
