//! GET `/resources`: the names that resources have in the manifests, of one collection (D86).
//!
//! The response of a resource has no name, because names are the manifests' own. Clients that show a list with names, such as
//! `edgewright get`, ask for those of the whole collection at once.

use crate::{model::key::segment, server::handler_prelude::*};

/// The path of the names.
pub(crate) const PATH: &str = "/resources";
/// The parameter of the names with the path of a collection.
pub(crate) const COLLECTION: &str = "collection";

/// Returns the regular expression of the paths of all lists of resources.
fn collection_pattern() -> String {
    let patterns: Vec<String> = collections().map(|kind| kind.facts().collection_in(r"[^/\s]+")).collect();
    format!("^({})$", patterns.join("|"))
}

/// Returns the kinds of which clients list names.
fn collections() -> impl Iterator<Item = Kind> {
    Kind::all().map(|info| info.kind).filter(|kind| *kind != Kind::Owner)
}

pub(super) static LIST: ApiOperation = ApiOperation::get(PATH, Intent::Read, |method| on(method, list))
    .paged("resource", "resources")
    .query(&[QueryParameter(COLLECTION, || {
        json!({
            "required": true,
            "description": "The path of a list of resources, such as `/edges/https` or `/edges/https/edghts_…/routes`.",
            "schema": {"type": "string", "pattern": collection_pattern()},
        })
    })])
    .named("Origin", "listResourceNames", "List the names of resources")
    .described("Returns the sources of the resources in a collection, and their names in the manifests, newest first.")
    .documented("400 401 429 500 503", |operation, schemas| {
        operation.ok(schemas.page_of::<ResourceName>("ResourceName", "resources")).conditional()
    });

/// The name of a resource in the manifests.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct ResourceName {
    /// The identifier, which is unique in the collection.
    pub id: String,
    /// The source that owns the resource, or empty.
    pub source: String,
    /// The name in the manifests, or empty.
    pub name: String,
}

impl ResourceName {
    fn new(entry: &Entry) -> Self {
        let (source, name) = entry.claim.as_deref().map(|it| (it.source.clone(), it.name.clone())).unwrap_or_default();
        Self { id: entry.key.id.to_string(), source, name }
    }
}

/// Lists the names of the resources in a collection.
async fn list(search: SearchRequest, RawQuery(query): RawQuery, headers: HeaderMap) -> ApiResult {
    let page = Page::from_query(query.as_deref())?;
    let path = query::value(query.as_deref(), COLLECTION).unwrap_or_default();
    let Some(collection) = collections().find_map(|kind| Key::at_path(kind, &format!("{path}/x"))) else {
        let message = format!("`{COLLECTION}` must be the path of a list of resources (found `{}`)", printable(&path));
        return Err(ApiError::new(query::at(COLLECTION, message)));
    };
    let run = move |served: &ServedStore, _: &Cancel| {
        let (snapshot, all) = (served.store.snapshot(), format!("{}{PATH}", served.base_urls.base_url));
        let uri = format!("{all}?{COLLECTION}={}", segment(&path));
        let (default_limit, further) = (Some(DEFAULT_LIMIT), &[(COLLECTION, path)]);
        let list = PagedList { uri: &all, collection: &collection, default_limit, further };
        let (entries, next) = page.select(&snapshot, &list, |_| Ok(true))?;
        let names: Vec<ResourceName> = entries.iter().map(|entry| ResourceName::new(entry)).collect();
        conditional::json_response(&headers, &json!({"resources": names, "uri": uri, "next_page_uri": next}))
    };
    search.run(run).await
}
