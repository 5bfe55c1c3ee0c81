//! `/owners`: the owners of API keys, and their roles (D23). Only admins can read and change them.

use std::sync::Arc;

use axum::{
    body::Body,
    http::{Request, StatusCode},
    response::Response,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{
    model::{
        Kind,
        base_urls::Site,
        decode::decode,
        diagnostics::code::Code,
        id::Id,
        json,
        key::Key,
        kind::owner::{Owner, Role},
        operation::Operation,
        secrets::secret::Secrets,
        snapshot::{Entry, Rendered},
    },
    server::{
        auth::permission::Intent,
        http::{
            body::{self, Limits},
            page::{self, DEFAULT_LIMIT, Page},
            precondition::Precondition,
            query,
            response::{self, ApiError},
        },
        openapi::{extension::ExtensionOperation, schemas::Schemas},
        state::AppState,
        telemetry::security::note::{SecurityNote, people_changes},
    },
    store::{Attempt, Declined},
};

/// The tag of the operations.
pub(crate) const TAG: &str = "Owners";
/// The path of the list.
pub(crate) const PATH: &str = "/owners";

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
    fn of(entry: &Entry, site: &Site) -> Self {
        Self {
            id: entry.key.id.to_string(),
            uri: site.uri(&entry.key),
            created_at: entry.created_at.to_string(),
            role: entry.spec_as::<Owner>().map(|owner| owner.role).unwrap_or_default(),
        }
    }
}

/// A page of owners, newest first.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct OwnerPage {
    /// The owners.
    pub owners: Vec<OwnerView>,
    /// The URI of the list.
    pub uri: String,
    /// The URI of the next page, if there is one.
    pub next_page_uri: Option<String>,
}

/// The new role of an owner.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct OwnerUpdate {
    /// The role of the owner's API keys.
    pub role: Role,
}

/// The change of an owner's role.
pub(crate) fn set_role(owner: Id, role: Role) -> Operation {
    Operation::Patch { key: Key::new(Kind::Owner, owner), spec: Arc::new(Owner { role }), fields: vec!["role".into()] }
}

/// Lists the owners.
pub(crate) async fn list(app: AppState, request: Request<Body>) -> Result<Response, ApiError> {
    let snapshot = app.served.store.snapshot();
    app.access.admit(&snapshot, &Intent::Owners, request.headers())?;
    query::check(request.uri().query(), page::PARAMETERS)?;
    let page = Page::from_query(request.uri().query())?;
    let collection = Key::new(Kind::Owner, Id::new(""));
    let (entries, next_page_uri) =
        page.select(&snapshot, &app.served.site, &collection, Some(DEFAULT_LIMIT), &[], |_| Ok(true))?;
    let list = OwnerPage {
        owners: entries.iter().map(|entry| OwnerView::of(entry, &app.served.site)).collect(),
        uri: format!("{}{PATH}", app.served.site.base_url),
        next_page_uri,
    };
    let rendered = response::rendered(json::bytes(&list, Secrets::Masked)?);
    Ok(response::conditional(request.headers(), &rendered))
}

/// Returns an owner.
pub(crate) async fn get(app: AppState, id: String, request: Request<Body>) -> Result<Response, ApiError> {
    let snapshot = app.served.store.snapshot();
    app.access.admit(&snapshot, &Intent::Owners, request.headers())?;
    query::check(request.uri().query(), &[])?;
    let key = Key::new(Kind::Owner, Id::new(&id));
    let entry = snapshot.get(&key).ok_or_else(|| ApiError::not_found(&key.to_string()))?;
    Ok(response::conditional(request.headers(), &render(entry, &app.served.site)?))
}

/// Sets the role of an owner.
pub(crate) async fn patch(app: AppState, id: String, request: Request<Body>) -> Result<Response, ApiError> {
    let (parts, body) = request.into_parts();
    let caller = app.access.admit(&app.served.store.snapshot(), &Intent::Owners, &parts.headers)?;
    query::check(parts.uri.query(), &[])?;
    let precondition = Precondition::of(&parts.headers);
    let (content, mut faults, _) = body::read(&parts.headers, body, Limits::RESOURCE).await?;
    if content.root().is_null() {
        return Err(ApiError::of(Code::Syntax, "the request body must be a JSON object"));
    }
    let (update, found) = decode::<OwnerUpdate>(content.root(), None);
    faults.extend(found);
    let update = match update {
        Some(update) if faults.is_empty() => update,
        _ => return Err(ApiError::from_faults(faults)),
    };
    let key = Key::new(Kind::Owner, Id::new(&id));
    let operations = vec![set_role(key.id.clone(), update.role)];
    let note = SecurityNote::changes(caller.key.clone(), caller.owner.clone(), people_changes(&operations));
    let respond = move || -> Result<Response, ApiError> {
        let made = app.served.store.commit_with(
            Attempt::new(caller.author()),
            |current| -> Result<Vec<Operation>, ApiError> {
                // The key may have been revoked, or its owner demoted, while the body was received.
                app.access.admit_again(current, &Intent::Owners, &parts.headers)?;
                precondition.check(|| current.get(&key).map(|entry| render(entry, &app.served.site)).transpose())?;
                Ok(operations)
            },
        );
        let snapshot = match made {
            Ok(committed) => committed.snapshot,
            Err(Declined::Declined(error)) => return Err(error),
            Err(Declined::Commit(error)) => return Err(error.into()),
        };
        let entry = snapshot.get(&key).ok_or_else(|| ApiError::not_found(&key.to_string()))?;
        let mut response = response::resource(StatusCode::OK, &render(entry, &app.served.site)?);
        response.extensions_mut().insert(note);
        Ok(response)
    };
    // The engine blocks until the data is on disk.
    let answer = tokio::task::spawn_blocking(respond).await;
    answer.map_err(|_| ApiError::internal())?
}

fn render(entry: &Entry, site: &Site) -> Result<Rendered, ApiError> {
    Ok(response::rendered(json::bytes(&OwnerView::of(entry, site), Secrets::Masked)?))
}

/// The paths with their operations.
pub(crate) fn paths(schemas: &mut Schemas) -> Vec<(String, Value)> {
    let one = schemas.response::<OwnerView>();
    let update = schemas.request::<OwnerUpdate>();
    let list = schemas.list("Owner", "owners", one.clone(), true);
    let list = ExtensionOperation::new(
        TAG,
        "listOwners",
        "List owners",
        "Returns the owners of API keys with their roles, newest first. Only admins can list them.",
    )
    .paged("owner", "owners")
    .ok(list)
    .conditional()
    .fails(&["400", "401", "403", "500"]);
    let get = ExtensionOperation::new(
        TAG,
        "getOwner",
        "Get an owner",
        "Returns an owner of API keys with its role. Only admins can read it.",
    )
    .ok(one.clone())
    .conditional()
    .fails(&["400", "401", "403", "404", "500"]);
    let patch = ExtensionOperation::new(
        TAG,
        "updateOwner",
        "Set the role of an owner",
        "Sets the role of an owner, which all its API keys have from then on. Only admins can set it, and the last admin keeps the role.",
    )
    .body(update, json!({"role": "viewer"}))
    .ok(one)
    .tagged()
    .parameter(json!({
        "name": "If-Match",
        "in": "header",
        "description": "The ETag of the resource that the change is based on.",
        "schema": {"type": "string"},
    }))
    .fails(&["400", "401", "403", "404", "408", "409", "412", "413", "415", "500"]);
    vec![
        (PATH.to_owned(), json!({"get": list.build()})),
        (format!("{PATH}/{{id}}"), json!({"get": get.build(), "patch": patch.build()})),
    ]
}
