//! A process that follows the writer of a store: it reads what that one commits, and knows whether it is there.
//!
//! It polls the head several times per second. A lock that it shares with others, for the time of one statement, shows whether
//! the writer has its lock: that gets in nobody's way, since whoever takes the lock tries for longer. Nothing is guessed while
//! the database does not answer: a writer counts as gone only from a poll that has found its lock free. Nothing is concluded from a
//! standby either, to which the address can lead during a failover: it can be behind, and the lock of the writer is free there.
//!
//! It also forgets what the writer forgets: data keys that were destroyed, and the tombstones of the time that the history no longer
//! has. And it takes in nothing from tables of a newer version, whose meaning it cannot know.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio_postgres::Row;
use tokio_postgres::types::{ToSql, Type};

use super::failure::{damaged, replaced};
use super::head::HeadRow;
use super::keys;
use super::link::{DatabaseLink, QuestionConnection};
use super::questions::{Columns, HistoryQuestions};
use super::schema::{self, WRITER_LOCK};
use super::writer_lock::check_writable;
use crate::lock::Lock;
use crate::model::Code;
use crate::store::commit::batch::{Batch, Tip};
use crate::store::commit::record_key::DELETED;
use crate::store::engine::{FollowedWriter, Forgotten};
use crate::store::error::StoreError;
use crate::store::seal::{KeyId, Keyring, StoreId};

/// How often the connection to a standby is opened again: another one may lead to the primary.
const REOPEN: Duration = Duration::from_secs(1);

/// Reads the head, whether the lock of the writer is free, whether the database accepts no writes, the version of the tables and that of
/// the row with the data keys, in one exchange: several times per second.
const POLL: &str = "SELECT head.*, pg_try_advisory_xact_lock_shared($1) AS is_free, \
                    current_setting('transaction_read_only') = 'on' AS is_read_only, \
                    (SELECT version FROM edgewright.schema_version) AS version, \
                    (SELECT xmin::text FROM edgewright.secrets) AS keys FROM edgewright.head AS head";

/// The knowledge of a process about the writer that it follows.
pub(super) struct Follower {
    /// Questions over a separate connection: a long one about the history must neither hide that the writer is gone nor hold up
    /// its commits.
    history: HistoryQuestions,
    writer: Lock<FollowedWriter>,
    /// The version of the row with the wrapped data keys when they were read.
    keys: Lock<Option<String>>,
    /// After which commit the history began when the tombstones were read.
    kept: AtomicU64,
    /// When a connection to a standby was last closed.
    standby_left: Lock<Option<Instant>>,
}

impl Follower {
    /// Begins with the head of the store.
    pub(super) fn new(link: Arc<DatabaseLink>, head: &HeadRow) -> Self {
        let (name, url) = (head.writer.clone(), head.url.clone());
        let writer = FollowedWriter { name, url, began: None, gone_since: None, seen: Instant::now() };
        let over = QuestionConnection::new("edgewright (follower)");
        Self {
            history: HistoryQuestions { link, over },
            writer: Lock::new(writer),
            keys: Lock::default(),
            kept: AtomicU64::new(head.kept.position),
            standby_left: Lock::default(),
        }
    }

    /// The writer, as it was seen last.
    pub(super) fn writer(&self) -> FollowedWriter {
        self.writer.lock().clone()
    }

    /// Why this process changes nothing. The message has no address: clients see it.
    pub(super) fn refusal(&self) -> StoreError {
        let message = format!("this server only follows the one that writes: {}", self.writer.lock().name);
        let help =
            "send the request to that server, or wait: when it is gone, one of those that follow takes its place";
        StoreError::new(Code::NotTheWriter, message).help(help)
    }

