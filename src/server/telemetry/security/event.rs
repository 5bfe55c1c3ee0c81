//! The events of the security log, and their form.

use std::num::NonZero;

use crate::model::names::names;
use crate::server::prelude::*;
use crate::store::revision::ChangeEvent;

/// An event of the security log.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(crate) enum SecurityEvent {
    /// The log begins.
    #[default]
    LogCreated,
    /// The log continues in a new file.
    LogContinued,
    /// A line was cut off when the server stopped, and this one follows it.
    LineTorn,
    /// The server starts.
    Started,
    /// The server stops.
    Stopped,
    /// A request had no valid token.
    AuthenticationFailed,
    /// The caller does not have the permission.
    PermissionRefused,
    /// A key has sent too many requests.
    RateLimited,
    /// A webhook was not signed.
    WebhookRefused,
    /// Somebody has begun to sign in on a command line, and may ask anybody to enter the code.
    DeviceSignInBegun,
    /// Somebody has signed in to the dashboard, or on a command line.
    SignedIn,
    /// A gateway has read its configuration, with secrets.
    GatewayRead,
    /// An admin has read a backup of the store.
    BackupRead,
    /// An API key was created.
    KeyCreated,
    /// An API key was changed.
    KeyChanged,
    /// An API key was deleted.
    KeyDeleted,
    /// An owner was created.
    OwnerCreated,
    /// The role of an owner was changed.
    RoleChanged,
    /// An owner was deleted.
    OwnerDeleted,
    /// The configuration file changed sources with credentials.
    CredentialsChanged,
    /// The store was encrypted with new keys, or that has failed.
    StoreRekeyed,
}

impl SecurityEvent {
    /// The event of a change of a key or owner.
    pub(crate) fn from_change(kind: Kind, change: ChangeEvent) -> Option<Self> {
        Some(match (kind, change) {
            (Kind::ApiKey, ChangeEvent::Created) => Self::KeyCreated,
            (Kind::ApiKey, ChangeEvent::Updated) => Self::KeyChanged,
            (Kind::ApiKey, ChangeEvent::Deleted) => Self::KeyDeleted,
            (Kind::Owner, ChangeEvent::Created) => Self::OwnerCreated,
            (Kind::Owner, ChangeEvent::Updated) => Self::RoleChanged,
            (Kind::Owner, ChangeEvent::Deleted) => Self::OwnerDeleted,
            _ => return None,
        })
    }

    /// Whether the event is about the log itself. Requests and the server cause the others.
    pub(in crate::server::telemetry) fn is_about_log(self) -> bool {
        matches!(self, Self::LogCreated | Self::LogContinued | Self::LineTorn)
    }

    /// Whether a client can cause any number of these without changing anything. Only the first of an interval has a
    /// line of its own.
    pub(super) fn is_repeatable(self) -> bool {
        matches!(
            self,
            Self::AuthenticationFailed
                | Self::PermissionRefused
                | Self::RateLimited
                | Self::WebhookRefused
                | Self::DeviceSignInBegun
                | Self::SignedIn
                | Self::GatewayRead
                | Self::BackupRead
        )
    }
}

names! {
    SecurityEvent: LogCreated "log_created", LogContinued "log_continued", LineTorn "line_torn", Started "started",
    Stopped "stopped", AuthenticationFailed "authentication_failed", PermissionRefused "permission_refused",
    RateLimited "rate_limited", WebhookRefused "webhook_refused",
    DeviceSignInBegun "device_sign_in_begun", SignedIn "signed_in", GatewayRead "gateway_read", BackupRead "backup_read",
    KeyCreated "key_created", KeyChanged "key_changed", KeyDeleted "key_deleted", OwnerCreated "owner_created",
    RoleChanged "role_changed", OwnerDeleted "owner_deleted", CredentialsChanged "credentials_changed",
    StoreRekeyed "store_rekeyed"
}

impl Serialize for SecurityEvent {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// An event with its circumstances. Nothing in it is secret, and nothing is text that a client without a valid token has
/// chosen. A line has only the fields that are set.
#[derive(Debug, Clone, Default, Serialize)]
pub(crate) struct SecurityRecord {
    /// When it happened.
    pub at: Timestamp,
    /// The event.
    pub event: SecurityEvent,
    /// The address of the client.
    pub peer: Option<IpAddr>,
    /// The trusted proxy that sent the request, or the server that forwarded it.
    pub through: Option<IpAddr>,
    /// The caller's API key.
    pub key: Option<Id>,
    /// The key's owner.
    pub owner: Option<Id>,
    /// The followed source that made a change.
    pub source: Option<String>,
    /// The method of the request.
    pub method: Option<&'static str>,
    /// The template of the request's path.
    pub path: Option<Arc<str>>,
    /// The status of the response.
    pub status: Option<u16>,
    /// Why.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub reason: Cow<'static, str>,
    /// The key or owner that was changed.
    pub target: Option<Id>,
    /// The role that an owner was given.
    pub role: Option<Role>,
    /// The ID of the request.
    pub request_id: Option<String>,

    // What only the log itself sets:
    /// How often it was repeated since its first line.
    #[serde(flatten)]
    pub repeated: Option<Repeated>,
    /// The events before this one that the log does not have.
    pub dropped: Option<NonZero<u64>>,
    /// The hash of the line before the first one of this file.
    pub previous: Option<String>,
    /// The length of what was cut off.
    pub torn_bytes: Option<usize>,
    /// The digest of what was cut off.
    pub torn_digest: Option<String>,
}

impl SecurityRecord {
    /// Creates the record of an event that happens now.
    pub(crate) fn new(event: SecurityEvent) -> Self {
        Self { at: Timestamp::now(), event, ..Self::default() }
    }
}

/// How often an event was repeated within an interval.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct Repeated {
    /// The number of times.
    pub count: u64,
    /// The first time.
    pub first: Timestamp,
    /// The last time.
    pub last: Timestamp,
}
