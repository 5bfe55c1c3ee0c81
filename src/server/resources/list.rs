//! The list of a kind: a page from one snapshot, of all resources (D12) or of those that a filter selects (D66).
//!
//! A page joins the bytes of its resources ([`render`](mod@super::render)). Its ETag is a hash of theirs, so that a poller gets
//! its 304 before the page is joined.

use super::external_id::check_id;
use super::page_cache::PageKey;
use super::render::{self, render};
use crate::filter::{self, Filter};
use crate::model::Rendered;
use crate::server::handler_prelude::*;
use crate::server::http::page::{self, SelectedPage};
use crate::syntax::cel::CelMeter;

/// The steps of one request's filter: some ten times what an ordinary filter takes for 100,000 routes.
const STEPS: u64 = 100_000_000;
/// The time of one request's filter.
const LONGEST: Duration = Duration::from_secs(10);

/// The reader of a list.
pub(super) struct ListReader {
    /// The owner of the API key.
    pub(super) owner: Id,
    /// The secrets that the caller sees.
    pub(super) visibility: SecretVisibility,
}

/// Returns a page of the list. The query's names have been checked. `at` is the revision that the query asks for.
pub(super) async fn list(
    app: &AppState,
    ListReader { owner, visibility }: ListReader,
    snapshot: Arc<Snapshot>,
    at: Option<u64>,
    collection: Key,
    query: Option<&str>,
    headers: HeaderMap,
) -> ApiResult {
    let kind = collection.kind;
    if let Some(parent) = &collection.parent {
        check_id(&snapshot, kind.info().parent, parent)?;
    }
    let page = Page { at, ..Page::from_query(query)? };
    if let Some(parent) = collection.parent_key()
        && !parent.kind.info().implicit
        && snapshot.get(&parent).is_none()
    {
        return Err(ApiError::not_found(&parent.to_string()));
    }
    let given = filter::read_parameters(kind, query.unwrap_or_default());
    let listing = Listing { app: app.clone(), owner, visibility, snapshot, collection, page, headers };
    if given.is_empty() {
        return listing.whole().await;
    }
    // Compiling and evaluating a filter takes time.
    let place = app.admissions.searches.for_owner(&listing.owner)?;
    place.run(move |cancel| listing.filtered(&given, &cancel)).await
}

struct Listing {
    app: AppState,
    /// The owner of the API key.
    owner: Id,
    visibility: SecretVisibility,
    snapshot: Arc<Snapshot>,
    collection: Key,
    page: Page,
    headers: HeaderMap,
}

impl Listing {
    /// Responds with a page of all resources.
    async fn whole(self) -> ApiResult {
        // What a scope shows is kept for nobody else.
        let masked = match self.visibility {
            SecretVisibility::Nothing => Some(true),
            SecretVisibility::Everything => Some(false),
            SecretVisibility::OfSources(_) => None,
        };
        let (collection, page) = (&self.collection, &self.page);
        let revision = self.snapshot.revision;
        let key = masked.map(|masked| PageKey { revision, collection: collection.clone(), page: page.clone(), masked });
        if let Some(page) = key.as_ref().and_then(|key| self.app.caches.pages.get(key)) {
            return Ok(conditional::response(&self.headers, &page));
        }
        let selected = self.select(&[], |_| Ok(true))?;
        if !render::takes_long(&self.visibility, &self.snapshot, &selected.0) {
            return self.respond(selected, key);
        }
        let place = self.app.admissions.renderings.for_owner(&self.owner)?;
        place.render(move || self.respond(selected, key)).await
    }

