//! The lock that one writer has, and where there is none to take: a standby accepts no writes, and its locks are its own.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio_postgres::Client;

use super::failure::READ_ONLY;
use super::link::DatabaseLink;
use super::schema::WRITER_LOCK;
use crate::model::Code;
use crate::store::error::StoreError;

/// The pause between two tries.
const PAUSE: Duration = Duration::from_millis(50);

/// Takes the lock of the writer at a primary. Returns whether it could: another connection may keep it.
pub(super) fn lock(link: &DatabaseLink, client: &Arc<Client>, timeout: Duration) -> Result<bool, StoreError> {
    let started = Instant::now();
    loop {
        let with = Arc::clone(client);
        let is_locked = link.run("lock", async move {
            let row = with.query_one("SELECT pg_try_advisory_lock($1)", &[&WRITER_LOCK]).await?;
            row.try_get::<_, bool>(0)
        })?;
        if is_locked || started.elapsed() >= timeout {
            return Ok(is_locked);
        }
        std::thread::sleep(PAUSE);
    }
}

/// Fails if a connection leads to a database that accepts no writes.
pub(super) fn check_is_primary(link: &DatabaseLink, client: &Arc<Client>) -> Result<(), StoreError> {
    let with = Arc::clone(client);
    let is_read_only: bool = link.run("read", async move {
        let sql = "SELECT current_setting('transaction_read_only') = 'on'";
        with.query_one(sql, &[]).await?.try_get(0)
    })?;
    // Questions that were asked meanwhile may have gone there, too.
    check_writable(is_read_only, link.shown()).inspect_err(|_| link.questions().close())
}

/// Fails if a database accepts no writes, as `transaction_read_only` says, which is always on at a standby: that has locks of its own,
/// so one that is taken there keeps no other writer out.
pub(super) fn check_writable(is_read_only: bool, shown: &str) -> Result<(), StoreError> {
    if !is_read_only {
        return Ok(());
    }
    let message = format!("the database {shown} {READ_ONLY}: it is a standby, or set to be read-only");
    let help = "check `pg_is_in_recovery()` and `default_transaction_read_only`; of several hosts in the address, the \
                one that allows writes is used";
    Err(StoreError { cause: Some(READ_ONLY), ..StoreError::new(Code::StoreUnavailable, message).help(help) })
}

/// Ends the former connection of this writer, which the server may not know to be gone. Its number may be another one's by now,
/// so the name must be the same, too.
pub(super) fn end_former(link: &DatabaseLink, client: &Arc<Client>, process: i32, name: &str) {
    let (with, name) = (Arc::clone(client), name.to_owned());
    let sql = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid = $1 AND application_name = $2";
    // If it may not, the lock is waited for.
    let _ = link.run("open", async move { with.execute(sql, &[&process, &name]).await });
}

/// The error of a store that another process writes; `by` names it, after a colon.
pub(super) fn locked(link: &DatabaseLink, by: &str) -> StoreError {
    let message = format!("the store {} is in use by another process{by}", link.shown());
    let help = "stop that process, or work through it: add `--server URL`, and set EDGEWRIGHT_TOKEN";
    StoreError::new(Code::StoreLocked, message).help(help)
}
