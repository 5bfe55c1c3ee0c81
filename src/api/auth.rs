//! Who is asking, and what they may do (D23).

use axum::http::{HeaderMap, Method, header};

use super::{App, answer::ApiError};
use crate::{
    model::{
        Kind,
        code::Code,
        id::Id,
        key::Key,
        kind::{api_key::ApiKey, owner::Role},
        operation::Author,
        rules,
        snapshot::Snapshot,
    },
    store::mint,
};

/// The one version of the API.
const VERSION: &str = "2";

/// The owner of the key that a request carries.
#[derive(Debug, Clone)]
pub struct Caller {
    /// The key.
    pub key: Id,
    /// Its owner.
    pub owner: Id,
    /// What the owner may do.
    pub role: Role,
}

impl Caller {
    /// The caller as the author of a change.
    pub fn author(&self) -> Author {
        Author::Api { key: self.key.clone(), owner: self.owner.clone() }
    }
}

/// Checks token, version header and permission, in this order (D3).
pub fn admit(app: &App, snapshot: &Snapshot, method: &Method, headers: &HeaderMap) -> Result<Caller, ApiError> {
    let caller = authenticate(snapshot, headers).ok_or_else(|| {
        ApiError::of(Code::Unauthenticated, "a valid API key is needed: send `Authorization: Bearer TOKEN`")
            .header(header::WWW_AUTHENTICATE, "Bearer")
    })?;
    check_version(app, headers)?;
    if caller.role == Role::Viewer && !matches!(*method, Method::GET | Method::HEAD) {
        return Err(ApiError::of(Code::Forbidden, "viewers may only read; this needs an editor or admin"));
    }
    Ok(caller)
}

fn authenticate(snapshot: &Snapshot, headers: &HeaderMap) -> Option<Caller> {
    let mut values = headers.get_all(header::AUTHORIZATION).iter();
    let (value, None) = (values.next()?.to_str().ok()?, values.next()) else { return None };
    let (scheme, token) = value.split_once(' ')?;
    if !scheme.eq_ignore_ascii_case("bearer") {
        return None;
    }
    let (key, secret) = mint::split_token(token.trim())?;
    let entry = snapshot.get(&Key::new(Kind::ApiKey, key));
    // An unknown key costs the same work as a known one.
    let kept = entry.and_then(|entry| entry.token.clone()).unwrap_or_default();
    if !mint::token_matches(secret, &kept) {
        return None;
    }
    let entry = entry?;
    let owner = &entry.spec_as::<ApiKey>()?.owner_id;
    Some(Caller { key: entry.key.id.clone(), owner: Id::new(owner), role: rules::role_of(snapshot, owner)? })
}

fn check_version(app: &App, headers: &HeaderMap) -> Result<(), ApiError> {
    let name = &app.settings.version_header;
    let mut values = headers.get_all(name).iter();
    let told = |said: String| {
        Err(ApiError::of(Code::VersionHeader, format!("{said}; send `{name}: {VERSION}`, the only known version")))
    };
    match (values.next(), values.next()) {
        (None, _) => told(format!("the header `{name}` is missing")),
        (Some(value), None) if value.as_bytes().trim_ascii() == VERSION.as_bytes() => Ok(()),
        _ => told(format!("the header `{name}` names an unknown version")),
    }
}
