//! The one writer of a store.
//!
//! # The problem
//!
//! Two processes that write would each check rules on a state that the other one changes. A lock of the database keeps a second
//! one out, but it ends with its connection, and the process behind it does not end: it can be stopped for a minute, be
//! continued, and write to a store that has long had another writer. And when a connection is lost while a commit is on its way,
//! nobody has said whether it counts.
//!
//! # The idea
//!
//! A writer holds a session lock for as long as its connection lasts, and takes a higher *epoch* when it begins. Every
//! transaction moves the head only where it has that epoch and the position and hash that the writer expects. One that was
//! overtaken moves nothing, and stops for good.
//!
//! The epoch is higher by a random number. A failover can lose that a writer has begun, and the next one begins at the same
//! epoch as that did: both would otherwise have the same.
//!
//! ```text
//! BEGIN; UPDATE head … WHERE epoch = 7 AND position = 41 AND hash = …; INSERT …; INSERT …; COMMIT
//! ```
//!
//! If the answer to `COMMIT` is lost, the writer connects again, waits until it has the lock (its former connection is gone then,
//! and what it was doing is done or undone), and reads the position. Whether the group counts is read, never guessed. If the
//! database does not come back in time, the group is *in doubt*: its writers are told of an error, and the next commit asks
//! first. If it was kept after all, the state in memory lacks it, and nothing more is written until a restart reads it.
//!
//! A group is sent again only if it is certain that none of it was committed.
//!
//! A process that is stopped keeps its connection, and the lock. So each connection with the lock has a *lease* (`lease`).
//!
//! Once per second the writer reads the head, too: one that was overtaken, or whose history has gone back, then knows it before it
//! writes. It writes to no standby, whose locks are its own.
//!
//! While the database is away, one caller tries to reach it, and all others are told at once what it has found last.

use std::sync::{Arc, MutexGuard};
use std::time::{Duration, Instant};

use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Error};

use super::failure::{is_conflict, is_lost, unreadable};
use super::group_transaction::{GroupFailure, WriterConnection, prepare, write};
use super::head::{self, HeadRow, signed};
use super::lease::SessionLease;
use super::link::DatabaseLink;
use super::row_digests::RowDigests;
use super::rows::GroupRows;
use super::schema::{self, VERSION};
use super::writer_lock::{check_is_primary, check_writable, end_former, lock, locked};
use crate::lock::Lock;
use crate::model::Code;
use crate::store::commit::batch::{Batch, Tip};
use crate::store::engine::Outage;
use crate::store::error::StoreError;
use crate::store::ids;
use crate::store::seal::{Keyring, StoreId};

/// How long a lock is waited for that a process which has just ended may still hold.
const MOMENT: Duration = Duration::from_millis(1500);
/// How long a writer tries to get its lock back from a database that answers.
const BACK: Duration = Duration::from_secs(15);
/// The help for a state in memory that may differ from the one in the database. A server does it by itself.
const READ_AGAIN: &str = "restart, which reads the store again";
/// How often a group is sent, at most.
const ATTEMPTS: usize = 3;

/// Reads the head, and whether the database accepts no writes, in one exchange: once per second.
const PROBE: &str = "SELECT head.*, current_setting('transaction_read_only') = 'on' AS is_read_only \
                     FROM edgewright.head AS head";

/// The writer of a store.
pub(super) struct StoreWriter {
    link: Arc<DatabaseLink>,
    /// How other processes see it.
    name: String,
    store: StoreId,
    epoch: i64,
    digests: RowDigests,
    session: Lock<WriterSession>,
    /// The end of the history, for those who do not wait for a write.
    end: Lock<Tip>,
    /// Why nothing can be written any more.
    stopped: Lock<Option<StoreError>>,
    /// Set while the connection is lost and cannot be opened again.
    outage: Lock<Option<Outage>>,
}

struct WriterSession {
    connection: Option<WriterConnection>,
    /// The process of the server behind the last connection.
    process: i32,
    /// The end of the history.
    tip: Tip,
    /// The end that it has if the last group was kept after all.
    doubt: Option<Tip>,
}

