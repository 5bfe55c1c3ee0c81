//! The registry of error codes, shared by the API, manifests, plans and the command line (D10): one table says each code's
//! name, HTTP status, cause and cure.

use std::fmt;

const PREFIX: &str = "ERR_EDGEWRIGHT_";
const FALLBACK: CodeInfo = CodeInfo { code: Code::Internal, name: "INTERNAL", status: 500, cause: "", cure: "" };

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
    /// Whether only warnings have the code, so that no response of the API fails with it.
    pub fn is_warning(&self) -> bool {
        matches!(self.code, Code::UnreviewedSecrets | Code::UncomparedSecrets | Code::KnownFindings)
    }
}

impl Code {
    /// Returns the registry entry.
    pub fn info(self) -> &'static CodeInfo {
        // The table makes the registry in the enum's order.
        REGISTRY.get(self as usize).unwrap_or(&FALLBACK)
    }

    /// Finds a code by its wire name, with or without `ERR_EDGEWRIGHT_`, ignoring case.
    pub fn from_name(name: &str) -> Option<Self> {
        let name = name.trim().to_uppercase().replace('-', "_");
        let short = name.strip_prefix(PREFIX).unwrap_or(&name);
        REGISTRY.iter().find(|info| info.name == short).map(|info| info.code)
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}{}", self.info().name)
    }
}

/// Declares the codes: the name of each, its HTTP status, its cause, and after the arrow its cure.
macro_rules! codes {
    ($($code:ident $name:literal $status:literal $cause:literal => $cure:literal;)*) => {
        /// An error code. Its wire name is `ERR_EDGEWRIGHT_` followed by the name in the registry.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[allow(missing_docs)] // each is explained in REGISTRY, which `edgewright explain` prints
        pub enum Code {
            $($code,)*
        }

        /// Every code, in the enum's order.
        pub const REGISTRY: &[CodeInfo] =
            &[$(CodeInfo { code: Code::$code, name: $name, status: $status, cause: $cause, cure: $cure },)*];
    };
}

