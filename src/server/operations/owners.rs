//! `/owners`: the owners of API keys, and their roles (D23). Only admins can read and change them.

use axum::extract::Path;

use crate::model::diagnostics::Check;
use crate::model::{Owner, Rendered};
use crate::server::handler_prelude::*;
use crate::server::replicas::read_your_writes::set_revision;
use crate::store::Attempt;

/// The path of the list.
pub(crate) const PATH: &str = "/owners";

pub(super) static LIST: ApiOperation = ApiOperation::get(PATH, Intent::Owners, |method| on(method, list))
    .paged("owner", "owners")
    .named("Owners", "listOwners", "List owners")
    .described("Returns the owners of API keys with their roles, newest first. Only admins can list them.")
    .documented("400 401 403 500", |operation, schemas| {
        operation.ok(schemas.page_of::<OwnerView>("Owner", "owners")).conditional()
    });

pub(super) static GET: ApiOperation = ApiOperation::get("/owners/{id}", Intent::Owners, |method| on(method, get))
    .named("Owners", "getOwner", "Get an owner")
    .described("Returns an owner of API keys with its role. Only admins can read it.")
    .documented("400 401 403 404 500", |operation, schemas| {
        operation.ok(schemas.response::<OwnerView>()).conditional()
    });

pub(super) static PATCH: ApiOperation = ApiOperation::patch("/owners/{id}", Intent::Owners, |method| on(method, patch))
    .named("Owners", "updateOwner", "Set the role of an owner")
    .described("Sets the role of an owner, which all its API keys have from then on. Only admins can set it, and the last admin keeps the role.")
    .documented("400 401 403 404 408 409 412 413 415 500", |operation, schemas| {
        let operation = operation.body(schemas.request::<OwnerUpdate>(), json!({"role": "viewer"}));
        let operation = operation.ok(schemas.response::<OwnerView>()).tagged();
        operation.request_header("If-Match", "The ETag of the resource that the change is based on.")
    });

/// A user or bot that owns API keys.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct OwnerView {
    /// The identifier: `usr_…` or `bot_…`.
    pub id: String,
    /// The URI.
    pub uri: String,
    /// When the owner was created.
    pub created_at: String,
    /// The role of the owner's API keys.
    pub role: Role,
}

impl OwnerView {
    fn new(entry: &Entry, base_urls: &BaseUrls) -> Self {
        Self {
            id: entry.key.id.to_string(),
            uri: base_urls.uri(&entry.key),
            created_at: entry.created_at.to_string(),
            role: entry.spec_as::<Owner>().map(|owner| owner.role).unwrap_or_default(),
        }
    }
}

/// The new role of an owner.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct OwnerUpdate {
    /// The role of the owner's API keys.
    pub role: Role,
}

impl Check for OwnerUpdate {}

/// The change of an owner's role.
pub(crate) fn set_role(owner: Id, role: Role) -> Operation {
    Operation::Patch { key: Key::new(Kind::Owner, owner), spec: Arc::new(Owner { role }), fields: vec!["role".into()] }
}

/// Lists the owners.
async fn list(State(app): State<AppState>, RawQuery(query): RawQuery, headers: HeaderMap) -> ApiResult {
    let page = Page::from_query(query.as_deref())?;
    let (snapshot, base_urls) = (app.served.store.snapshot(), &app.served.base_urls);
    let collection = Key::new(Kind::Owner, Id::new(""));
    let uri = format!("{}{PATH}", base_urls.base_url);
    let list = PagedList { uri: &uri, collection: &collection, default_limit: Some(DEFAULT_LIMIT), further: &[] };
    let (entries, next) = page.select(&snapshot, &list, |_| Ok(true))?;
    let owners: Vec<OwnerView> = entries.iter().map(|entry| OwnerView::new(entry, base_urls)).collect();
    conditional::json_response(&headers, &json!({"owners": owners, "uri": uri, "next_page_uri": next}))
}

/// Returns an owner.
async fn get(State(app): State<AppState>, Path(id): Path<String>, headers: HeaderMap) -> ApiResult {
    let key = Key::new(Kind::Owner, Id::new(&id));
    let snapshot = app.served.store.snapshot();
    let entry = snapshot.get(&key).ok_or_else(|| ApiError::not_found(&key.to_string()))?;
    Ok(conditional::response(&headers, &render(entry, &app.served.base_urls)?))
}

/// Sets the role of an owner.
async fn patch(
    State(AppState { access, served, .. }): State<AppState>,
    Path(id): Path<String>,
    caller: Caller,
    headers: HeaderMap,
    JsonBody(update): JsonBody<OwnerUpdate>,
) -> ApiResult {
    let precondition = Precondition::from_headers(&headers);
    let key = Key::new(Kind::Owner, Id::new(&id));
    let operations = vec![set_role(key.id.clone(), update.role)];
    let note = SecurityNote::for_operations((&caller.key, &caller.owner), &operations);
    let respond = move || -> ApiResult {
        let made = |current: &Snapshot| -> Result<Vec<Operation>, ApiError> {
            // The key may have been revoked, or its owner demoted, while the request waited.
            access.admit_again(current, &Intent::Owners, &headers)?;
            precondition.check(|| current.get(&key).map(|entry| render(entry, &served.base_urls)).transpose())?;
            Ok(operations)
        };
        let snapshot = served.store.commit_with(Attempt::new(caller.author()), made)?;
        let entry = snapshot.get(&key).ok_or_else(|| ApiError::not_found(&key.to_string()))?;
        let mut response = response::resource(StatusCode::OK, &render(entry, &served.base_urls)?);
        set_revision(response.headers_mut(), snapshot.revision);
        Ok(response::noted(response, note))
    };
    // The engine blocks until the data is on disk.
    blocking(respond).await
}

fn render(entry: &Entry, base_urls: &BaseUrls) -> Result<Rendered, ApiError> {
    Ok(response::rendered(json::bytes(&OwnerView::new(entry, base_urls), Secrets::Masked)?))
}
