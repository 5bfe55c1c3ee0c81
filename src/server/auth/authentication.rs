//! Authentication, and the permission to make a request at all (D23, D101).

use super::caller::Caller;
use super::client_certificates::ClientCertificates;
use super::key_use::KeyUse;
use super::oidc::connector::OpenIdConnect;
use super::oidc::person::SignedInPerson;
use super::oidc::person_token::{PERSON_KEY, person_of};
use super::permission::{self, Intent};
use super::session::{DashboardSession, SessionSealer};
use super::session_credentials::{new_session_in, session_in};
use crate::model::ApiKey;
use crate::server::http::api_error::ApiError;
use crate::server::limits::guards::{self, Guards, RequestPlace};
use crate::server::prelude::*;
use crate::server::telemetry::request_labels::note_actor;
use crate::server::telemetry::security::event::SecurityEvent;
use crate::server::telemetry::security::note::SecurityNote;
use crate::store::tokens;

/// The API version.
const VERSION: &str = "2";

/// Checks who sends a request, and whether it may.
pub(crate) struct AccessControl {
    /// The API keys, their owners, and what these have recorded.
    pub(in crate::server) store: Arc<Store>,
    /// The limits of requests, and the log of what is refused.
    pub(in crate::server) guards: Guards,
    /// The owners that clients with certificates act as.
    pub(in crate::server) client_certificates: ClientCertificates,
    /// When keys were used last.
    pub(in crate::server) key_use: KeyUse,
    /// The sessions of the dashboard.
    pub(in crate::server) sessions: SessionSealer,
    /// The provider through which people sign in, if there is one.
    pub(in crate::server) provider: Option<OpenIdConnect>,
    /// The name of the version header (D4).
    pub(in crate::server) version_header: String,
}

impl AccessControl {
    /// Checks the token, the rate of its key, the version header and the permission, in this order (D3).
    pub(crate) fn admit(
        &self,
        snapshot: &Snapshot,
        intent: &Intent<'_>,
        headers: &HeaderMap,
    ) -> Result<Caller, ApiError> {
        if let Some(session) = new_session_in(&self.sessions, headers, clock::now()) {
            return self.admit_session(snapshot, intent, headers, &session);
        }
        let caller = self.identify(snapshot, headers)?;
        self.count(&caller)?;
        self.check_version(headers)?;
        self.decide(snapshot, intent, headers, caller)
    }

    /// Counts a request for the rate of the caller's key, and for the share of its owner.
    fn count(&self, caller: &Caller) -> Result<(), ApiError> {
        self.guards.take(caller)?;
        RequestPlace::note_owner(&caller.owner)
    }

    /// Checks a request that was admitted before: its key may have been revoked meanwhile.
    pub(crate) fn admit_again(
        &self,
        snapshot: &Snapshot,
        intent: &Intent<'_>,
        headers: &HeaderMap,
    ) -> Result<Caller, ApiError> {
        if let Some(session) = session_in(&self.sessions, headers) {
            return self.admit_session_again(snapshot, intent, headers, &session);
        }
        let caller = self.identify(snapshot, headers)?;
        self.check_version(headers)?;
        self.decide(snapshot, intent, headers, caller)
    }

    fn decide(
        &self,
        snapshot: &Snapshot,
        intent: &Intent<'_>,
        headers: &HeaderMap,
        caller: Caller,
    ) -> Result<Caller, ApiError> {
        permission::allows_address(&caller, guards::client_of(headers))
            .and_then(|()| permission::allows(&caller, intent, snapshot))
            .map_err(|fault| caller.refused(fault))?;
        self.check_change(&caller, intent)?;
        Ok(caller)
    }

    /// Checks a request that has to wait before it is admitted: the rate of its key, and the address. Returns the owner, or none
    /// without a valid token: what is wrong with that is said when the request is admitted.
    pub(crate) fn admit_waiting(&self, headers: &HeaderMap) -> Result<Option<Id>, ApiError> {
        let Ok(caller) = self.identify(&self.store.snapshot(), headers) else { return Ok(None) };
        self.count(&caller)?;
        permission::allows_address(&caller, guards::client_of(headers)).map_err(|fault| caller.refused(fault))?;
        Ok(Some(caller.owner))
    }

    /// Checks a request of a session like [`Self::admit`]. A browser sends no version header.
    pub(crate) fn admit_session(
        &self,
        snapshot: &Snapshot,
        intent: &Intent<'_>,
        headers: &HeaderMap,
        session: &DashboardSession,
    ) -> Result<Caller, ApiError> {
        let caller = self.session_caller(snapshot, session)?;
        note_actor(&caller.key);
        self.key_use.note(&caller.key);
        self.count(&caller)?;
        self.decide(snapshot, intent, headers, caller)
    }