    fn filtered(&self, given: &[(&'static str, String)], cancel: &Cancel) -> ApiResult {
        let filter = Filter::new(self.collection.kind, given).map_err(ApiError::from_faults)?;
        let started = Instant::now();
        let stop = || cancel.is_cancelled() || started.elapsed() > LONGEST;
        let meter = CelMeter::new(STEPS, &stop);
        let selected = self.select(given, |entry| {
            filter.selects(&self.snapshot, &self.app.served.base_urls, entry, &meter).map_err(ApiError::new)
        })?;
        self.respond(selected, None)
    }

    fn select(
        &self,
        given: &[(&str, String)],
        keep: impl FnMut(&Entry) -> Result<bool, ApiError>,
    ) -> Result<SelectedPage, ApiError> {
        let limit = self.collection.kind.is_paged().then_some(page::DEFAULT_LIMIT);
        let (uri, collection) = (&self.uri(), &self.collection);
        let list = PagedList { uri, collection, default_limit: limit, further: given };
        self.page.select(&self.snapshot, &list, keep)
    }

    /// The URI of the list.
    fn uri(&self) -> String {
        format!("{}{}", self.app.served.base_urls.base_url, self.collection.collection_path())
    }

    /// Responds with a page, and keeps it under a key.
    fn respond(&self, (entries, next): SelectedPage, key: Option<PageKey>) -> ApiResult {
        let items =
            entries.iter().map(|entry| render(&self.app.served.base_urls, &self.visibility, &self.snapshot, entry));
        let items = items.collect::<Result<Vec<Rendered>, ApiError>>()?;
        let uri = self.uri();
        let etag = etag(&items, self.visibility == SecretVisibility::Nothing, &uri, next.as_deref());
        if let Some(response) = conditional::not_modified(&self.headers, &etag) {
            return Ok(response);
        }
        let page = Rendered { body: self.join(&items, &uri, next.as_deref()).into(), etag };
        if let Some(key) = key {
            self.app.caches.pages.put(key, page.clone());
        }
        Ok(response::resource(StatusCode::OK, &page))
    }

    fn join(&self, items: &[Rendered], uri: &str, next: Option<&str>) -> Vec<u8> {
        let start = format!("{{\"{}\":[", self.collection.kind.info().list);
        let mut end = format!("],\"uri\":{}", json!(uri));
        if self.collection.kind.is_paged() {
            end += &format!(",\"next_page_uri\":{}", json!(next));
        }
        end.push('}');
        let size = items.iter().map(|item| item.body.len() + 1).sum::<usize>() + start.len() + end.len();
        let mut body = Vec::with_capacity(size);
        body.extend_from_slice(start.as_bytes());
        for (index, item) in items.iter().enumerate() {
            if index > 0 {
                body.push(b',');
            }
            body.extend_from_slice(&item.body);
        }
        body.extend_from_slice(end.as_bytes());
        body
    }
}

/// The strong ETag of a page, from the ETags of its items: they are known before the page is made, and a change of
/// other resources keeps it (D71). Pages with masked secrets have ETags of their own.
fn etag(items: &[Rendered], masked: bool, uri: &str, next: Option<&str>) -> Arc<str> {
    let mut hasher = blake3::Hasher::new();
    for part in [if masked { "masked" } else { "revealed" }, uri, next.unwrap_or_default()] {
        // Without the length, two parts could be divided in another way.
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part.as_bytes());
    }
    for item in items {
        hasher.update(item.etag.as_bytes());
    }
    let digest = hasher.finalize().to_hex();
    Arc::from(format!("\"{digest:.32}\""))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic)]
mod tests {
    use super::*;

    #[test]
    fn the_etag_of_a_page_depends_on_all_that_is_in_it() {
        let items = [response::rendered(b"{}".to_vec()), response::rendered(b"[]".to_vec())];
        let [one, two] = &items;
        let (uri, next) = ("https://a.example/edges/https", Some("https://a.example/edges/https?limit=1"));
        let tag = etag(&items, false, uri, next);
        assert_eq!(tag, etag(&items, false, uri, next));
        let others = [
            etag(&items, true, uri, next),
            etag(&items, false, "https://b.example/edges/https", next),
            etag(&items, false, uri, None),
            etag(&[two.clone(), one.clone()], false, uri, next),
            etag(std::slice::from_ref(one), false, uri, next),
        ];
        assert!(others.iter().all(|other| *other != tag), "{tag} {others:?}");
    }
}
