//! Authentication and permissions (D23).

use axum::http::{HeaderMap, Method, header};

use super::{
    App, access,
    answer::ApiError,
    security::{event::SecurityEvent, note::SecurityNote},
};
use crate::{
    model::{
        Kind,
        code::Code,
        fault::Fault,
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

    /// The error of a request that the caller may not make, for the client and the security log.
    pub(super) fn refused(&self, fault: Fault) -> ApiError {
        let (event, reason) = match fault.code {
            Code::Unauthenticated => (SecurityEvent::AuthenticationFailed, "deleted key"),
            _ => (SecurityEvent::PermissionRefused, self.role.as_str()),
        };
        ApiError::new(fault).noted(SecurityNote::of(event, reason, Some((&self.key, &self.owner))))
    }
}

/// Checks the token, the rate of its key, the version header and the permission, in this order (D3).
pub(super) fn admit(app: &App, snapshot: &Snapshot, method: &Method, headers: &HeaderMap) -> Result<Caller, ApiError> {
    permitted(admit_any(app, snapshot, headers)?, method)
}

/// Checks a request that was admitted before: its key may have been revoked meanwhile.
pub(super) fn admit_again(
    app: &App,
    snapshot: &Snapshot,
    method: &Method,
    headers: &HeaderMap,
) -> Result<Caller, ApiError> {
    permitted(admit_any_again(app, snapshot, headers)?, method)
}

fn permitted(caller: Caller, method: &Method) -> Result<Caller, ApiError> {
    let message = match caller.role {
        Role::Gateway => {
            "the role `gateway` can read only `/gateway/configuration` and `/watch`; use a key with another role"
        }
        Role::Viewer if !matches!(*method, Method::GET | Method::HEAD) => {
            "viewers may only read; this request requires an editor or admin"
        }
        _ => return Ok(caller),
    };
    Err(caller.refused(Fault::new(Code::Forbidden, message)))
}

/// Checks the token, version header and permission to read the gateway configuration. No other role has it: a token for
/// managing resources must not give away private keys (D94).
pub(super) fn admit_gateway(app: &App, snapshot: &Snapshot, headers: &HeaderMap) -> Result<Caller, ApiError> {
    let caller = admit_any(app, snapshot, headers)?;
    match caller.role {
        Role::Gateway => Ok(caller),
        _ => Err(caller.refused(Fault::new(
            Code::Forbidden,
            "only the role `gateway` can read the gateway configuration, which has private keys and secrets",
        ))),
    }
}

/// Checks the token, the rate of its key and the version header. Every role passes.
pub(super) fn admit_any(app: &App, snapshot: &Snapshot, headers: &HeaderMap) -> Result<Caller, ApiError> {
    let caller = identified(app, snapshot, headers)?;
    app.guards.take(&caller.key, &caller.owner)?;
    check_version(app, headers)?;
    Ok(caller)
}

/// Like [`admit_any`], for a request that was admitted before.
pub(super) fn admit_any_again(app: &App, snapshot: &Snapshot, headers: &HeaderMap) -> Result<Caller, ApiError> {
    let caller = identified(app, snapshot, headers)?;
    check_version(app, headers)?;
    Ok(caller)
}

fn identified(app: &App, snapshot: &Snapshot, headers: &HeaderMap) -> Result<Caller, ApiError> {
    let vouched = |reason| app.client_certificates.caller(snapshot, headers).ok_or(reason);
    let caller = authenticate(snapshot, headers).or_else(vouched).map_err(|reason| {
        let named = named_key(snapshot, headers);
        let actor = named.as_ref().map(|(key, owner)| (key, owner));
        ApiError::of(Code::Unauthenticated, "a valid API key is required: send `Authorization: Bearer TOKEN`")
            .header(header::WWW_AUTHENTICATE, "Bearer")
            .noted(SecurityNote::of(SecurityEvent::AuthenticationFailed, reason, actor))
    })?;
    access::note_actor(&caller.key);
    Ok(caller)
}

/// Why a request has no valid token, for the security log. The client is not told.
const NO_TOKEN: &str = "no token";
const MALFORMED: &str = "malformed token";
const UNKNOWN: &str = "unknown key";
const WRONG: &str = "wrong secret";

fn authenticate(snapshot: &Snapshot, headers: &HeaderMap) -> Result<Caller, &'static str> {
    let (key, secret) = token(headers)?;
    let entry = snapshot.get(&Key::new(Kind::ApiKey, key));
    // An unknown key takes as long as a known one.
    let kept = entry.and_then(|entry| entry.token.clone()).unwrap_or_default();
    if !mint::token_matches(secret, &kept) {
        return Err(if entry.is_some() { WRONG } else { UNKNOWN });
    }
    let entry = entry.ok_or(UNKNOWN)?;
    let owner = &entry.spec_as::<ApiKey>().ok_or(UNKNOWN)?.owner_id;
    let role = rules::role_of(snapshot, owner).ok_or(UNKNOWN)?;
    Ok(Caller { key: entry.key.id.clone(), owner: Id::new(owner), role })
}

/// The key and the secret part of a token.
fn token(headers: &HeaderMap) -> Result<(Id, &str), &'static str> {
    let mut values = headers.get_all(header::AUTHORIZATION).iter();
    let value = values.next().ok_or(NO_TOKEN)?;
    if values.next().is_some() {
        return Err(MALFORMED);
    }
    let (scheme, token) = value.to_str().ok().and_then(|value| value.split_once(' ')).ok_or(MALFORMED)?;
    if !scheme.eq_ignore_ascii_case("bearer") {
        return Err(MALFORMED);
    }
    mint::split_token(token.trim()).ok_or(MALFORMED)
}

/// The key that an invalid token names, and its owner, if the store has the key: anything else may be a secret that was
/// put into the wrong place.
fn named_key(snapshot: &Snapshot, headers: &HeaderMap) -> Option<(Id, Id)> {
    let (key, _) = token(headers).ok()?;
    let entry = snapshot.get(&Key::new(Kind::ApiKey, key))?;
    Some((entry.key.id.clone(), Id::new(&entry.spec_as::<ApiKey>()?.owner_id)))
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