    /// Checks a request of a session that was admitted before: its key may have been revoked meanwhile.
    pub(crate) fn admit_session_again(
        &self,
        snapshot: &Snapshot,
        intent: &Intent<'_>,
        headers: &HeaderMap,
        session: &DashboardSession,
    ) -> Result<Caller, ApiError> {
        self.decide(snapshot, intent, headers, self.session_caller(snapshot, session)?)
    }

    /// The caller of a session, if its key still exists, has the same token, and has not expired, or if the person still has
    /// a role.
    fn session_caller(&self, snapshot: &Snapshot, session: &DashboardSession) -> Result<Caller, ApiError> {
        let ended = || ApiError::with_code(Code::Unauthenticated, "the session has ended; sign in again");
        if let Some(person) = &session.person {
            return self.person_caller(person).ok_or_else(ended);
        }
        let entry = snapshot.get(&Key::new(Kind::ApiKey, session.key.clone())).ok_or_else(ended)?;
        let kept = entry.token.as_ref().filter(|kept| session.was_begun_by(kept)).ok_or_else(ended)?;
        let key = entry.spec_as::<ApiKey>().filter(|_| !kept.is_empty()).ok_or_else(ended)?;
        let caller = Caller::new(snapshot, &entry.key.id, key).ok_or_else(ended)?;
        if caller.expiry().is_some() { Err(ended()) } else { Ok(caller) }
    }

    /// A person as a caller, who may have no role any more.
    fn person_caller(&self, person: &SignedInPerson) -> Option<Caller> {
        self.provider.as_ref()?.caller(person)
    }

    /// Admits a person whom the provider knows, and who must be allowed to read. Returns the note of the sign-in, which says how.
    pub(crate) fn sign_in_person(
        &self,
        headers: &HeaderMap,
        person: &SignedInPerson,
        how: &'static str,
    ) -> Result<SecurityNote, ApiError> {
        let caller = self.person_caller(person).ok_or_else(|| {
            let note =
                SecurityNote::new(SecurityEvent::PermissionRefused, "no role", Some((&person.key(), person.owner())));
            let fault = Fault::new(Code::Forbidden, format!("{} has no role on this server", person.name()));
            let help = "ask an admin to map one of your groups to a role in the section `openid_connect` of the \
                        configuration file";
            ApiError::new(fault.help(help)).noted(note)
        })?;
        note_actor(&caller.key);
        self.count(&caller)?;
        let caller = self.decide(&self.store.snapshot(), &Intent::Read, headers, caller)?;
        Ok(caller.note(SecurityEvent::SignedIn, how))
    }