    /// Polls the head and the lock of the writer. Returns the head, the next commits after the known end, and what the writer has
    /// forgotten since the last time.
    pub(super) fn batches_after(
        &self,
        known: Tip,
        keyring: &Keyring,
    ) -> Result<(HeadRow, Vec<Batch>, Forgotten), StoreError> {
        let ((head, keys), shown) = (self.poll(keyring.store())?, self.history.shown());
        let HeadRow { tip, kept, .. } = head;
        if kept.position > known.position {
            let message = format!("what follows record {} of its history is no longer kept", known.position);
            return Err(StoreError::new(Code::StoreCorrupt, message));
        }
        if tip.position < known.position || (tip.position == known.position && tip.hash != known.hash) {
            return Err(damaged(shown, format!("record {} of its history is no longer there", known.position)));
        }
        let has_new = tip.position > known.position;
        let batches =
            if has_new { self.history.page(known.position, tip.position, Columns::Ignored)? } else { Vec::new() };
        let has_same_start = kept.position == self.kept.load(Ordering::Relaxed);
        let tombstones = if has_same_start { None } else { Some(self.tombstones()?) };
        // They were read after the head, and the keys that commits need are saved before them.
        let secrets = self.renew_keys(keyring, keys)?;
        self.kept.store(kept.position, Ordering::Relaxed);
        self.writer.lock().seen = Instant::now();
        Ok((head, batches, Forgotten { secrets, tombstones }))
    }

    /// The keys of the tombstones that are left. The writer drops others before it moves the beginning of the history.
    fn tombstones(&self) -> Result<BTreeSet<String>, StoreError> {
        let rows = self.history.ask(|client| async move {
            let sql = "SELECT key FROM edgewright.state WHERE key >= 'd/'::bytea AND key < 'd0'::bytea";
            client.query(sql, &[]).await
        })?;
        let key = |row: &Row| -> Option<String> {
            let key = String::from_utf8(row.try_get(0).ok()?).ok()?;
            key.starts_with(DELETED).then_some(key)
        };
        Ok(rows.iter().filter_map(key).collect())
    }

    /// Polls the head, which must be that of a store, and the version of the row with the data keys. Nothing of another one is noted.
    fn poll(&self, store: StoreId) -> Result<(HeadRow, Option<String>), StoreError> {
        let polled = self.history.ask(|client| async move {
            let lock: (&(dyn ToSql + Sync), Type) = (&WRITER_LOCK, Type::INT8);
            let row = client.query_typed_one(POLL, &[lock]).await?;
            let version: i32 = row.try_get("version")?;
            let (is_read_only, is_free): (bool, bool) = (row.try_get("is_read_only")?, row.try_get("is_free")?);
            Ok((version, is_read_only, is_free, row.try_get("keys")?, row))
        });
        let polled = polled.and_then(|(version, is_read_only, is_free, keys, row)| {
            // A standby may be behind, and the lock of the writer is free there.
            check_writable(is_read_only, self.history.shown()).inspect_err(|_| self.leave_standby())?;
            // One of a newer version can mean something else.
            schema::check(version, self.history.shown(), true)?;
            let head = HeadRow::from_row(&row, self.history.shown())?;
            let is_replaced = head.store != store;
            self.history.link.note_replaced(is_replaced);
            if is_replaced { Err(replaced(self.history.shown())) } else { Ok((head, is_free, keys)) }
        });
        let mut writer = self.writer.lock();
        match polled {
            Ok((head, is_free, keys)) => {
                let since = writer.gone_since.unwrap_or_else(Instant::now);
                if writer.name != head.writer {
                    writer.began = Some(Instant::now());
                }
                writer.name.clone_from(&head.writer);
                writer.url.clone_from(&head.url);
                writer.gone_since = is_free.then_some(since);
                Ok((head, keys))
            }
            Err(error) => {
                writer.gone_since = None;
                Err(error)
            }
        }
    }

    /// Closes the connections to a standby, unless that was done a moment ago.
    fn leave_standby(&self) {
        let mut left = self.standby_left.lock();
        if left.is_none_or(|at| at.elapsed() >= REOPEN) {
            self.history.over.close();
            self.history.link.questions().close();
            *left = Some(Instant::now());
        }
    }

    /// Takes in the data keys if the writer has changed them since a version of their row. Returns whether some were destroyed.
    fn renew_keys(&self, keyring: &Keyring, version: Option<String>) -> Result<bool, StoreError> {
        let mut known = self.keys.lock();
        if version.is_some() && *known == version {
            return Ok(false);
        }
        let before = usable(keyring);
        keys::renew(keyring, &keys::read(&self.history.link, &self.history.over)?, self.history.shown())?;
        *known = version;
        Ok(!before.is_subset(&usable(keyring)))
    }
}

/// The data keys that decrypt.
fn usable(keyring: &Keyring) -> BTreeSet<KeyId> {
    keyring.former().into_iter().map(|key| key.id).chain([keyring.current()]).collect()
}