/// A connection that has the lock, and may not have an epoch yet.
pub(super) struct WriterClaim {
    name: String,
    connection: WriterConnection,
    /// The head, if the store exists.
    pub(super) head: Option<HeadRow>,
}

impl WriterClaim {
    /// Takes the lock of the writer, and brings the tables to this version: no other one writes to them then. Nothing changes if the
    /// store is not the known one.
    pub(super) fn take(link: &DatabaseLink, name: String, known: Option<StoreId>) -> Result<Self, StoreError> {
        let client = Arc::new(link.connect(&name)?);
        check_is_primary(link, &client)?;
        let with = Arc::clone(&client);
        let found = link.run("open", async move { schema::version(&with).await })?.unwrap_or_default();
        schema::check(found, link.shown(), false)?;
        if known.is_some() {
            let head = if found > 0 { read_head(link, &client)? } else { None };
            head::check_known(head.as_ref(), known, link.shown())?;
        }
        if !lock(link, &client, MOMENT)? {
            let holder = if found > 0 { read_head(link, &client)? } else { None };
            return Err(locked(link, &holder.map(|head| format!(": {}", head.writer)).unwrap_or_default()));
        }
        let lease = SessionLease::begin(link, &client)?;
        let with = Arc::clone(&client);
        let before = link.run("migrate", async move { schema::migrate(&with).await })?;
        schema::check(before, link.shown(), false)?;
        if before > 0 && before < VERSION {
            tracing::info!("Migrated the tables of {} from version {before} to {VERSION}.", link.shown());
        }
        let head = read_head(link, &client)?;
        // The lock may have been waited for.
        head::check_known(head.as_ref(), known, link.shown())?;
        Ok(Self { name, connection: prepare(link, client, lease)?, head })
    }

    /// Creates a store with these keys, whose history begins after `start`.
    pub(super) fn create(
        &mut self,
        link: &DatabaseLink,
        keyring: &Keyring,
        start: Tip,
        complete: bool,
    ) -> Result<(), StoreError> {
        let (store, data_key) = (keyring.store().to_vec(), keyring.current().to_string());
        let (client, wrapped) = (Arc::clone(&self.connection.client), keyring.wrapped()?);
        link.run("create", async move {
            client.batch_execute("BEGIN").await?;
            let keep = "INSERT INTO edgewright.secrets (keys) VALUES ($1) \
                        ON CONFLICT (one) DO UPDATE SET keys = EXCLUDED.keys";
            client.execute(keep, &[&wrapped]).await?;
            let begin = "INSERT INTO edgewright.head (store, position, hash, revision, next_order, complete, epoch, \
                         writer, url, data_key, kept_position, kept_hash, kept_revision, kept_next_order) \
                         VALUES ($1, $2, $3, $4, $5, $6, 0, '', '', $7, $2, $3, $4, $5)";
            let [position, revision, next_order] = [start.position, start.revision, start.next_order].map(signed);
            let hash = start.hash.to_vec();
            let values: [&(dyn ToSql + Sync); 7] =
                [&store, &position, &hash, &revision, &next_order, &complete, &data_key];
            client.execute(begin, &values).await?;
            client.batch_execute("COMMIT").await
        })?;
        self.head = read_head(link, &self.connection.client)?;
        Ok(())
    }

    /// Begins the next epoch. Returns the head, too.
    pub(super) fn begin(
        self,
        link: &Arc<DatabaseLink>,
        digests: RowDigests,
    ) -> Result<(StoreWriter, HeadRow), StoreError> {
        let missing = || StoreError::new(Code::Internal, "the store has no head");
        let head = self.head.ok_or_else(missing)?;
        let (client, name, former) = (Arc::clone(&self.connection.client), self.name.clone(), head.epoch);
        let epoch = next_epoch(former);
        let sql = "UPDATE edgewright.head SET epoch = $3, writer = $1, url = '' WHERE epoch = $2";
        let begun = link.run("open", async move { client.execute(sql, &[&name, &former, &epoch]).await })?;
        if begun != 1 {
            return Err(locked(link, ""));
        }
        let process = self.connection.process;
        let session = WriterSession { connection: Some(self.connection), process, tip: head.tip, doubt: None };
        let writer = StoreWriter {
            link: Arc::clone(link),
            name: self.name,
            store: head.store,
            epoch,
            digests,
            session: Lock::new(session),
            end: Lock::new(head.tip),
            stopped: Lock::default(),
            outage: Lock::default(),
        };
        Ok((writer, HeadRow { epoch, ..head }))
    }
}

