//! Errors of the database, as messages of the store.

use std::error::Error as _;
use std::io;

use rustls::{CertificateError, Error as TlsError};
use tokio_postgres::Error;
use tokio_postgres::error::SqlState;

use crate::model::Code;
use crate::store::error::StoreError;

/// The error of something that the database did not do; `doing` completes "cannot …". The message has what the server says,
/// never its details, which can have values of rows. A connection that is gone passes, so the same can be tried again later.
pub(super) fn failed(doing: &str, shown: &str, error: &Error) -> StoreError {
    let said = match (error.as_db_error(), error.source()) {
        (Some(error), _) => error.message().to_owned(),
        (None, Some(source)) => format!("{error}: {source}"),
        (None, None) => error.to_string(),
    };
    let code = if is_away(error) { Code::StoreUnavailable } else { Code::StoreFailed };
    let cause = passing(error).map(|(cause, _)| cause);
    let failed = StoreError::new(code, format!("cannot {doing} the store {shown}: {said}")).help(cure(error));
    StoreError { cause, ..failed }
}

/// The help for a database that does not answer.
pub(super) const CURE: &str =
    "check that PostgreSQL runs and can be reached with this address; the log of PostgreSQL says more";
const PASSWORD: &str = "set PGPASSWORD, EDGEWRIGHT_DATABASE_PASSWORD_COMMAND, or a password file (`passfile`, PGPASSFILE \
                        or ~/.pgpass) that only its owner can read";

/// The cause that the client has for a missing password.
const PASSWORD_MISSING: &str = "password missing";

/// The help for an error. A refused connection needs another address, file or setting than one that nobody answers.
fn cure(error: &Error) -> &'static str {
    if let Some((_, cure)) = passing(error) {
        return cure;
    }
    if let Some(code) = error.code() {
        return match code {
            code if *code == SqlState::INVALID_PASSWORD => PASSWORD,
            code if *code == SqlState::INVALID_AUTHORIZATION_SPECIFICATION => {
                "check the user, `sslmode` and `sslcert` in the address against `pg_hba.conf` of PostgreSQL"
            }
            _ => CURE,
        };
    }
    let Some(cause) = error.source() else { return CURE };
    let inner = cause.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
    match inner.and_then(|inner| inner.downcast_ref::<TlsError>()) {
        Some(TlsError::InvalidCertificate(CertificateError::UnknownIssuer)) => {
            "set `sslrootcert` in the address to the authority that signed the server's certificate"
        }
        Some(TlsError::InvalidCertificate(
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
        )) => "use a host name in the address that the server's certificate has, or issue a certificate for this one",
        Some(TlsError::InvalidCertificate(CertificateError::Expired | CertificateError::ExpiredContext { .. })) => {
            "renew the server's certificate; if it is valid, set the clock of this machine"
        }
        Some(TlsError::InvalidCertificate(_)) => {
            "have an authority issue a certificate for the server; an authority's own certificate is not accepted"
        }
        Some(TlsError::AlertReceived(_)) => {
            "check `sslcert` and `sslkey` in the address: `ssl_ca_file` of PostgreSQL must have their authority"
        }
        Some(_) => CURE,
        // The client has no types for these.
        None => match cause.to_string().as_str() {
            PASSWORD_MISSING => PASSWORD,
            "server does not support TLS" => {
                "turn on `ssl` in PostgreSQL, or set `sslmode=disable` if nobody else can read this connection"
            }
            _ => CURE,
        },
    }
}

/// Whether the server asks for a password, and none was found.
pub(super) fn lacks_password(error: &Error) -> bool {
    error.source().is_some_and(|cause| cause.to_string() == PASSWORD_MISSING)
}

/// Whether the server has answered, so that the connection is not what failed, and the same may succeed when it is tried again.
pub(super) fn is_conflict(error: &Error) -> bool {
    let code = error.code();
    code == Some(&SqlState::T_R_SERIALIZATION_FAILURE) || code == Some(&SqlState::T_R_DEADLOCK_DETECTED)
}

