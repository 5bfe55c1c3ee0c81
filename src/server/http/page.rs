//! Lists: newest first, in pages, each from one snapshot (D12).

use serde_json::json;

use super::{api_error::ApiError, query};
use crate::model::Entry;
use crate::model::key::segment;
use crate::server::prelude::*;

/// The query parameter with the revision of a read (D79).
pub(crate) const AT: &str = "at";
/// The default page size.
pub(crate) const DEFAULT_LIMIT: usize = 100;
/// The largest page size.
const MOST_LIMIT: usize = 1000;

/// The query parameters of a list in pages, which `next_page_uri` contains, and what the OpenAPI document says about them.
/// `items` are what the pages have, in the singular and plural.
pub(crate) fn parameters([item, items]: [&str; 2]) -> [(&'static str, Value); 2] {
    let limit = json!({
        "description": format!("The number of {items} per page."),
        "schema": {"type": "integer", "minimum": 1, "maximum": MOST_LIMIT},
        "x-extension": true,
    });
    let before_id = json!({
        "description": format!("Continues after this {item}."),
        "schema": {"type": "string"},
        "x-extension": true,
    });
    [("limit", limit), ("before_id", before_id)]
}

/// The resources of a page, and the URI of the next one.
pub(crate) type SelectedPage = (Vec<Arc<Entry>>, Option<String>);

/// The requested page.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Page {
    pub limit: Option<usize>,
    pub before_id: Option<String>,
    /// The revision of all pages, if the client asked for one.
    pub at: Option<u64>,
}

/// A list that is read in pages.
pub(crate) struct PagedList<'a> {
    pub uri: &'a str,
    pub collection: &'a Key,
    /// The page size for a request without `limit`; none for everything.
    pub default_limit: Option<usize>,
    /// The other parameters of the list, which the next page has too.
    pub further: &'a [(&'a str, String)],
}

impl Page {
    /// Reads the query of a list, whose parameters have been [checked](query::check).
    pub(crate) fn from_query(query: Option<&str>) -> Result<Self, ApiError> {
        let limit = |value: &str| value.parse::<usize>().ok().filter(|limit| (1..=MOST_LIMIT).contains(limit));
        let message = |_: &str| format!("`limit` must be a whole number from 1 to {MOST_LIMIT}");
        let limit = query::parsed(query, "limit", limit, message)?;
        Ok(Page { limit, before_id: query::value(query, "before_id"), at: None })
    }

    /// The resources of the page, which are those that `keep` selects, and the URI of the next page.
    pub(crate) fn select(
        &self,
        snapshot: &Snapshot,
        list: &PagedList<'_>,
        mut keep: impl FnMut(&Entry) -> Result<bool, ApiError>,
    ) -> Result<SelectedPage, ApiError> {
        let PagedList { uri, collection, default_limit, further } = *list;
        let before = self.before(snapshot, collection)?;
        let limit = self.limit.or(default_limit).unwrap_or(usize::MAX);
        let mut entries: Vec<Arc<Entry>> = Vec::new();
        let mut more = false;
        for entry in snapshot.newest_first(collection.kind, collection.parent.as_ref(), before) {
            if !keep(entry)? {
                continue;
            }
            // Only a resource that is selected makes a next page: the last page must be known to be the last.
            if entries.len() >= limit {
                more = true;
                break;
            }
            entries.push(Arc::clone(entry));
        }
        let next = entries.last().filter(|_| more).map(|last| {
            let id = form_urlencoded::byte_serialize(last.key.id.as_str().as_bytes()).collect::<String>();
            let mut uri = format!("{uri}?limit={limit}&before_id={id}");
            if let Some(revision) = self.at {
                uri += &format!("&{AT}={revision}");
            }
            for (name, value) in further {
                uri += &format!("&{name}={}", segment(value));
            }
            uri
        });
        Ok((entries, next))
    }

    fn before(&self, snapshot: &Snapshot, collection: &Key) -> Result<u64, ApiError> {
        let Some(id) = &self.before_id else { return Ok(u64::MAX) };
        let key = Key { id: Id::new(id), ..collection.clone() };
        snapshot.order_of(&key).ok_or_else(Self::unknown)
    }

    /// The error for a `before_id` that was never in the list (D12).
    pub(crate) fn unknown() -> ApiError {
        let message = "`before_id` is not in this list";
        ApiError::new(query::at("before_id", message.into()))
    }
}