impl StoreWriter {
    /// The end of the history.
    pub(super) fn tip(&self) -> Tip {
        *self.end.lock()
    }

    /// The epoch of the writer.
    pub(super) fn epoch(&self) -> i64 {
        self.epoch
    }

    /// What computes the digests of the rows of the state.
    pub(super) fn digests(&self) -> RowDigests {
        self.digests
    }

    /// Fails if nothing can be written until the store is opened again.
    pub(super) fn health(&self) -> Result<(), StoreError> {
        self.stopped.lock().clone().map_or(Ok(()), Err)
    }

    /// Why nothing can be written now, as the last attempt to reach the database has found.
    pub(super) fn outage(&self) -> Option<Outage> {
        self.outage.lock().clone()
    }

    /// Fails if a write would fail now, and stops if this process is no longer the writer, or if the history has gone back. Opens the
    /// connection again if it was lost: another process takes a lock that nobody holds.
    pub(super) fn probe(&self) -> Result<(), StoreError> {
        let mut session = self.session()?;
        let (client, shown) = (self.connected(&mut session)?.client, self.link.shown());
        let row = self.link.run("read", async move { client.query_typed_opt(PROBE, &[]).await });
        let probed = row.and_then(|row| {
            let Some(row) = row else { return Ok(None) };
            check_writable(row.try_get("is_read_only").map_err(unreadable(shown))?, shown)?;
            HeadRow::from_row(&row, shown).map(Some)
        });
        match probed {
            Ok(Some(head)) if self.is_own(&head) && head.tip == session.tip => Ok(()),
            Ok(head) => {
                session.connection = None;
                Err(self.displaced(head.as_ref()))
            }
            Err(error) => {
                session.connection = None;
                self.note_outage(&error);
                Err(error)
            }
        }
    }

    /// Whether a head is that of this store, and nobody has begun to write after this process.
    fn is_own(&self, head: &HeadRow) -> bool {
        (head.store, head.epoch) == (self.store, self.epoch)
    }

