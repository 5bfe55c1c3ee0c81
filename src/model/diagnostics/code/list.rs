//! The list of all error codes.

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
    AmbiguousReference,
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
    RolledBack,
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
    Rewound,
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
    UnreviewedSecrets,
    UncomparedSecrets,
    OpensAccess,
    KnownFindings,
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

impl CodeInfo {
    /// Whether the code is only that of warnings, which no response of the API fails with.
    pub fn is_warning(&self) -> bool {
        matches!(self.code, Code::UnreviewedSecrets | Code::UncomparedSecrets | Code::OpensAccess | Code::KnownFindings)
    }
}

pub(super) const fn info(
    code: Code,
    name: &'static str,
    status: u16,
    cause: &'static str,
    cure: &'static str,
) -> CodeInfo {
    CodeInfo { code, name, status, cause, cure }
}
