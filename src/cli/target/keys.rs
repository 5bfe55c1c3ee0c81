//! The API keys of a running server (D105).

use serde::Deserialize;
use serde_json::Value;

use super::{
    client::{ApiClient, foreign_response},
    pages::Pages,
};
use crate::{
    cli::{Failure, output::diagnostics::say},
    model::{
        Kind,
        diagnostics::code::Code,
        id::Id,
        json,
        key::{Key, segment},
        key_scope::KeyScope,
        kind::{api_key::ApiKey, owner::Role},
        secrets::secret::{Secret, Secrets},
    },
    server::operations::owners::{OwnerUpdate, OwnerView, PATH as OWNERS},
    syntax::text::printable,
};

/// How to see the role of an owner.
pub(crate) const SEE_ROLES: &str = "run `edgewright owners list` to see whether the role was set";

/// An API key of a server.
#[derive(Deserialize)]
pub(crate) struct ApiKeyOfServer {
    /// The ID.
    pub id: String,
    /// The owner.
    pub owner_id: String,
    /// When it was created.
    pub created_at: String,
    /// The description.
    #[serde(default)]
    pub description: String,
    /// The scope.
    #[serde(default)]
    pub scope: Option<KeyScope>,
    /// The token, only of a new key.
    #[serde(default)]
    token: Option<Secret>,
}

/// Lists the API keys, newest first.
pub(crate) fn keys_of(client: &ApiClient) -> Result<Vec<ApiKeyOfServer>, Failure> {
    let collection = Kind::ApiKey.facts().collection;
    let mut keys = Vec::new();
    let first = "limit=1000".to_owned();
    let mut pages = Pages::of_resources(client, collection, &first);
    let mut query = Some(first);
    while let Some(parameters) = query {
        let mut page: Value = client.get(&format!("{collection}?{parameters}"))?;
        let found = page.get_mut(Kind::ApiKey.facts().list).map(Value::take).unwrap_or_default();
        let found: Vec<ApiKeyOfServer> =
            serde_json::from_value(found).map_err(|_| foreign_response(&client.address(collection), 200))?;
        let items = found.len();
        keys.extend(found);
        query = pages.next(items, page.get("next_page_uri").and_then(Value::as_str))?;
    }
    Ok(keys)
}

/// Finds the role of an owner, if the owner exists.
pub(crate) fn role_through(client: &ApiClient, owner: &str) -> Result<Option<Role>, Failure> {
    match client.get::<OwnerView>(&format!("{OWNERS}/{}", segment(owner))) {
        Ok(found) => Ok(Some(found.role)),
        Err(failure) if failure.has_code(Code::NotFound) => Ok(None),
        Err(failure) => Err(failure),
    }
}

/// Creates a key. `role` is that of a new owner. `hand_out` gets the token once the owner has the role. If either fails, the
/// key is deleted again: nobody would know its token, or it would have the wrong role.
pub(crate) fn create_through(
    client: &ApiClient,
    spec: &ApiKey,
    role: Option<Role>,
    hand_out: impl FnOnce(&Secret) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let collection = Kind::ApiKey.facts().collection;
    let owner = printable(&spec.owner_id);
    let lost = match role {
        Some(_) => format!(
            "run `edgewright keys list`, and revoke a new key of `{owner}`: nobody has its token, and the owner has the role `{}`",
            Role::default().as_str()
        ),
        None => format!("run `edgewright keys list`, and revoke a new key of `{owner}`: nobody has its token"),
    };
    let made: ApiKeyOfServer = client.create(collection, &json::bytes(spec, Secrets::Masked)?, &lost)?;
    let set_role = |role: Role| -> Result<(), Failure> {
        let body = json::bytes(&OwnerUpdate { role }, Secrets::Masked)?;
        client.patch::<OwnerView>(&format!("{OWNERS}/{}", segment(&made.owner_id)), &body, SEE_ROLES).map(drop)
    };
    let is_set = role.map_or(Ok(()), set_role).inspect_err(|_| {
        let (owner, default) = (printable(&made.owner_id), Role::default().as_str());
        say(&format!("The owner {owner} remains, perhaps with the role {default}: see `edgewright owners list`."));
    });
    let finished = is_set.and_then(|()| match &made.token {
        Some(token) => hand_out(token),
        None => Err(foreign_response(&client.address(collection), 201)),
    });
    finished.inspect_err(|_| match delete_through(client, &made.id) {
        Ok(()) => say("No key was created."),
        Err(_) => say(&format!("The key {} may remain: run `edgewright keys revoke {}`.", made.id, made.id)),
    })
}

/// Deletes a key.
pub(crate) fn delete_through(client: &ApiClient, id: &str) -> Result<(), Failure> {
    let path = Key::new(Kind::ApiKey, Id::new(id)).path();
    client.delete(&path, "run `edgewright keys list` to see whether the key still exists")
}