codes! {
    // Codes of manifests and their plans.
    Syntax "SYNTAX" 400
        "The text is not valid YAML or JSON."
        => "Fix the highlighted line. YAML indents with spaces, never tabs, and siblings start in the same column. Documents after a syntax error are not read until it is fixed.";
    DuplicateKey "DUPLICATE_KEY" 400
        "A mapping has a duplicate key, or a header in two spellings, so one of the two values would be silently lost."
        => "Keep one of the two entries.";
    UnknownField "UNKNOWN_FIELD" 400
        "The resource or module has no such field. Unknown fields are rejected, not ignored: a misspelt `oauth` would leave a route open."
        => "Correct the spelling, or move the field to where it belongs; `edgewright schema` prints the fields of each kind.";
    WrongType "WRONG_TYPE" 400
        "The value does not have the field's type."
        => "Use the type that the message names. In YAML, quote text that looks like a number: `min_version: \"1.3\"`.";
    UnknownValue "UNKNOWN_VALUE" 400
        "The value is not one of the field's allowed values."
        => "Use one of the values that the message lists.";
    Required "REQUIRED" 400
        "A required field is missing or empty."
        => "Set the field.";
    TooLong "TOO_LONG" 400
        "The text exceeds the field's limit. Limits count bytes of UTF-8, not characters."
        => "Shorten the text.";
    OutOfRange "OUT_OF_RANGE" 400
        "The number is outside the field's range."
        => "Use a number in the range that the message names.";
    InvalidFormat "INVALID_FORMAT" 400
        "The text does not have the field's format."
        => "Use the format that the message names.";
    NotAllowed "NOT_ALLOWED" 400
        "The field cannot be combined with another field's value."
        => "Remove or change one of the fields that the message names.";
    Immutable "IMMUTABLE" 400
        "The field cannot change after creation."
        => "Create a new resource and delete the old one. Reconciling a manifest does both.";
    UnknownReference "UNKNOWN_REFERENCE" 400
        "The referenced resource does not exist."
        => "Create the resource first, or correct the name or ID.";
    AmbiguousReference "AMBIGUOUS_REFERENCE" 409
        "Several sources have a resource with this name, or the name now refers to a different resource than before."
        => "Write the source before the name, such as `platform/staff`, or use the ID.";
    InvalidPem "INVALID_PEM" 400
        "The text is not PEM of the type that the field requires."
        => "Export the PEM again, for example with `openssl x509 -in FILE -outform pem`.";
    KeyMismatch "KEY_MISMATCH" 400
        "The private key does not belong to the first certificate of the chain."
        => "Put the leaf certificate first and use its private key; `openssl x509 -pubkey -noout` and `openssl pkey -pubout` must print the same public key.";
    InvalidXml "INVALID_XML" 400
        "The identity provider's metadata is not a SAML EntityDescriptor."
        => "Download the metadata again and paste the whole document, without a DTD.";
    EmptyFile "EMPTY_FILE" 400
        "The file contains only whitespace, document separators or nulls. It may be half-written, and reading it as \"no resources\" would delete everything it declared."
        => "Restore the content, delete the file, or leave a comment in it.";
    EmptySource "EMPTY_SOURCE" 400
        "No manifest was found. An empty source never means \"delete everything\"."
        => "Check the path, and that the checkout or volume is complete.";
    Unreadable "UNREADABLE" 400
        "A file or folder cannot be read or written, a manifest file is larger than 64 MiB, or a server cannot be reached."
        => "Check that it exists, that the current user has access, and that the disk is not full; for a server, check the URL and that it runs.";
    NotUtf8 "NOT_UTF8" 400
        "The text is not valid UTF-8."
        => "Save the file as UTF-8, for example with `iconv -t UTF-8`.";
    TooLarge "TOO_LARGE" 400
        "The manifests are over a limit: the number or total size of the files, or the number of values in one file, before or after its aliases are expanded."
        => "Split the file or the source, or use fewer aliases. Move files that are not manifests out of the folder.";
    Tag "TAG" 400
        "A YAML tag (`!Name`) has no meaning in a manifest."
        => "Remove the tag.";
    MergeKey "MERGE_KEY" 400
        "The value of a merge key `<<` must be a mapping or a list of mappings."
        => "Reference an anchored mapping: `<<: *defaults`.";
    ApiVersion "API_VERSION" 400
        "The document's apiVersion is missing or unknown."
        => "Set `apiVersion: edgewright/v1`.";
    UnknownKind "UNKNOWN_KIND" 400
        "The document's kind is missing or unknown."
        => "Use one of the kinds that the message lists.";
    InvalidName "INVALID_NAME" 400
        "A name must consist of 1 to 253 lower-case letters, digits, `-` and `.`."
        => "Rename the resource; a name with `_` would be taken for an ID.";
    DuplicateName "DUPLICATE_NAME" 400
        "Two documents declare the same resource."
        => "Rename or remove one of them, or correct its `metadata.id`.";
    EnvUnset "ENV_UNSET" 400
        "The environment variable of a `from_env` value is unset."
        => "Set the variable in edgewright's environment. An unset variable never means an empty string.";
    FileUnreadable "FILE_UNREADABLE" 400
        "The file of a `from_file` value cannot be read."
        => "Check the path; it is relative to the manifest that names it.";
    OutsideFile "OUTSIDE_FILE" 400
        "A manifest or a value comes from a file outside the source tree, which a reviewer of the tree cannot see."
        => "Move the file into the tree, or run with --allow-outside-files.";
    OwnerConflict "OWNER_CONFLICT" 409
        "Another source owns this resource."
        => "Remove the resource from one of the two sources, or move it with `edgewright transfer`.";
    TransferPending "TRANSFER_PENDING" 409
        "A resource is moving to another source, and one of the two sources has not completed its part. The resource is not changed."
        => "Set `transfer_to` in the manifest of the old source and `transfer_from` in that of the new one, and apply both. Afterwards, remove the resource from the old source.";
    RolledBack "ROLLED_BACK" 409
        "A rollback returned a resource to its previous source, but the manifests of both sources still declare the transfer as complete. The resource is not changed."
        => "Declare the resource in the source that owns it now, or move it again with `edgewright transfer`.";
    PreventDestroy "PREVENT_DESTROY" 409
        "The plan would delete or replace a resource with `prevent_destroy` set."
        => "Remove `prevent_destroy` first, in a separate change.";
    TooManyDeletions "TOO_MANY_DELETIONS" 409
        "The plan exceeds the deletion limit. An incomplete checkout or the wrong folder is a common cause."
        => "Check that the manifests are complete. If the deletions are intended, allow them once with --max-deletes, or with `max_deletes` of a followed source.";
    NotConfirmed "NOT_CONFIRMED" 400
        "`edgewright destroy` requires the name of the source; on a terminal, `rollback` and `reconcile --store` with a new store require a `yes`."
        => "Type what the question asks for; `destroy` also takes the name of the source with `--confirm`, and `rollback` takes `--yes`.";
    NullModule "NULL_MODULE" 400
        "A key without a value is null, and null means \"not set\": the key configures no module, or the list has no items."
        => "Set the fields of the module, or `{}` if its defaults are enough; write `[]` for an empty list; or remove the key.";
    LintDenied "LINT_DENIED" 400
        "A lint at level `deny` has a finding in the manifests; the message starts with the lint's name."
        => "Run `edgewright explain NAME` to see the reason, the fix and how to change the level.";
    RouteTestFailed "ROUTE_TEST_FAILED" 400
        "A route test of the source fails: a request is not handled as its `expect` says, so the source is not applied. As a warning: the test is marked with `informing_only`."
        => "Compare the expectation with the request path in the help, and correct the routes or the test. `edgewright test` shows the results of all tests, and `edgewright trace` why a route handles a request.";
    // Codes of requests, the server, the store, and conflicts between sources.
    NotFound "NOT_FOUND" 404
        "No resource or endpoint exists at this address."
        => "Check the address and the ID.";
    MethodNotAllowed "METHOD_NOT_ALLOWED" 405
        "The address does not support this method."
        => "Use one of the methods in the Allow header.";
    Unauthenticated "UNAUTHENTICATED" 401
        "The request has no valid API key."
        => "Send `Authorization: Bearer TOKEN` with the token of an API key that is not revoked.";
    VersionHeader "VERSION_HEADER" 400
        "The version header is missing or names an unknown version."
        => "Send the header that the message names.";
    Forbidden "FORBIDDEN" 403
        "The API key's owner does not have the required role, the key's scope does not cover the request, or the request would change a key or an owner with a role above its own. In manifests: the source declares a resource or reads a variable that its entry in the configuration file does not allow, or a manifest reads a variable of edgewright itself."
        => "Use a key with the role and the scope that the message names, or ask an admin.";
    InsecureTransport "INSECURE_TRANSPORT" 403
        "The connection would not be encrypted: `serve` would listen on other addresses than loopback without TLS, the gateway configuration, which has private keys, was asked for without TLS from another machine, or a request with a client certificate would be forwarded to a server without TLS. Only the address of the connection counts: headers such as `X-Forwarded-For` have no effect."
        => "Start the server with --tls-cert and --tls-key. Behind a reverse proxy on the same machine, listen on a loopback address.";
    MalformedRequest "MALFORMED_REQUEST" 400
        "The client did not send an HTTP request, sent one over HTTP/1.1 without exactly one `Host` header, or sent it without TLS to a port that speaks TLS."
        => "Check that the URL has the right scheme and port, and that nothing between client and server changes requests.";
    HeadTooLarge "HEAD_TOO_LARGE" 431
        "The URL and the headers of the request are larger than the server accepts."
        => "Send fewer and shorter headers, and a shorter query.";
    BodyTooLarge "BODY_TOO_LARGE" 413
        "The request body exceeds the size limit."
        => "Send a smaller body; check it for text pasted by mistake.";
    ContentType "CONTENT_TYPE" 415
        "The request body's content type is not JSON."
        => "Send `Content-Type: application/json`.";
    Parameter "PARAMETER" 400
        "A query parameter is unknown, repeated or out of range."
        => "Set each parameter at most once. Lists take `limit` (1 to 1000), `before_id`, and the filters `filter`, `name`, `source` and `q`; lists of HTTPS edges also take `hostport`, and lists of their routes `match`. `/watch` takes `since`, `kind` and `source`. Other endpoints take no query parameters.";
    PreconditionFailed "PRECONDITION_FAILED" 412
        "The resource has changed since its ETag was read."
        => "Read the resource again, reapply the change, and send the new ETag.";
    Conflict "CONFLICT" 409
        "The resource or the file already exists, or its state does not allow the request."
        => "Read the current state, then adapt the request; for a file, use another name.";
    InUse "IN_USE" 409
        "The resource cannot be deleted while other resources reference it. As a warning: the source no longer declares the resource, but it is kept because another source uses it."
        => "Remove the references from the resources that the message names first.";
    LastAdmin "LAST_ADMIN" 409
        "The last admin key cannot be removed, because nobody could manage the gateway without it."
        => "Create another admin key without a scope first, such as with `edgewright keys create --role admin`.";
    InvariantBroken "INVARIANT_BROKEN" 409
        "After the change, an invariant would not hold: the message has a request that breaks it. Invariants count for every change, whichever source or person makes it. As a warning, it would not hold if a route of another source did not take the request."
        => "Change what the message names so that the invariant holds, or ask the owner of the invariant for an exemption.";
    InvariantUnproven "INVARIANT_UNPROVEN" 409
        "Whether an invariant holds after the change cannot be decided, because it depends on facts outside the configuration, such as the effect of a policy. With `unproven: deny`, the change is refused; otherwise, this is a warning."
        => "Add a module with a known effect, or check what the message names, and ask the owner of the invariant.";
    Timeout "TIMEOUT" 408
        "A request did not arrive in time, or its response was lost."
        => "Check whether the change was made, and send the request again; if that keeps failing, check the network.";
    RateLimited "RATE_LIMITED" 429
        "The API key has exceeded the rate limit (`--rate-limit`, requests per second), its owner has reached the limit of requests in progress and in the queue, the owner's changes have filled their share of the history, or the client's address has sent too many requests without a valid API key."
        => "Wait for the time in `Retry-After`, then send the request again. Apply many changes as one reconciliation, which is one record of the history, or raise `--history-records`. Requests with a valid API key are never limited by what others send from their address.";
    Unavailable "UNAVAILABLE" 503
        "The server cannot handle this request now: it is overloaded, shutting down, or not ready. Nothing was changed."
        => "Send the request again after the time in `Retry-After`; `/readyz` says why a server is not ready.";
    NotTheWriter "NOT_THE_WRITER" 503
        "Another server writes to the store in the database. This one follows it and answers read requests. It could not forward the request: the other server has no `--advertise-url`, cannot be reached, no longer writes, or has a different clock; or this server has just stopped being the writer. Nothing was changed."
        => "Send the request again after the time in `Retry-After`: if the writer is gone, another server takes its place within seconds. Set `--advertise-url` on every server, and SSL_CERT_FILE if a private authority issued the certificate at that URL.";
    WriterLost "WRITER_LOST" 503
        "The server forwarded the request to the writer, and received no usable response. The change may have been made."
        => "Check whether the change was made, and send the request again if it was not.";
    NotCaughtUp "NOT_CAUGHT_UP" 503
        "The server does not have the revision that `If-Revision-At-Least` names, or `since` and `Last-Event-ID` of `/watch` and `/gateway/configuration`, even after waiting: it follows the writer and is behind, or the store has no such revision, for example because an older copy was restored."
        => "Send the request again after the time in `Retry-After`, or without the header.";
    CannotListen "CANNOT_LISTEN" 500
        "The server cannot listen on the address, or on the socket that the service manager has passed."
        => "Stop the process that uses the port, or choose another port with --listen. A socket unit must have one ListenStream= with an IP address and a port, which is also that of --listen if that is set.";
    Stale "STALE" 409
        "The plan is out of date: it is not the plan that was reviewed, or the store has changed since it was computed."
        => "Plan again and review the new plan.";
    MissingFiles "MISSING_FILES" 409
        "The request refers to files by digests that the server does not have for the owner of the API key; `missing` lists them. The server keeps the texts of files in memory, so a restart or a full cache loses them."
        => "Repeat the request with the missing texts. If the cache of the server is too small, raise `--file-cache-mib` there.";
    RevisionGone "REVISION_GONE" 410
        "The revision is no longer available. An old state cannot be restored if the history no longer has every change made since, or if a version of edgewright that did not keep previous states made one of them. `/watch` sends only recent changes, which the server keeps in memory. The store may also never have had the revision in `since` or `Last-Event-ID`, for example because an older copy of the store was restored."
        => "Use a newer revision; the message names the oldest or the current one. `--history-records` and `--history-days` limit how long the history is kept. To watch again, omit `since`, read the resources, and apply the changes that follow.";
    RevisionNotFound "REVISION_NOT_FOUND" 404
        "The store has never had this revision, or no revision in its history was applied from this commit."
        => "Run `edgewright history` to list the revisions, or use `latest`.";
    SlowReader "SLOW_READER" 408
        "A client of `/watch` read more slowly than resources changed, and was disconnected. The server keeps only a small buffer for each client."
        => "Connect again with the id of the last event. If it happens often, select fewer changes with `kind` and `source`, or read events before handling them.";
    FetchFailed "FETCH_FAILED" 503
        "The remote repository of a source could not be fetched. The last commit that was fetched stays in effect."
        => "Fix what the message names: the network, the URL, the credentials or the host key. The server retries automatically, at least every 10 minutes, or once per interval if that is longer.";
    UnverifiedCommit "UNVERIFIED_COMMIT" 403
        "The source only accepts commits that are signed with an allowed SSH key (`verify`), and this commit is not. The last good state stays in effect."
        => "Sign the commit with an allowed key, or add the key to the file of allowed signers.";
    Rewound "REWOUND" 409
        "The commit does not descend from the one that the source applied last: its branch was moved back, its history was rewritten, or a tag was moved or removed. A signature does not expire, so this can bring back any earlier state. With `verify`, the commit is not applied; without, this is a warning."
        => "Find out who moved the revision. Push a commit that descends from the last one, such as a revert or a merge, or accept the commit: `edgewright resume SOURCE --accept-commit COMMIT`.";
    StoreLocked "STORE_LOCKED" 503
        "Another process has the store open."
        => "Stop the other process. If it is an edgewright server, work through it instead: add `--server URL`, and set EDGEWRIGHT_TOKEN to the token of an API key.";
    StoreFormat "STORE_FORMAT" 500
        "The folder is not a store, or a newer version of edgewright wrote it."
        => "Check --store. If a newer version of edgewright wrote the store, use that version.";
    StoreCorrupt "STORE_CORRUPT" 500
        "The store's files are damaged."
        => "Run `edgewright store repair`, which keeps a copy and shows what can be recovered, or restore a backup, or reconcile the manifests into a new store: their IDs stay the same.";
    StoreFailed "STORE_FAILED" 500
        "The store could not be read or written."
        => "Check free disk space and permissions, then restart.";
    StoreUnavailable "STORE_UNAVAILABLE" 503
        "The database with the store cannot be reached, does not answer, has a full disk, or accepts no writes; the message names the cause. No resource was changed. The server still answers read requests."
        => "Check that PostgreSQL runs, is reachable at the address in --store, has free disk space, and is neither a standby nor read-only; see its log. Then send the request again: the server reconnects automatically.";
    MasterKey "MASTER_KEY" 500
        "The master key, which encrypts the secrets in the store, is missing, is invalid, or belongs to another store."
        => "Set one of --master-key-file, --master-key-command and EDGEWRIGHT_MASTER_KEY to the store's master key, or restore the key file next to the store. If the key is lost, reconcile the manifests into a new store.";
    SecretsGone "SECRETS_GONE" 410
        "A resource had secrets that can no longer be decrypted: the data key of an earlier revision is destroyed after 30 days (`--secret-days`), or by `edgewright store rekey --forget-secrets`."
        => "Roll back to a later revision, or roll back one source with `--source`. Set the secrets again by reconciling manifests or through the API.";
    AssumedValues "ASSUMED_VALUES" 400
        "With `--secrets=assume`, stored values replaced unset `from_env` and `from_file` values; those without a stored value are unknown. Rules and lints that need an unknown value are skipped."
        => "No action is needed if the secrets are missing on purpose, as in a pull request from a fork. To check everything, set the values, and run without `--secrets=assume`.";
    ManagedBySource "MANAGED_BY_SOURCE" 409
        "A source owns the resource, and `rest_writes` in the server's configuration file refuses the request; or `Edgewright-Override` does not name that source."
        => "Change the manifest that the message names. In an emergency, suspend the source, or send `Edgewright-Override` if its policy is `header`.";
    NotDelegated "NOT_DELEGATED" 409
        "A route is on an edge of another source or takes requests for a path prefix that is delegated to another one, or an edge has a host of another source's edge, and the owner of that edge has not consented."
        => "Ask the owner of the edge to add the source and path prefix that the message names to `delegates_to` in the edge's manifest, or use an edge of your own.";
    RequiredModule "REQUIRED_MODULE" 409
        "The edge requires this module of every route (`required_modules`), but the route would have a different one or none."
        => "Remove the module from the route: reconciling adds the one that the edge requires. In an emergency, suspend the source of the edge.";
    UnreviewedSecrets "UNREVIEWED_SECRETS" 409
        "The plan was reviewed with an API key that cannot read the source's secrets, so the review does not cover their values."
        => "No action is needed if the secrets come from a trusted place, such as the pipeline's variables. To cover them, review the plan with a key that may apply the source.";
    UncomparedSecrets "UNCOMPARED_SECRETS" 409
        "The caller cannot read the secrets that the manifests set, so the plan does not show whether they change."
        => "No action is needed if only other changes matter. To compare the secrets, plan with an API key that may apply the source, or whose scope has `secrets`.";
    KnownFindings "KNOWN_FINDINGS" 409
        "Warnings that the manifests at `--base` also have are counted, not listed."
        => "No action is needed to review the change. To see all warnings, omit `--base`.";
    Internal "INTERNAL" 500
        "A bug in edgewright."
        => "Report the bug with the response's operation ID.";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_is_found_by_its_wire_name() {
        for (index, info) in REGISTRY.iter().enumerate() {
            assert_eq!(info.code as usize, index, "{}", info.name);
            assert_eq!(Code::from_name(&info.code.to_string()), Some(info.code));
        }
    }
}
