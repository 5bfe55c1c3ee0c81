//! The registry of codes: one list for the API, manifests, plans and the command line (D10).

use std::fmt;

/// A kind of fault. Its wire name is `ERR_EDGEWRIGHT_` and the name in the registry.
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
    PreventDestroy,
    TooManyDeletions,
    NullModule,
    LintDenied,
    NotFound,
    MethodNotAllowed,
    Unauthenticated,
    VersionHeader,
    Forbidden,
    BodyTooLarge,
    ContentType,
    Parameter,
    PreconditionFailed,
    Conflict,
    InUse,
    LastAdmin,
    Timeout,
    Unavailable,
    CannotListen,
    Stale,
    StoreLocked,
    StoreFormat,
    StoreCorrupt,
    StoreFailed,
    Internal,
}

/// What the registry knows of a code.
#[derive(Debug, Clone, Copy)]
pub struct CodeInfo {
    /// The code.
    pub code: Code,
    /// The name behind `ERR_EDGEWRIGHT_`.
    pub name: &'static str,
    /// The HTTP status that the API answers with.
    pub status: u16,
    /// Why it is reported.
    pub cause: &'static str,
    /// What to do about it.
    pub cure: &'static str,
}

const fn info(code: Code, name: &'static str, status: u16, cause: &'static str, cure: &'static str) -> CodeInfo {
    CodeInfo { code, name, status, cause, cure }
}