    /// The session, for a caller who needs its connection. While the database is away, nobody waits for a caller who tries to reach it.
    fn session(&self) -> Result<MutexGuard<'_, WriterSession>, StoreError> {
        self.health()?;
        if let Some(Outage { error, .. }) = self.outage() {
            return self.session.try_lock().ok_or(error);
        }
        let session = self.session.lock();
        // Whoever held it may have found that nobody answers.
        self.outage().map_or(Ok(session), |outage| Err(outage.error))
    }

    fn note_outage(&self, error: &StoreError) {
        let begins = || Outage { since: Instant::now(), error: error.clone() };
        self.outage.lock().get_or_insert_with(begins);
    }

    /// Says under which URL other servers reach this process.
    pub(super) fn advertise(&self, url: &str) -> Result<(), StoreError> {
        self.change(|client, epoch| {
            let url = url.to_owned();
            async move { client.execute("UPDATE edgewright.head SET url = $1 WHERE epoch = $2", &[&url, &epoch]).await }
        })
    }

    /// Writes a group of commits after a position. Returns its size.
    pub(super) fn append(&self, after: u64, batches: &[Batch]) -> Result<u64, StoreError> {
        // Before the session is locked: a large group takes a moment.
        let rows = Arc::new(GroupRows::new(self.tip(), batches, self.digests)?);
        let mut session = self.session()?;
        if session.doubt.is_some() {
            self.connected(&mut session)?;
        }
        if session.tip.position != after {
            let message = format!("the history is at record {}, not at {after}", session.tip.position);
            return Err(StoreError::new(Code::StoreFailed, message));
        }
        let mut attempts = 0;
        loop {
            attempts += 1;
            let connection = self.connected(&mut session)?;
            let sent = write(connection, Arc::clone(&rows), self.epoch, session.tip);
            let failure = match self.link.wait(sent) {
                Some(Ok(())) => {
                    self.move_to(rows.end, &mut session);
                    return Ok(rows.bytes);
                }
                Some(Err(failure)) => failure,
                None => GroupFailure::Unsure,
            };
            // What the transaction has done ends with its connection.
            session.connection = None;
            match failure {
                GroupFailure::Moved => return Err(self.overtaken()),
                GroupFailure::Undone(error) if attempts < ATTEMPTS && (is_lost(&error) || is_conflict(&error)) => {}
                GroupFailure::Undone(error) => return Err(self.link.failed("write to", &error)),
                GroupFailure::Unsure => {
                    session.doubt = Some(rows.end);
                    let settled = self.reconnected(&mut session);
                    match settled.map(|connection| (session.tip == rows.end).then_some(connection)) {
                        Ok(Some(connection)) => return self.confirm(connection).map(|()| rows.bytes),
                        Ok(None) if attempts < ATTEMPTS => {}
                        Ok(None) => return Err(self.link.silent("write to")),
                        Err(error) => {
                            let message = format!("{error}; whether the last change was kept is not known yet");
                            // Other codes would say that nothing was changed.
                            return Err(StoreError { code: Code::StoreFailed, message, ..error });
                        }
                    }
                }
            }
        }
    }

    /// Makes a change that can be made twice, if this is still the writer. `change` returns how many rows it has changed: none
    /// if the head has another epoch.
    pub(super) fn change<Q>(&self, change: impl Fn(Arc<Client>, i64) -> Q) -> Result<(), StoreError>
    where
        Q: Future<Output = Result<u64, Error>> + Send + 'static,
    {
        let mut session = self.session()?;
        let mut attempts = 0;
        loop {
            attempts += 1;
            let connection = self.connected(&mut session)?;
            match self.link.wait(change(connection.client, self.epoch)) {
                Some(Ok(0)) => return Err(self.overtaken()),
                Some(Ok(_)) => return Ok(()),
                failed => {
                    session.connection = None;
                    let error = failed.and_then(Result::err);
                    let may_pass = error.as_ref().is_none_or(|error| is_lost(error) || is_conflict(error));
                    if !may_pass || attempts == ATTEMPTS {
                        let Some(error) = error else { return Err(unsure(self.link.silent("write to"))) };
                        let failed = self.link.failed("write to", &error);
                        return Err(if is_lost(&error) { unsure(failed) } else { failed });
                    }
                }
            }
        }
    }

    /// Waits until a group that was found after a lost connection is as durable as one whose commit was answered: this commit waits
    /// for the replicas that must have confirmed it, and all before it.
    fn confirm(&self, connection: WriterConnection) -> Result<(), StoreError> {
        let epoch = self.epoch;
        let touched = self.link.wait(async move {
            let sql = "UPDATE edgewright.head SET writer = writer WHERE epoch = $1";
            connection.client.execute(sql, &[&epoch]).await
        });
        match touched {
            Some(Ok(1)) => Ok(()),
            _ => {
                let message = format!("whether replicas have the last change of {} is unknown", self.link.shown());
                Err(self.stop(StoreError::new(Code::StoreFailed, message).help(READ_AGAIN)))
            }
        }
    }

    /// The connection of the writer. Opens it again if it was lost. Stops if a group was kept whose writers have been told of an
    /// error: the state in memory lacks it.
    fn connected(&self, session: &mut WriterSession) -> Result<WriterConnection, StoreError> {
        let doubt = session.doubt;
        let connection = self.reconnected(session)?;
        if doubt == Some(session.tip) {
            let shown = self.link.shown();
            let message = format!("a change that seemed lost was kept in the store {shown}, and is not in memory");
            return Err(self.stop(StoreError::new(Code::StoreFailed, message).help(READ_AGAIN)));
        }
        Ok(connection)
    }

    /// The connection of the writer. Opens it again if it was lost, and settles what is in doubt.
    fn reconnected(&self, session: &mut WriterSession) -> Result<WriterConnection, StoreError> {
        let connection = self.opened_again(session).inspect_err(|error| self.note_outage(error))?;
        *self.outage.lock() = None;
        Ok(connection)
    }

    fn opened_again(&self, session: &mut WriterSession) -> Result<WriterConnection, StoreError> {
        let open = session.connection.clone().filter(|connection| !connection.client.is_closed());
        if let Some(connection) = open
            && session.doubt.is_none()
        {
            return Ok(connection);
        }
        let former = session.connection.take().map_or(session.process, |connection| connection.process);
        let client = Arc::new(self.link.connect(&self.name)?);
        // What a standby has says nothing: it may be behind.
        check_is_primary(&self.link, &client)?;
        // Before the lock is waited for, which a new writer keeps.
        self.own_head(&client)?;
        end_former(&self.link, &client, former, &self.name);
        let is_locked = lock(&self.link, &client, BACK)?;
        let head = self.own_head(&client)?;
        if !is_locked {
            return Err(locked(&self.link, ""));
        }
        let lease = SessionLease::begin(&self.link, &client)?;
        let connection = prepare(&self.link, client, lease)?;
        match session.doubt.take() {
            _ if head.tip == session.tip => {}
            Some(end) if head.tip == end => self.move_to(end, session),
            _ => return Err(self.overtaken()),
        }
        session.process = connection.process;
        session.connection = Some(connection.clone());
        Ok(connection)
    }

    /// Reads the head. Stops if it is not that of this writer.
    fn own_head(&self, client: &Arc<Client>) -> Result<HeadRow, StoreError> {
        match read_head(&self.link, client)? {
            Some(head) if self.is_own(&head) => Ok(head),
            other => Err(self.displaced(other.as_ref())),
        }
    }

    fn move_to(&self, end: Tip, session: &mut WriterSession) {
        session.tip = end;
        *self.end.lock() = end;
    }

    /// Writes nothing more, because of a head that is not the one which this writer has left, or of another store.
    fn displaced(&self, head: Option<&HeadRow>) -> StoreError {
        let is_replaced = head.is_none_or(|head| head.store != self.store);
        self.link.note_replaced(is_replaced);
        if is_replaced { self.stop(self.link.replaced()) } else { self.overtaken() }
    }

    /// Writes nothing more, because another process is the writer now.
    pub(super) fn overtaken(&self) -> StoreError {
        let message = format!(
            "the store {} was changed or taken over by another process; this one writes nothing more",
            self.link.shown()
        );
        let help = "restart this process if it is the one that shall write";
        self.stop(StoreError::new(Code::StoreLocked, message).help(help))
    }

    /// Writes nothing more, because of an error.
    fn stop(&self, error: StoreError) -> StoreError {
        *self.stopped.lock() = Some(error.clone());
        error
    }
}

/// An epoch after another one, which no other writer has that begins after the same one.
fn next_epoch(former: i64) -> i64 {
    let random = ids::random_secret().first_chunk::<4>().map_or(0, |bytes| u32::from_le_bytes(*bytes));
    former.saturating_add(1).saturating_add(i64::from(random))
}

/// Reads the head, if there is one.
fn read_head(link: &DatabaseLink, client: &Arc<Client>) -> Result<Option<HeadRow>, StoreError> {
    let with = Arc::clone(client);
    let row = link.run("read", async move { with.query_opt(head::READ, &[]).await })?;
    row.map(|row| HeadRow::from_row(&row, link.shown())).transpose()
}

/// The error of a change that may have been made: other codes would say that nothing was changed.
fn unsure(error: StoreError) -> StoreError {
    StoreError { code: Code::StoreFailed, ..error }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_writers_that_begin_after_the_same_one_have_different_epochs() {
        let (one, other) = (next_epoch(7), next_epoch(7));
        assert!(one > 7 && other > 7 && one != other, "{one} {other}");
    }
}