/// Whether the connection is gone: there was no answer, or one that says that the server ends it.
pub(super) fn is_lost(error: &Error) -> bool {
    error.code().is_none_or(|code| code.code().starts_with("57P") || code.code().starts_with("08"))
}

/// The cause of errors of a database that accepts no writes.
pub(super) const READ_ONLY: &str = "accepts no writes";

/// The errors of PostgreSQL that may pass, with their cause, which completes "the database …", and the help. A statement that has
/// failed so has done nothing.
static PASSING: [(SqlState, &str, &str); 10] = [
    (SqlState::DISK_FULL, "has no free disk space", "free disk space for PostgreSQL, and make the change again then"),
    (SqlState::OUT_OF_MEMORY, "is out of memory", "check the memory of PostgreSQL, `work_mem` and `max_connections`"),
    (SqlState::TOO_MANY_CONNECTIONS, "has no free connection", "raise `max_connections`, or end other connections"),
    (SqlState::CONFIGURATION_LIMIT_EXCEEDED, "has reached a limit of its configuration", CURE),
    (SqlState::INSUFFICIENT_RESOURCES, "lacks resources", CURE),
    (
        SqlState::READ_ONLY_SQL_TRANSACTION,
        READ_ONLY,
        "check whether this PostgreSQL is a standby, and `default_transaction_read_only`",
    ),
    (
        SqlState::QUERY_CANCELED,
        "cancelled the statement",
        "check `statement_timeout` of PostgreSQL, and what it waits for",
    ),
    (SqlState::CANNOT_CONNECT_NOW, "is starting or stopping", CURE),
    (
        SqlState::INVALID_CATALOG_NAME,
        "does not exist",
        "check the name of the database in the address; if it is being restored, wait until it is there",
    ),
    (
        SqlState::UNDEFINED_TABLE,
        "lacks the tables of the store",
        "check that the database still has the tables of the store; if it is being restored, wait until it has them",
    ),
];

/// The cause and the help of an error that may pass.
fn passing(error: &Error) -> Option<(&'static str, &'static str)> {
    let found = error.code()?;
    PASSING.iter().find(|(code, ..)| code == found).map(|(_, cause, cure)| (*cause, *cure))
}

/// Whether the database is away or cannot do it now, so that the same may succeed later. A refused password or certificate does not
/// make it so.
pub(super) fn is_away(error: &Error) -> bool {
    use std::io::ErrorKind::{InvalidData, InvalidInput, Other, PermissionDenied, Unsupported};
    let cause = error.source().and_then(|source| source.downcast_ref::<io::Error>());
    match (error.code(), cause) {
        // Pools report wrong names and passwords as a violation of the protocol.
        (Some(code), _) if *code == SqlState::PROTOCOL_VIOLATION => false,
        (Some(_), _) => is_lost(error) || passing(error).is_some(),
        // None of several hosts allows writes: their replicas may not have a primary yet.
        (None, Some(cause)) if cause.kind() == PermissionDenied && cause.raw_os_error().is_none() => true,
        // The client has these for answers that it cannot accept.
        (None, Some(cause)) => {
            !matches!(cause.kind(), InvalidData | InvalidInput | Other | PermissionDenied | Unsupported)
        }
        (None, None) => error.is_closed(),
    }
}

/// The error of a database that has another store than the one that this process has read, or none.
pub(super) fn replaced(shown: &str) -> StoreError {
    let message = format!(
        "the database {shown} has another store now, or none; this process keeps what it has read, and changes nothing"
    );
    let help = "bring the former store back, or restart the process if it is to use the one that is there now";
    StoreError::new(Code::StoreFormat, message).help(help)
}

/// The error of a row that cannot be read.
pub(super) fn unreadable(shown: &str) -> impl Fn(Error) -> StoreError {
    move |error| damaged(shown, format!("a row cannot be read: {error}"))
}

/// The error of a row that has not what was written.
pub(super) fn damaged(shown: &str, found: impl std::fmt::Display) -> StoreError {
    let help = "restore a backup into an empty database, or copy a local copy there with `edgewright store copy`";
    StoreError::new(Code::StoreCorrupt, format!("the store {shown} is damaged: {found}")).help(help)
}