    /// Signs in with an API token, which must be allowed to read. Returns the session, and the note of its beginning.
    pub(crate) fn sign_in(
        &self,
        headers: &HeaderMap,
        text: &str,
    ) -> Result<(DashboardSession, SecurityNote), ApiError> {
        let current = self.store.snapshot();
        let (snapshot, text) = (&*current, text.trim());
        let failed = |message: &str, reason: &'static str| {
            let named = tokens::split_token(text).and_then(|(key, _)| owned_key(snapshot, key));
            unauthenticated(message, reason, named.as_ref())
        };
        let found = tokens::split_token(text).ok_or(if text.is_empty() { NO_TOKEN } else { MALFORMED });
        let caller = found.and_then(|(key, secret)| verify(snapshot, key, secret));
        let caller = caller.map_err(|reason| failed("this is not a valid API token", reason))?;
        // Only who has the token is told.
        if let Some(message) = caller.expiry() {
            return Err(failed(&message, EXPIRED));
        }
        note_actor(&caller.key);
        self.key_use.note(&caller.key);
        self.count(&caller)?;
        let caller = self.decide(snapshot, &Intent::Read, headers, caller)?;
        let entry = snapshot.get(&Key::new(Kind::ApiKey, caller.key.clone()));
        let kept = entry.and_then(|entry| entry.token.as_ref()).ok_or_else(ApiError::internal)?;
        let note = caller.note(SecurityEvent::SignedIn, "");
        Ok((DashboardSession::new(caller.key, kept), note))
    }

    /// Refuses a change if the owner of the caller's key has filled its share of the history (D77). Admins whose keys have no
    /// scope have no share: they can create other owners.
    pub(crate) fn check_change(&self, caller: &Caller, intent: &Intent<'_>) -> Result<(), ApiError> {
        let is_bound = caller.role != Role::Admin || caller.scope.is_some();
        if !is_bound || !matches!(intent, Intent::Change | Intent::Apply(_)) {
            return Ok(());
        }
        match self.store.share_wait(&caller.owner) {
            Some(wait) => Err(guards::share_exhausted(caller, wait)),
            None => Ok(()),
        }
    }

    fn identify(&self, snapshot: &Snapshot, headers: &HeaderMap) -> Result<Caller, ApiError> {
        let vouched = |reason| self.client_certificates.caller(snapshot, headers).ok_or(reason);
        let failed = |message: &str, reason: &'static str| {
            // Anything else than the ID of a key may be a secret that was put into the wrong place.
            let named = token(headers).ok().and_then(|(key, _)| owned_key(snapshot, key));
            unauthenticated(message, reason, named.as_ref())
                .header(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"))
        };
        let caller = self.authenticate(snapshot, headers).or_else(vouched).map_err(|reason| match reason {
            ENDED => failed("this sign-in has ended; run `edgewright login --sso` again", reason),
            _ => failed("a valid API key is required: send `Authorization: Bearer TOKEN`", reason),
        })?;
        // Only who has the token is told.
        if let Some(message) = caller.expiry() {
            return Err(failed(&message, EXPIRED));
        }
        note_actor(&caller.key);
        self.key_use.note(&caller.key);
        Ok(caller)
    }

    /// The caller whose token a request has: an API key, or a person.
    fn authenticate(&self, snapshot: &Snapshot, headers: &HeaderMap) -> Result<Caller, &'static str> {
        let (key, secret) = token(headers)?;
        if key.as_str() != PERSON_KEY {
            return verify(snapshot, key, secret);
        }
        let person = person_of(&self.sessions, secret, clock::now()).ok_or(ENDED)?;
        self.person_caller(&person).ok_or(ENDED)
    }

    fn check_version(&self, headers: &HeaderMap) -> Result<(), ApiError> {
        let name = &self.version_header;
        let mut values = headers.get_all(name).iter();
        let rejected = |reason: String| {
            Err(ApiError::with_code(Code::VersionHeader, format!("{reason}; send `{name}: {VERSION}`")))
        };
        match (values.next(), values.next()) {
            (None, _) => rejected(format!("the header `{name}` is missing")),
            (Some(value), None) if value.as_bytes().trim_ascii() == VERSION.as_bytes() => Ok(()),
            _ => rejected(format!("unsupported API version in the header `{name}`")),
        }
    }
}

/// Why a request has no valid token, for the security log. The client is not told.
const NO_TOKEN: &str = "no token";
const MALFORMED: &str = "malformed token";
const UNKNOWN: &str = "unknown key";
const WRONG: &str = "wrong secret";
const EXPIRED: &str = "expired key";
const ENDED: &str = "ended sign-in of a person";

/// The caller whose key has a token with this secret part.
fn verify(snapshot: &Snapshot, key: Id, secret: &str) -> Result<Caller, &'static str> {
    let entry = snapshot.get(&Key::new(Kind::ApiKey, key));
    // An unknown key takes as long as a known one.
    let kept = entry.and_then(|entry| entry.token.clone()).unwrap_or_default();
    if !tokens::token_matches(secret, &kept) {
        return Err(if entry.is_some() { WRONG } else { UNKNOWN });
    }
    let entry = entry.ok_or(UNKNOWN)?;
    let key = entry.spec_as::<ApiKey>().ok_or(UNKNOWN)?;
    Caller::new(snapshot, &entry.key.id, key).ok_or(UNKNOWN)
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
    tokens::split_token(token.trim()).ok_or(MALFORMED)
}

/// Whether a request has the token of an API key, valid or not.
pub(crate) fn has_token_of_key(headers: &HeaderMap) -> bool {
    token(headers).is_ok_and(|(key, _)| key.as_str() != PERSON_KEY)
}

/// The error of a token that is not valid. `named` is the key that it names, with its owner, if the store has that key.
fn unauthenticated(message: &str, reason: &'static str, named: Option<&(Id, Id)>) -> ApiError {
    let actor = named.map(|(key, owner)| (key, owner));
    let note = SecurityNote::new(SecurityEvent::AuthenticationFailed, reason, actor);
    ApiError::with_code(Code::Unauthenticated, message).noted(note)
}

/// A key of the store, and its owner.
fn owned_key(snapshot: &Snapshot, key: Id) -> Option<(Id, Id)> {
    let entry = snapshot.get(&Key::new(Kind::ApiKey, key))?;
    Some((entry.key.id.clone(), Id::new(&entry.spec_as::<ApiKey>()?.owner_id)))
}
