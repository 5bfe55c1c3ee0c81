//! The caller of a request: an API key, its owner, and what both say about what it may do.

use axum::{extract::FromRequestParts, http::request::Parts};

use crate::model::author::{CERTIFICATE, PERSON};
use crate::model::{ApiKey, KeyScope};
use crate::server::http::api_error::ApiError;
use crate::server::prelude::*;
use crate::server::telemetry::security::event::SecurityEvent;
use crate::server::telemetry::security::note::SecurityNote;

/// The caller: the API key of a request and its owner.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    /// The API key.
    pub key: Id,
    /// The owner.
    pub owner: Id,
    /// The role of the key: that of the owner, or a lower one that its scope sets.
    pub role: Role,
    /// The scope of the key, if it has one.
    pub scope: Option<Arc<KeyScope>>,
}

impl Caller {
    /// The caller as the author of a change.
    pub(crate) fn author(&self) -> Author {
        Author::Api { key: self.key.clone(), owner: self.owner.clone() }
    }

    /// The name of the caller: that of a person who has signed in, or the owner.
    pub(crate) fn name(&self) -> &str {
        self.key.as_str().strip_prefix(PERSON).unwrap_or(self.owner.as_str())
    }

    /// The unique identity of the caller: the API key, or `person:` and the owner of a person, whose name others may have. No key
    /// of this owner has it.
    pub(crate) fn identity(&self) -> Cow<'_, Id> {
        match self.key.as_str().starts_with(PERSON) {
            true => Cow::Owned(Id::new(&format!("{PERSON}{}", self.owner))),
            false => Cow::Borrowed(&self.key),
        }
    }

    /// The caller in a message: the API key, or the name of a person.
    pub(super) fn described(&self) -> Cow<'_, str> {
        match self.key.as_str().strip_prefix(PERSON) {
            Some(name) => Cow::Borrowed(name),
            None => Cow::Owned(format!("the API key {}", self.key)),
        }
    }

    /// The error of a request that the caller may not make, for the client and the security log.
    pub(crate) fn refused(&self, fault: Fault) -> ApiError {
        let (event, reason) = match fault.code {
            // The caller is that of an earlier revision.
            Code::Unauthenticated => (SecurityEvent::AuthenticationFailed, "deleted or expired key"),
            _ if self.scope.is_some() => (SecurityEvent::PermissionRefused, "scope"),
            _ => (SecurityEvent::PermissionRefused, self.role.as_str()),
        };
        ApiError::new(fault).noted(self.note(event, reason))
    }

    /// The note of a request of the caller, for the security log.
    pub(crate) fn note(&self, event: SecurityEvent, reason: &'static str) -> SecurityNote {
        SecurityNote::new(event, reason, Some((&self.key, &self.owner)))
    }

    /// The caller of an API key.
    pub(super) fn new(snapshot: &Snapshot, id: &Id, key: &ApiKey) -> Option<Self> {
        let role = rules::key_role(snapshot, key)?;
        Some(Self { key: id.clone(), owner: Id::new(&key.owner_id), role, scope: key.scope.clone() })
    }

    /// The error message of an expired key.
    pub(super) fn expiry(&self) -> Option<String> {
        let scope = self.scope.as_ref().filter(|scope| scope.is_expired(clock::now()))?;
        Some(format!("the API key {} expired at {}; create another one", self.key, scope.expires_at))
    }

    /// This caller at another revision: its key may be deleted or limited since, and the role of its owner changed.
    pub(super) fn at(&self, snapshot: &Snapshot) -> Result<Self, Fault> {
        // The rights of a person are in the configuration.
        if self.key.as_str().starts_with(PERSON) {
            return Ok(self.clone());
        }
        // A certificate is in no store.
        let found = match self.key.as_str().starts_with(CERTIFICATE) {
            true => rules::role_of(snapshot, self.owner.as_str()).map(|role| Self { role, ..self.clone() }),
            false => snapshot
                .get(&Key::new(Kind::ApiKey, self.key.clone()))
                .and_then(|entry| Self::new(snapshot, &self.key, entry.spec_as::<ApiKey>()?)),
        };
        found.ok_or_else(|| Fault::new(Code::Unauthenticated, "the API key was deleted during the request"))
    }
}

/// The caller of an operation that needs an API key.
impl<S: Send + Sync> FromRequestParts<S> for Caller {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        parts.extensions.get::<Self>().cloned().ok_or_else(ApiError::internal)
    }
}
