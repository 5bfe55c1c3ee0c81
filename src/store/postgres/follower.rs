//! A process that follows the writer of a store: it reads what that one commits, and knows whether it is there.
//!
//! It looks at the head several times per second. A lock that it shares with others, for the time of one statement, shows whether
//! the writer has its lock: that gets in nobody's way, since whoever takes the lock tries for longer. Nothing is guessed while
//! the database does not answer: a writer counts as gone only from a look that has found its lock free.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio_postgres::Client;
use tokio_postgres::types::{ToSql, Type};

use super::failure::damaged;
use super::head::HeadRow;
use super::keys;
use super::link::DatabaseLink;
use super::questions::HistoryQuestions;
use super::schema::WRITER_LOCK;
use crate::lock::Lock;
use crate::model::Code;
use crate::store::commit::batch::{Batch, Tip};
use crate::store::engine::FollowedWriter;
use crate::store::error::StoreError;
use crate::store::seal::Keyring;

/// How long data keys may stay in memory that the writer has destroyed.
const KEYS: Duration = Duration::from_secs(60);

/// Reads the head, and whether the lock of the writer is free, in one exchange: several times per second.
const LOOK: &str = "SELECT head.*, pg_try_advisory_xact_lock_shared($1) AS is_free FROM edgewright.head AS head";

/// What a process knows of the writer that it follows.
pub(super) struct Follower {
    link: Arc<DatabaseLink>,
    /// Its own connection: a long question about the history must not hide that the writer is gone.
    client: Lock<Option<Arc<Client>>>,
    writer: Lock<FollowedWriter>,
    /// The wrapped data keys that it has, and when they were read.
    wrapped: Lock<(Vec<u8>, Instant)>,
}

impl Follower {
    /// Begins with the writer that the head names and the wrapped data keys of the store.
    pub(super) fn new(link: Arc<DatabaseLink>, head: &HeadRow, wrapped: Vec<u8>) -> Self {
        let (name, url) = (head.writer.clone(), head.url.clone());
        let writer = FollowedWriter { name, url, gone_since: None, seen: Instant::now() };
        let wrapped = Lock::new((wrapped, Instant::now()));
        Self { link, client: Lock::default(), writer: Lock::new(writer), wrapped }
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

    /// Looks at the head and at the lock of the writer. Returns the head, and the next commits after the known end.
    pub(super) fn news(
        &self,
        known: Tip,
        history: &HistoryQuestions,
        keyring: &Keyring,
    ) -> Result<(HeadRow, Vec<Batch>), StoreError> {
        let (head, shown) = (self.look()?, self.link.shown());
        if head.store != keyring.store() {
            return Err(damaged(shown, "another store is in its place now"));
        }
        let HeadRow { tip, .. } = head;
        if tip.position < known.position || (tip.position == known.position && tip.hash != known.hash) {
            return Err(damaged(shown, format!("record {} of its history is no longer there", known.position)));
        }
        let has_news = tip.position > known.position;
        let batches = if has_news { history.page(known.position, tip.position)? } else { Vec::new() };
        // After the commits: the keys that they need are saved before them.
        if has_news || self.wrapped.lock().1.elapsed() > KEYS {
            self.renew_keys(keyring)?;
        }
        self.writer.lock().seen = Instant::now();
        Ok((head, batches))
    }

    fn look(&self) -> Result<HeadRow, StoreError> {
        let looked = self.link.ask_over(&self.client, "edgewright (follower)", "read", |client| async move {
            let lock: (&(dyn ToSql + Sync), Type) = (&WRITER_LOCK, Type::INT8);
            let row = client.query_typed_one(LOOK, &[lock]).await?;
            let is_free: bool = row.try_get("is_free")?;
            Ok((row, is_free))
        });
        let looked = looked.and_then(|(row, is_free)| Ok((HeadRow::from_row(&row, self.link.shown())?, is_free)));
        let mut writer = self.writer.lock();
        match looked {
            Ok((head, is_free)) => {
                let since = writer.gone_since.unwrap_or_else(Instant::now);
                writer.name.clone_from(&head.writer);
                writer.url.clone_from(&head.url);
                writer.gone_since = is_free.then_some(since);
                Ok(head)
            }
            Err(error) => {
                writer.gone_since = None;
                Err(error)
            }
        }
    }

    fn renew_keys(&self, keyring: &Keyring) -> Result<(), StoreError> {
        let read = keys::read(&self.link)?;
        let mut wrapped = self.wrapped.lock();
        if wrapped.0 != read {
            keys::renew(keyring, &read, self.link.shown())?;
        }
        *wrapped = (read, Instant::now());
        Ok(())
    }
}