/// Every code, in the order of the enum.
pub const REGISTRY: &[CodeInfo] = &[
    info(
        Code::Syntax,
        "SYNTAX",
        400,
        "The text is not YAML or JSON.",
        "Mend the marked line. YAML indents with spaces, never tabs, and siblings start in the same column. The documents after a syntax error are not read until it is gone.",
    ),
    info(
        Code::DuplicateKey,
        "DUPLICATE_KEY",
        400,
        "A mapping has the same key twice, so one of the two values would be lost without a word.",
        "Keep one of them.",
    ),
    info(
        Code::UnknownField,
        "UNKNOWN_FIELD",
        400,
        "The field is not part of this resource or module. It is refused instead of ignored: a misspelt `oauth` would leave a route open.",
        "Correct the spelling, or move the field to where it belongs; `edgewright schema` prints the fields of each kind.",
    ),
    info(
        Code::WrongType,
        "WRONG_TYPE",
        400,
        "The value has another type than the field takes.",
        "Write the type that the message names. In YAML, quote what looks like a number but is text: `min_version: \"1.3\"`.",
    ),
    info(
        Code::UnknownValue,
        "UNKNOWN_VALUE",
        400,
        "The field takes one of a few words, and this is none of them.",
        "Use one of the words that the message lists.",
    ),
    info(Code::Required, "REQUIRED", 400, "A field that is needed here is missing or empty.", "Add it."),
    info(
        Code::TooLong,
        "TOO_LONG",
        400,
        "The text is over the field's limit. Limits count bytes of UTF-8, not characters (D7).",
        "Shorten it.",
    ),
    info(
        Code::OutOfRange,
        "OUT_OF_RANGE",
        400,
        "The number is outside the range of the field.",
        "Use a number inside the range that the message names.",
    ),
    info(
        Code::InvalidFormat,
        "INVALID_FORMAT",
        400,
        "The text does not have the form that the field needs.",
        "Write it in the form that the message names.",
    ),
    info(
        Code::NotAllowed,
        "NOT_ALLOWED",
        400,
        "The field is legal by itself but not together with another one.",
        "Remove one of the two, as the message says.",
    ),
    info(
        Code::Immutable,
        "IMMUTABLE",
        400,
        "The field is fixed when the resource is created.",
        "Create a new resource and delete the old one; a manifest does this by itself.",
    ),
    info(
        Code::UnknownReference,
        "UNKNOWN_REFERENCE",
        400,
        "The resource that is named here does not exist.",
        "Create it first, or correct the name or id.",
    ),
    info(
        Code::InvalidPem,
        "INVALID_PEM",
        400,
        "The text is not the PEM that the field needs.",
        "Export it again, for example with `openssl x509 -in FILE -outform pem`.",
    ),
    info(
        Code::KeyMismatch,
        "KEY_MISMATCH",
        400,
        "The private key does not belong to the first certificate of the chain.",
        "Put the leaf certificate first and give the key it was issued for; `openssl x509 -pubkey -noout` and `openssl pkey -pubout` must print the same.",
    ),
    info(
        Code::InvalidXml,
        "INVALID_XML",
        400,
        "The identity provider's metadata is not a SAML EntityDescriptor.",
        "Download the metadata again and paste it whole, without a DTD.",
    ),
    info(
        Code::EmptyFile,
        "EMPTY_FILE",
        400,
        "The file holds nothing but white space. It may be half-written, and reading it as \"no resources\" would delete what it held.",
        "Restore its content, delete the file, or leave a comment in it.",
    ),
    info(
        Code::EmptySource,
        "EMPTY_SOURCE",
        400,
        "No manifest was found. An empty source is never read as \"delete everything\".",
        "Check the path and that the checkout or volume is complete.",
    ),
    info(
        Code::Unreadable,
        "UNREADABLE",
        400,
        "A file or folder of the source cannot be read.",
        "Check that it exists and that this user may read it.",
    ),
    info(
        Code::NotUtf8,
        "NOT_UTF8",
        400,
        "The text is not UTF-8.",
        "Save it as UTF-8, for example with `iconv -t UTF-8`.",
    ),
    info(
        Code::TooLarge,
        "TOO_LARGE",
        400,
        "The manifests are over a limit: the size of a file or of all files, the number of files, or the number of values in one file after its aliases are expanded (D48).",
        "Split the file, or use fewer aliases. A stray file that is no manifest belongs outside the folder.",
    ),
    info(Code::Tag, "TAG", 400, "A YAML tag (`!Name`) has no meaning in a manifest.", "Remove the tag."),
    info(
        Code::MergeKey,
        "MERGE_KEY",
        400,
        "A merge key `<<` takes a mapping or a list of mappings.",
        "Point it at an anchored mapping: `<<: *defaults`.",
    ),
    info(
        Code::ApiVersion,
        "API_VERSION",
        400,
        "The document's apiVersion is missing or unknown.",
        "Write `apiVersion: edgewright/v1`.",
    ),
    info(
        Code::UnknownKind,
        "UNKNOWN_KIND",
        400,
        "The document's kind is missing or unknown.",
        "Use one of the kinds that the message lists.",
    ),
    info(
        Code::InvalidName,
        "INVALID_NAME",
        400,
        "A name has lower-case letters, digits, '-' and '.', at most 253 of them.",
        "Rename it; a name with '_' would be taken for an id.",
    ),
    info(
        Code::DuplicateName,
        "DUPLICATE_NAME",
        400,
        "Two documents declare the same resource.",
        "Rename or remove one of them.",
    ),
    info(
        Code::EnvUnset,
        "ENV_UNSET",
        400,
        "The environment variable that a value comes from is not set.",
        "Set it where edgewright runs. An empty string is never assumed.",
    ),
    info(
        Code::FileUnreadable,
        "FILE_UNREADABLE",
        400,
        "The file that a value comes from cannot be read.",
        "Check the path: it is relative to the manifest that names it.",
    ),
    info(
        Code::OutsideFile,
        "OUTSIDE_FILE",
        400,
        "A manifest or a value comes from a file outside the source tree, which a reviewer of the tree cannot see.",
        "Move the file into the tree, or run with --allow-outside-files.",
    ),
    info(
        Code::OwnerConflict,
        "OWNER_CONFLICT",
        409,
        "Another source owns this resource.",
        "Let one source own it: remove it from one of the two.",
    ),
    info(
        Code::PreventDestroy,
        "PREVENT_DESTROY",
        409,
        "The plan would delete or replace a resource that is marked `prevent_destroy`.",
        "Remove the mark in a change of its own first.",
    ),
    info(
        Code::TooManyDeletions,
        "TOO_MANY_DELETIONS",
        409,
        "The plan would delete more than a normal change does. Half a checkout or a wrong folder looks like this.",
        "Check that the manifests are complete. If the deletions are meant, allow them once with --max-deletes.",
    ),
    info(
        Code::NullModule,
        "NULL_MODULE",
        400,
        "A key without a value is null, and null means \"not given\": the module is not configured, the list has no items.",
        "Write `{}` for a module with its defaults and `[]` for a list without items, or remove the key.",
    ),
    info(
        Code::LintDenied,
        "LINT_DENIED",
        400,
        "A lint whose level is `deny` has found a mistake in the manifests; the message starts with its name.",
        "`edgewright explain NAME` tells why it is one, and how to mend it or to set another level.",
    ),
    info(
        Code::NotFound,
        "NOT_FOUND",
        404,
        "There is nothing at this address.",
        "Check the address and the identifier.",
    ),
    info(
        Code::MethodNotAllowed,
        "METHOD_NOT_ALLOWED",
        405,
        "The address exists, but not for this method.",
        "Use one of the methods of the Allow header.",
    ),
    info(
        Code::Unauthenticated,
        "UNAUTHENTICATED",
        401,
        "The request has no valid API key.",
        "Send `Authorization: Bearer TOKEN` with the token of a key that was not revoked.",
    ),
    info(
        Code::VersionHeader,
        "VERSION_HEADER",
        400,
        "The version header is missing or names an unknown version.",
        "Send the header that the message names.",
    ),
    info(
        Code::Forbidden,
        "FORBIDDEN",
        403,
        "The key's owner may not do this.",
        "Use a key of an owner with the role that the message names.",
    ),
    info(
        Code::BodyTooLarge,
        "BODY_TOO_LARGE",
        413,
        "The request body is over the limit.",
        "Send less; long texts that no resource needs are often pasted by mistake.",
    ),
    info(
        Code::ContentType,
        "CONTENT_TYPE",
        415,
        "The body is not declared as JSON.",
        "Send `Content-Type: application/json`.",
    ),
    info(
        Code::Parameter,
        "PARAMETER",
        400,
        "A query parameter is unknown, repeated or out of range.",
        "Lists take `limit` (1 to 1000) and `before_id`, each at most once; other endpoints take no query parameters.",
    ),
    info(
        Code::PreconditionFailed,
        "PRECONDITION_FAILED",
        412,
        "The resource has changed since its ETag was read.",
        "Read it again, repeat the change on what it is now, and send the new ETag.",
    ),
    info(
        Code::Conflict,
        "CONFLICT",
        409,
        "The resource exists already, or its state does not allow the request.",
        "Read the current state and decide again.",
    ),
    info(
        Code::InUse,
        "IN_USE",
        409,
        "The resource is named by others and cannot be deleted.",
        "Remove it from the resources that the message names first.",
    ),
    info(
        Code::LastAdmin,
        "LAST_ADMIN",
        409,
        "Without its last admin key nobody could manage the gateway.",
        "Create another admin key first.",
    ),
    info(
        Code::Timeout,
        "TIMEOUT",
        408,
        "The request did not arrive in time.",
        "Send it again over a better connection.",
    ),
    info(
        Code::Unavailable,
        "UNAVAILABLE",
        503,
        "The server cannot take this request now: it has too much work, is shutting down, or is not ready. Nothing was changed.",
        "Send the request again after the time in `Retry-After`; `/readyz` says why a server is not ready.",
    ),
    info(
        Code::CannotListen,
        "CANNOT_LISTEN",
        500,
        "The server cannot listen on the address.",
        "Another process may have the port: stop it, or choose another one with --listen.",
    ),
    info(
        Code::Stale,
        "STALE",
        409,
        "The store has changed since the plan was made.",
        "Plan again and review the new plan.",
    ),
    info(
        Code::StoreLocked,
        "STORE_LOCKED",
        503,
        "Another process has the store open.",
        "One process has a store at a time: stop it, or work through it with --server.",
    ),
    info(
        Code::StoreFormat,
        "STORE_FORMAT",
        500,
        "The folder is not a store, or a newer edgewright wrote it.",
        "Check --store, or use the newer version.",
    ),
    info(
        Code::StoreCorrupt,
        "STORE_CORRUPT",
        500,
        "The store's files are damaged.",
        "Keep a copy of the folder, then restore a backup or reconcile the manifests into a new store: the ids stay the same.",
    ),
    info(
        Code::StoreFailed,
        "STORE_FAILED",
        500,
        "The store could not be read or written.",
        "Check free space and permissions, and restart.",
    ),
    info(Code::Internal, "INTERNAL", 500, "A defect of edgewright.", "Report it with the operation id of the answer."),
];

impl Code {
    /// What the registry says of this code.
    pub fn info(self) -> &'static CodeInfo {
        // The registry is in the order of the enum (a test holds it to that).
        REGISTRY.get(self as usize).unwrap_or(&FALLBACK)
    }

    /// The code that goes by a wire name, with or without `ERR_EDGEWRIGHT_`, in any case.
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
