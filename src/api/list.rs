//! The list of a kind: a page from one snapshot, of all resources (D12) or of those that a filter selects (D66).

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use axum::{
    body::Body,
    http::{HeaderValue, header},
    response::{IntoResponse, Response},
};
use serde_json::json;

use super::{
    App,
    answer::ApiError,
    handle::{check_id, not_found, render},
    page::{self, Page},
};
use crate::{
    cel::CelMeter,
    filter::{self, Filter},
    model::{
        Kind,
        key::Key,
        kind::owner::Role,
        snapshot::{Entry, Snapshot},
    },
    reconcile::cancel::Cancel,
};

/// The steps of one request's filter: some ten times what an ordinary filter takes for 100,000 routes.
const STEPS: u64 = 100_000_000;
/// The time of one request's filter.
const LONGEST: Duration = Duration::from_secs(10);

/// The query parameters of a kind's list.
pub(super) fn parameters(kind: Kind) -> Vec<&'static str> {
    page::PARAMETERS.iter().copied().chain(filter::parameters(kind).map(|parameter| parameter.name)).collect()
}

/// Returns a page of the list. The query's names have been checked.
pub(super) async fn list(
    app: &Arc<App>,
    role: Role,
    snapshot: Arc<Snapshot>,
    collection: Key,
    query: Option<&str>,
) -> Result<Response, ApiError> {
    let kind = collection.kind;
    if let Some(parent) = &collection.parent {
        check_id(kind.info().parent, parent)?;
    }
    let page = Page::from_query(query)?;
    if let Some(parent) = collection.parent_key()
        && !parent.kind.info().implicit
        && snapshot.get(&parent).is_none()
    {
        return Err(not_found(&parent.to_string()));
    }
    let app = Arc::clone(app);
    let given = filter::given(kind, query.unwrap_or_default());
    let listing = Listing { app, role, snapshot, collection, page };
    if given.is_empty() {
        return listing.respond(&[], |_| Ok(true));
    }
    // Compiling and evaluating a filter takes time.
    let place = listing.app.searches.place()?;
    place.run(move |cancel| listing.filtered(&given, &cancel)).await
}

struct Listing {
    app: Arc<App>,
    role: Role,
    snapshot: Arc<Snapshot>,
    collection: Key,
    page: Page,
}

impl Listing {
    fn filtered(&self, given: &[(&'static str, String)], cancel: &Cancel) -> Result<Response, ApiError> {
        let filter = Filter::new(self.collection.kind, given).map_err(ApiError::from_faults)?;
        let started = Instant::now();
        let stop = || cancel.is_cancelled() || started.elapsed() > LONGEST;
        let meter = CelMeter::new(STEPS, &stop);
        self.respond(given, |entry| {
            filter.selects(&self.snapshot, &self.app.site, entry, &meter).map_err(ApiError::new)
        })
    }

    fn respond(
        &self,
        given: &[(&str, String)],
        keep: impl FnMut(&Entry) -> Result<bool, ApiError>,
    ) -> Result<Response, ApiError> {
        let kind = self.collection.kind;
        // The specification has no pagination for sources, so they are on one page.
        let paged = kind != Kind::EventSource;
        let (site, limit) = (&self.app.site, paged.then_some(page::DEFAULT_LIMIT));
        let (entries, next) = self.page.select(&self.snapshot, site, &self.collection, limit, given, keep)?;
        let mut body = format!("{{\"{}\":[", kind.info().list).into_bytes();
        for (index, entry) in entries.into_iter().enumerate() {
            if index > 0 {
                body.push(b',');
            }
            body.extend_from_slice(&render(&self.app, self.role, &self.snapshot, entry)?.body);
        }
        let uri = format!("{}{}", site.base_url, self.collection.collection_path());
        body.extend(format!("],\"uri\":{}", json!(uri)).into_bytes());
        if paged {
            body.extend(format!(",\"next_page_uri\":{}", json!(next)).into_bytes());
        }
        body.push(b'}');
        let mut response = Body::from(body).into_response();
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        Ok(response)
    }
}
