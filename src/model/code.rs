//! The error code registry, shared by the API, manifests, plans and the command line (D10).

mod registry;

use std::fmt;

pub use registry::REGISTRY;
use registry::info;

/// An error code. Its wire name is `ERR_EDGEWRIGHT_` followed by the name in the registry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs)] // each is explained in REGISTRY, which `edgewright explain` prints
pub enum Code {
    Syntax,
    DuplicateKey,
    UnknownField,
    WrongType,
    UnknownValue,
    Required,
    TooLong,
    OutOfRange,
    InvalidFormat,
    NotAllowed,
    Immutable,
    UnknownReference,
    InvalidPem,
    KeyMismatch,
    InvalidXml,
    EmptyFile,
    EmptySource,
    Unreadable,
    NotUtf8,
    TooLarge,
    Tag,
    MergeKey,
    ApiVersion,
    UnknownKind,
    InvalidName,
    DuplicateName,
    EnvUnset,
    FileUnreadable,
    OutsideFile,
    OwnerConflict,
    TransferPending,
    PreventDestroy,
    TooManyDeletions,
    NotConfirmed,
    NullModule,
    LintDenied,
    NotFound,
    MethodNotAllowed,
    Unauthenticated,
    VersionHeader,
    Forbidden,
    InsecureTransport,
    MalformedRequest,
    HeadTooLarge,
    BodyTooLarge,
    ContentType,
    Parameter,
    PreconditionFailed,
    Conflict,
    InUse,
    LastAdmin,
    Timeout,
    RateLimited,
    Unavailable,
    CannotListen,
    Stale,
    MissingFiles,
    RevisionGone,
    RevisionNotFound,
    SlowReader,
    FetchFailed,
    UnverifiedCommit,
    StoreLocked,
    StoreFormat,
    StoreCorrupt,
    StoreFailed,
    MasterKey,
    SecretsGone,
    AssumedValues,
    ManagedBySource,
    NotDelegated,
    RequiredModule,
    Internal,
}

/// A registry entry.
#[derive(Debug, Clone, Copy)]
pub struct CodeInfo {
    /// The code.
    pub code: Code,
    /// The name after `ERR_EDGEWRIGHT_`.
    pub name: &'static str,
    /// The API's HTTP status.
    pub status: u16,
    /// Why the code is reported.
    pub cause: &'static str,
    /// How to fix the error.
    pub cure: &'static str,
}

impl Code {
    /// Returns the registry entry.
    pub fn info(self) -> &'static CodeInfo {
        // A test keeps the registry in the enum's order.
        REGISTRY.get(self as usize).unwrap_or(&FALLBACK)
    }

    /// Finds a code by its wire name, with or without `ERR_EDGEWRIGHT_`, ignoring case.
    pub fn from_name(name: &str) -> Option<Self> {
        let name = name.trim().to_uppercase().replace('-', "_");
        let short = name.strip_prefix(PREFIX).unwrap_or(&name);
        REGISTRY.iter().find(|info| info.name == short).map(|info| info.code)
    }
}

const PREFIX: &str = "ERR_EDGEWRIGHT_";
static FALLBACK: CodeInfo = info(Code::Internal, "INTERNAL", 500, "", "");

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}{}", self.info().name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_registry_follows_the_enum() {
        for (index, info) in REGISTRY.iter().enumerate() {
            assert_eq!(info.code as usize, index, "{}", info.name);
            assert_eq!(Code::from_name(&info.code.to_string()), Some(info.code));
        }
        assert_eq!(Code::Internal as usize + 1, REGISTRY.len());
    }
}
