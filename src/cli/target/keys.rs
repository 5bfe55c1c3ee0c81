//! The API keys of a running server (D105).

use std::collections::HashMap;

use serde::Deserialize;
use ureq::http::Method;

use super::client::ApiClient;
use super::error_response::foreign_response;
use crate::cli::output::say;
use crate::cli::prelude::*;
use crate::model::{ApiKey, KeyScope};
use crate::server::operations::owners::{OwnerUpdate, OwnerView, PATH as OWNERS};
use crate::server::resources::endpoint::OWNER_ROLE;

#[derive(Deserialize)]
pub(crate) struct ListedKey {
    pub id: String,
    pub owner_id: String,
    pub created_at: String,
    #[serde(default)]
    pub description: String,
    #[serde(default)]
    pub scope: Option<KeyScope>,
    /// The token, only of a new key.
    #[serde(default)]
    pub token: Option<Secret>,
}

impl ListedKey {
    /// The role: that of the owner, or a lower one that the scope sets; none if that of the owner is unknown.
    pub(crate) fn role(&self, roles: &HashMap<String, Role>) -> Option<Role> {
        let owner = *roles.get(&self.owner_id)?;
        Some(self.scope.as_ref().and_then(|scope| scope.role).map_or(owner, |most| owner.min(most)))
    }
}

/// Lists the API keys, newest first.
pub(crate) fn list_keys(client: &ApiClient) -> Result<Vec<ListedKey>, Failure> {
    let facts = Kind::ApiKey.facts();
    client.list(facts.collection, facts.list, "limit=1000")
}

pub(crate) fn set_owner_role(client: &ApiClient, owner: &str, role: Role) -> Result<(), Failure> {
    let body = json::bytes(&OwnerUpdate { role }, Secrets::Masked)?;
    let path = format!("{OWNERS}/{}", segment(owner));
    let see = "run `edgewright owners list` to see whether the role was set";
    client.change::<OwnerView>(&Method::PATCH, &path, Some(&body), see).map(drop)
}

/// Creates a key. `role` is that of its owner, which is created in the same revision if it does not exist: no key ever has more
/// rights than it was asked for. `hand_out` gets the token. If that fails, the key is deleted again: nobody would know its token.
pub(crate) fn create_key(
    client: &ApiClient,
    spec: &ApiKey,
    role: Option<Role>,
    hand_out: impl FnOnce(&Secret) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let collection = Kind::ApiKey.facts().collection;
    let owner = printable(&spec.owner_id);
    let lost = format!("run `edgewright keys list`, and revoke a new key of `{owner}`: nobody has its token");
    let query = role.map(|role| format!("?{OWNER_ROLE}={}", role.as_str())).unwrap_or_default();
    let made: Result<ListedKey, Failure> = client.change(
        &Method::POST,
        &format!("{collection}{query}"),
        Some(&json::bytes(spec, Secrets::Masked)?),
        &lost,
    );
    let made = made.map_err(|failure| match failure.has_code(Code::Parameter) {
        // The only parameter is the role.
        true => client.too_old("it cannot create a key and the role of its owner at once", "upgrade the server"),
        false => failure,
    })?;
    let finished = match &made.token {
        Some(token) => hand_out(token),
        None => Err(foreign_response(&client.address(collection), 201)),
    };
    finished.inspect_err(|_| match delete_key(client, &made.id) {
        Ok(_) => say("No key was created."),
        Err(_) => say(&format!("The key {} may remain: run `edgewright keys revoke {}`.", made.id, made.id)),
    })
}

/// Deletes a key, and returns what it was. A server that does not show it can delete it all the same.
pub(crate) fn delete_key(client: &ApiClient, id: &str) -> Result<Option<ListedKey>, Failure> {
    let path = Key::new(Kind::ApiKey, Id::new(id)).path();
    let known = client.get(&path).ok();
    let see = "run `edgewright keys list` to see whether the key still exists";
    client.change::<()>(&Method::DELETE, &path, None, see).map(|()| known)
}
