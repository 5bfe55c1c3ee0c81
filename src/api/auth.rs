//! Authentication and permissions (D23).

use axum::http::{HeaderMap, Method, header};

use super::{App, access, answer::ApiError};
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

/// The API version.
const VERSION: &str = "2";

/// The caller: the API key of a request and its owner.
#[derive(Debug, Clone)]
pub(super) struct Caller {
    /// The API key.
    pub key: Id,
    /// The owner.
    pub owner: Id,
    /// The owner's role.
    pub role: Role,
}

impl Caller {
    /// The caller as the author of a change.
    pub(super) fn author(&self) -> Author {
        Author::Api { key: self.key.clone(), owner: self.owner.clone() }
    }
}

/// Checks the token, version header and permission, in this order (D3).
pub(super) fn admit(app: &App, snapshot: &Snapshot, method: &Method, headers: &HeaderMap) -> Result<Caller, ApiError> {
    let caller = admit_any(app, snapshot, headers)?;
    match caller.role {
        Role::Gateway => Err(ApiError::of(
            Code::Forbidden,
            "the role `gateway` can read only `/gateway/configuration` and `/watch`; use a key with another role",
        )),
        Role::Viewer if !matches!(*method, Method::GET | Method::HEAD) => {
            Err(ApiError::of(Code::Forbidden, "viewers may only read; this request requires an editor or admin"))
        }
        _ => Ok(caller),
    }
}

/// Checks the token, version header and permission to read the gateway configuration. No other role has it: a token for
/// managing resources must not give away private keys (D94).
pub(super) fn admit_gateway(app: &App, snapshot: &Snapshot, headers: &HeaderMap) -> Result<Caller, ApiError> {
    let caller = admit_any(app, snapshot, headers)?;
    match caller.role {
        Role::Gateway => Ok(caller),
        _ => Err(ApiError::of(
            Code::Forbidden,
            "only the role `gateway` can read the gateway configuration, which has private keys and secrets",
        )),
    }
}

/// Checks the token and version header. Every role passes.
pub(super) fn admit_any(app: &App, snapshot: &Snapshot, headers: &HeaderMap) -> Result<Caller, ApiError> {
    let vouched = || app.client_certificates.caller(snapshot, headers);
    let caller = authenticate(snapshot, headers).or_else(vouched).ok_or_else(|| {
        ApiError::of(Code::Unauthenticated, "a valid API key is required: send `Authorization: Bearer TOKEN`")
            .header(header::WWW_AUTHENTICATE, "Bearer")
    })?;
    access::note_actor(&caller.key);
    check_version(app, headers)?;
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
    // An unknown key takes as long as a known one.
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
    let rejected =
        |reason: String| Err(ApiError::of(Code::VersionHeader, format!("{reason}; send `{name}: {VERSION}`")));
    match (values.next(), values.next()) {
        (None, _) => rejected(format!("the header `{name}` is missing")),
        (Some(value), None) if value.as_bytes().trim_ascii() == VERSION.as_bytes() => Ok(()),
        _ => rejected(format!("unsupported API version in the header `{name}`")),
    }
}
