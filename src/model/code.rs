//! The error code registry, shared by the API, manifests, plans and the command line (D10).

use std::fmt;

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

const fn info(code: Code, name: &'static str, status: u16, cause: &'static str, cure: &'static str) -> CodeInfo {
    CodeInfo { code, name, status, cause, cure }
}

/// Every code, in the enum's order.
pub const REGISTRY: &[CodeInfo] = &[
    info(
        Code::Syntax,
        "SYNTAX",
        400,
        "The text is not valid YAML or JSON.",
        "Fix the highlighted line. YAML indents with spaces, never tabs, and siblings start in the same column. Documents after a syntax error are not read until it is fixed.",
    ),
    info(
        Code::DuplicateKey,
        "DUPLICATE_KEY",
        400,
        "A mapping has the same key twice, or a header is in two spellings, so one of the two values would be lost silently.",
        "Keep one of the two entries.",
    ),
    info(
        Code::UnknownField,
        "UNKNOWN_FIELD",
        400,
        "The resource or module has no such field. Unknown fields are rejected, not ignored: a misspelt `oauth` would leave a route open.",
        "Correct the spelling, or move the field to where it belongs; `edgewright schema` prints the fields of each kind.",
    ),
    info(
        Code::WrongType,
        "WRONG_TYPE",
        400,
        "The value does not have the field's type.",
        "Use the type that the message names. In YAML, quote text that looks like a number: `min_version: \"1.3\"`.",
    ),
    info(
        Code::UnknownValue,
        "UNKNOWN_VALUE",
        400,
        "The value is not one of the field's allowed values.",
        "Use one of the values that the message lists.",
    ),
    info(Code::Required, "REQUIRED", 400, "A required field is missing or empty.", "Set the field."),
    info(
        Code::TooLong,
        "TOO_LONG",
        400,
        "The text exceeds the field's limit. Limits count bytes of UTF-8, not characters (D7).",
        "Shorten the text.",
    ),
    info(
        Code::OutOfRange,
        "OUT_OF_RANGE",
        400,
        "The number is outside the field's range.",
        "Use a number in the range that the message names.",
    ),
    info(
        Code::InvalidFormat,
        "INVALID_FORMAT",
        400,
        "The text does not have the field's format.",
        "Use the format that the message names.",
    ),
    info(
        Code::NotAllowed,
        "NOT_ALLOWED",
        400,
        "The field cannot be combined with another field's value.",
        "Remove or change one of the fields that the message names.",
    ),
    info(
        Code::Immutable,
        "IMMUTABLE",
        400,
        "The field cannot change after creation.",
        "Create a new resource and delete the old one. Reconciling a manifest does both.",
    ),
    info(
        Code::UnknownReference,
        "UNKNOWN_REFERENCE",
        400,
        "The referenced resource does not exist.",
        "Create the resource first, or correct the name or ID.",
    ),
    info(
        Code::InvalidPem,
        "INVALID_PEM",
        400,
        "The text is not PEM of the type that the field requires.",
        "Export the PEM again, for example with `openssl x509 -in FILE -outform pem`.",
    ),
    info(
        Code::KeyMismatch,
        "KEY_MISMATCH",
        400,
        "The private key does not belong to the first certificate of the chain.",
        "Put the leaf certificate first and use its private key; `openssl x509 -pubkey -noout` and `openssl pkey -pubout` must print the same public key.",
    ),
    info(
        Code::InvalidXml,
        "INVALID_XML",
        400,
        "The identity provider's metadata is not a SAML EntityDescriptor.",
        "Download the metadata again and paste the whole document, without a DTD.",
    ),
    info(
        Code::EmptyFile,
        "EMPTY_FILE",
        400,
        "The file contains only whitespace. It may be half-written, and reading it as \"no resources\" would delete everything it declared.",
        "Restore the content, delete the file, or leave a comment in it.",
    ),
    info(
        Code::EmptySource,
        "EMPTY_SOURCE",
        400,
        "No manifest was found. An empty source never means \"delete everything\".",
        "Check the path, and that the checkout or volume is complete.",
    ),
    info(
        Code::Unreadable,
        "UNREADABLE",
        400,
        "A file or folder cannot be read or written, or a manifest file is larger than 64 MiB.",
        "Check that it exists, that the current user has access, and that the disk is not full.",
    ),
    info(
        Code::NotUtf8,
        "NOT_UTF8",
        400,
        "The text is not valid UTF-8.",
        "Save the file as UTF-8, for example with `iconv -t UTF-8`.",
    ),
    info(
        Code::TooLarge,
        "TOO_LARGE",
        400,
        "The manifests are over a limit: the number or total size of the files, or the number of values in one file, before or after its aliases are expanded (D48).",
        "Split the file or the source, or use fewer aliases. Move files that are not manifests out of the folder.",
    ),
    info(Code::Tag, "TAG", 400, "A YAML tag (`!Name`) has no meaning in a manifest.", "Remove the tag."),
    info(
        Code::MergeKey,
        "MERGE_KEY",
        400,
        "The value of a merge key `<<` must be a mapping or a list of mappings.",
        "Reference an anchored mapping: `<<: *defaults`.",
    ),
    info(
        Code::ApiVersion,
        "API_VERSION",
        400,
        "The document's apiVersion is missing or unknown.",
        "Set `apiVersion: edgewright/v1`.",
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
        "A name must consist of 1 to 253 lower-case letters, digits, `-` and `.`.",
        "Rename the resource; a name with `_` would be taken for an ID.",
    ),
    info(
        Code::DuplicateName,
        "DUPLICATE_NAME",
        400,
        "Two documents declare the same resource.",
        "Rename or remove one of them, or correct its `metadata.id`.",
    ),
    info(
        Code::EnvUnset,
        "ENV_UNSET",
        400,
        "The environment variable of a `from_env` value is unset.",
        "Set the variable in edgewright's environment. An unset variable never means an empty string.",
    ),
    info(
        Code::FileUnreadable,
        "FILE_UNREADABLE",
        400,
        "The file of a `from_file` value cannot be read.",
        "Check the path; it is relative to the manifest that names it.",
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
        "Remove the resource from one of the two sources.",
    ),
    info(
        Code::PreventDestroy,
        "PREVENT_DESTROY",
        409,
        "The plan would delete or replace a resource with `prevent_destroy` set.",
        "Remove `prevent_destroy` first, in a separate change.",
    ),
    info(
        Code::TooManyDeletions,
        "TOO_MANY_DELETIONS",
        409,
        "The plan exceeds the deletion limit. An incomplete checkout or a wrong folder has this effect.",
        "Check that the manifests are complete. If the deletions are intended, allow them once with --max-deletes.",
    ),
    info(
        Code::NullModule,
        "NULL_MODULE",
        400,
        "A key without a value is null, and null means \"not set\": the module is not configured, or the list has no items.",
        "Use `{}` for a module with its defaults and `[]` for an empty list, or remove the key.",
    ),
    info(
        Code::LintDenied,
        "LINT_DENIED",
        400,
        "A lint at level `deny` has a finding in the manifests; the message starts with the lint's name.",
        "Run `edgewright explain NAME` to see the reason, the fix and how to change the level.",
    ),
    info(
        Code::NotFound,
        "NOT_FOUND",
        404,
        "No resource or endpoint exists at this address.",
        "Check the address and the ID.",
    ),
    info(
        Code::MethodNotAllowed,
        "METHOD_NOT_ALLOWED",
        405,
        "The address does not support this method.",
        "Use one of the methods in the Allow header.",
    ),
    info(
        Code::Unauthenticated,
        "UNAUTHENTICATED",
        401,
        "The request has no valid API key.",
        "Send `Authorization: Bearer TOKEN` with the token of an API key that is not revoked.",
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
        "The API key's owner does not have the required role.",
        "Use a key whose owner has the role that the message names.",
    ),
    info(
        Code::BodyTooLarge,
        "BODY_TOO_LARGE",
        413,
        "The request body exceeds the size limit.",
        "Send a smaller body; check it for text pasted by mistake.",
    ),
    info(
        Code::ContentType,
        "CONTENT_TYPE",
        415,
        "The request body's content type is not JSON.",
        "Send `Content-Type: application/json`.",
    ),
    info(
        Code::Parameter,
        "PARAMETER",
        400,
        "A query parameter is unknown, repeated or out of range.",
        "Set each parameter at most once. Lists take `limit` (1 to 1000), `before_id`, and the filters `filter`, `name`, \
         `source` and `q`; lists of HTTPS edges also take `hostport`, and lists of their routes `match`. Other endpoints \
         take no query parameters.",
    ),
    info(
        Code::PreconditionFailed,
        "PRECONDITION_FAILED",
        412,
        "The resource has changed since its ETag was read.",
        "Read the resource again, reapply the change, and send the new ETag.",
    ),
    info(
        Code::Conflict,
        "CONFLICT",
        409,
        "The resource already exists, or its state does not allow the request.",
        "Read the current state, then adapt the request.",
    ),
    info(
        Code::InUse,
        "IN_USE",
        409,
        "The resource cannot be deleted while other resources reference it.",
        "Remove the references from the resources that the message names first.",
    ),
    info(
        Code::LastAdmin,
        "LAST_ADMIN",
        409,
        "The last admin key cannot be removed, because nobody could manage the gateway without it.",
        "Create another admin key first.",
    ),
    info(
        Code::Timeout,
        "TIMEOUT",
        408,
        "The request did not arrive in time.",
        "Send the request again; if it keeps failing, check the network.",
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
        "Stop the process that uses the port, or choose another port with --listen.",
    ),
    info(
        Code::Stale,
        "STALE",
        409,
        "The plan is out of date: it is not the plan that was reviewed, or the store has changed since it was computed.",
        "Plan again and review the new plan.",
    ),
    info(
        Code::StoreLocked,
        "STORE_LOCKED",
        503,
        "Another process has the store open.",
        "Stop the other process, or use --server if it is an edgewright server.",
    ),
    info(
        Code::StoreFormat,
        "STORE_FORMAT",
        500,
        "The folder is not a store, or a newer version of edgewright wrote it.",
        "Check --store, or use the newer version.",
    ),
    info(
        Code::StoreCorrupt,
        "STORE_CORRUPT",
        500,
        "The store's files are damaged.",
        "Keep a copy of the folder, then restore a backup, or reconcile the manifests into a new store: the IDs stay the same.",
    ),
    info(
        Code::StoreFailed,
        "STORE_FAILED",
        500,
        "The store could not be read or written.",
        "Check free disk space and permissions, then restart.",
    ),
    info(Code::Internal, "INTERNAL", 500, "A bug in edgewright.", "Report the bug with the response's operation ID."),
];

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
