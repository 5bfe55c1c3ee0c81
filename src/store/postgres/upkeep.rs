//! What a folder does in its checkpoints: new data keys, the end of old ones, retention, and the removal of tokens.
//!
//! The state in the database is always the current one, so there is nothing to write only so that a start is quick. But a data
//! key that is retired must leave the state, or it could never be destroyed. So the rows of the state are sealed again, in
//! pieces, each of them only where no later commit has written the row: commits go on meanwhile. What commits after that point
//! have written is looked through before a key is destroyed.
//!
//! All of it has a connection of its own, and none of it counts for a writer that was overtaken. A transaction of a process that is
//! stopped ends before another one takes its place, which would wait for its locks.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Error};

use super::failure::{is_conflict, unreadable};
use super::group_transaction::INSERT_ENTRIES;
use super::head::{signed, unsigned};
use super::lease::bound;
use super::link::DatabaseLink;
use super::questions::HistoryQuestions;
use super::rows::{CommitRows, GroupRows, StateRows};
use super::writer::StoreWriter;
use crate::files::fault;
use crate::lock::Lock;
use crate::store::commit::batch::{Batch, Tip};
use crate::store::commit::header::Retention;
use crate::store::commit::record;
use crate::store::commit::record_key::DELETED;
use crate::store::engine::{BatchEdit, History, StateRecords};
use crate::store::error::StoreError;
use crate::store::maintenance::resealing::Resealing;
use crate::store::seal::{KeyId, Keyring};
use crate::store::trusted_time::{REMOVAL, TrustedMoment, most_at_once};

/// How many bytes of commits make upkeep due: about as many as make a checkpoint of a folder due.
const DUE_BYTES: u64 = 8 << 20;
/// How often a change is sent that stands in the way of a commit.
const ATTEMPTS: usize = 5;

/// Locks the head, as commits do: it has the sum of the digests of the state.
const HOLD: &str = "SELECT 1 FROM edgewright.head WHERE epoch = $1 FOR UPDATE";
const RESEAL: &str = "WITH sealed AS (\
         UPDATE edgewright.state AS s SET value = v.value, digest = v.digest \
         FROM UNNEST($1::bytea[], $2::bytea[], $3::bigint[]) AS v (key, value, digest), edgewright.state AS former \
         WHERE s.key = v.key AND former.key = v.key AND s.position <= $4 AND s.value <> v.value \
         RETURNING v.digest::numeric - former.digest AS moved) \
     UPDATE edgewright.head SET state_digest = state_digest + (SELECT sum(moved) FROM sealed) \
         WHERE EXISTS (SELECT 1 FROM sealed)";
/// The tombstones up to a position that are not among the given ones. Read before the head is locked: it looks at all of them.
const DOOMED: &str = "SELECT key FROM edgewright.state WHERE key >= 'd/'::bytea AND key < 'd0'::bytea AND position <= $1 \
                      AND NOT key = ANY($2::bytea[])";
const FORGET: &str = "WITH gone AS (\
         DELETE FROM edgewright.state WHERE key = ANY($1::bytea[]) AND position <= $2 RETURNING digest) \
     UPDATE edgewright.head SET state_digest = state_digest - (SELECT sum(digest) FROM gone) \
         WHERE EXISTS (SELECT 1 FROM gone)";

/// The upkeep of a store, by its writer.
pub(super) struct Upkeep {
    link: Arc<DatabaseLink>,
    writer: Arc<StoreWriter>,
    keyring: Arc<Keyring>,
    resealing: Resealing,
    /// The bytes of commits since the last one.
    since: AtomicU64,
    /// The end of the history when it began.
    began: Lock<Option<Tip>>,
}

impl Upkeep {
    /// Starts with the data key of the state.
    pub(super) fn new(
        link: Arc<DatabaseLink>,
        writer: Arc<StoreWriter>,
        keyring: Arc<Keyring>,
        data_key: KeyId,
    ) -> Self {
        let resealing = Resealing::new(data_key, Arc::clone(&keyring));
        Self { link, writer, keyring, resealing, since: AtomicU64::new(0), began: Lock::default() }
    }

    /// Notes that commits were written.
    pub(super) fn note(&self, bytes: u64) {
        self.since.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Whether the upkeep is due.
    pub(super) fn is_due(&self) -> bool {
        let least = fault::checkpoint_bytes().unwrap_or(DUE_BYTES);
        self.since.load(Ordering::Relaxed) > least || self.resealing.is_due()
    }

    /// Begins, between two groups of commits: what is prepared from now on is sealed with the next data key, if that is due.
    pub(super) fn begin(&self) -> Result<(), StoreError> {
        self.resealing.rotate_if_due()?;
        *self.began.lock() = Some(self.writer.tip());
        Ok(())
    }

    /// Does everything that is due, with the records of the state at its beginning. Returns the position up to which the history
    /// is removed.
    pub(super) fn finish(
        &self,
        state: &mut StateRecords<'_>,
        retention: &Retention,
    ) -> Result<Option<u64>, StoreError> {
        let Some(tip) = self.began.lock().take() else { return Ok(None) };
        let before = self.since.swap(0, Ordering::Relaxed);
        self.resealing.begin();
        let done = self.finish_at(tip, state, retention);
        done.inspect_err(|_| {
            self.since.fetch_add(before, Ordering::Relaxed);
        })
    }

    fn finish_at(
        &self,
        tip: Tip,
        state: &mut StateRecords<'_>,
        retention: &Retention,
    ) -> Result<Option<u64>, StoreError> {
        let client = self.connect()?;
        let moment = self.resealing.moment();
        let key = self.keyring.current();
        let has_expired = self.keyring.has_expired(moment.ages);
        let reseals = has_expired || self.resealing.state_key() != key;
        self.write_again(&client, tip, state, reseals)?;
        if reseals {
            let name = key.to_string();
            self.writer.change(move |client, epoch| {
                let name = name.clone();
                async move {
                    let sql = "UPDATE edgewright.head SET data_key = $1 WHERE epoch = $2";
                    client.execute(sql, &[&name, &epoch]).await
                }
            })?;
            self.resealing.written(key);
        }
        let (removed, mut has_aged) = self.retain(&client, retention, tip, moment)?;
        if has_expired {
            let mut used = self.keys_after(&client, tip)?;
            used.insert(key);
            has_aged |= self.resealing.destroy_unused(&used, moment)?;
        }
        if has_aged {
            self.resealing.note_removal();
        }
        Ok(removed)
    }

    fn connect(&self) -> Result<Arc<Client>, StoreError> {
        let client = Arc::new(self.link.connect("edgewright (upkeep)")?);
        bound(&self.link, &client)?;
        Ok(client)
    }

    /// Drops the tombstones that the state no longer has and, if asked for, seals its records again.
    fn write_again(
        &self,
        client: &Arc<Client>,
        tip: Tip,
        state: &mut StateRecords<'_>,
        reseals: bool,
    ) -> Result<(), StoreError> {
        let (mut tombstones, mut pieces) = (Vec::new(), Vec::new());
        for record in state {
            let (key, value) = record?;
            // Tombstones come first.
            if key.starts_with(DELETED) {
                tombstones.push(key.into_bytes());
                continue;
            }
            if !reseals {
                break;
            }
            StateRows::push(&mut pieces, self.writer.digests(), key.into_bytes(), 0, value);
            if pieces.len() > 1 {
                self.seal_again(client, tip, pieces.remove(0))?;
            }
        }
        for piece in pieces {
            self.seal_again(client, tip, piece)?;
        }
        let (with, position) = (Arc::clone(client), signed(tip.position));
        let doomed = self.link.run("read", async move {
            let rows = with.query(DOOMED, &[&position, &tombstones]).await?;
            rows.iter().map(|row| row.try_get(0)).collect::<Result<Vec<Vec<u8>>, Error>>()
        })?;
        if doomed.is_empty() {
            return Ok(());
        }
        let doomed = Arc::new(doomed);
        self.change(|epoch| {
            let (with, keys) = (Arc::clone(client), Arc::clone(&doomed));
            async move { change_state(&with, epoch, FORGET, &[&*keys, &position]).await }
        })
    }

    /// Writes a piece of the state, where no later commit has written it.
    fn seal_again(&self, client: &Arc<Client>, tip: Tip, piece: StateRows) -> Result<(), StoreError> {
        let (piece, position) = (Arc::new(piece), signed(tip.position));
        self.change(|epoch| {
            let (with, rows) = (Arc::clone(client), Arc::clone(&piece));
            async move { change_state(&with, epoch, RESEAL, &[&rows.key, &rows.value, &rows.digest, &position]).await }
        })
    }

    /// Makes a change, and again if it has stood in the way of a commit.
    fn change<Q>(&self, change: impl Fn(i64) -> Q) -> Result<(), StoreError>
    where
        Q: Future<Output = Result<(), Error>> + Send + 'static,
    {
        let mut attempts = 0;
        loop {
            attempts += 1;
            let done = self.link.wait(change(self.writer.epoch()));
            if attempts == ATTEMPTS || !matches!(&done, Some(Err(error)) if is_conflict(error)) {
                return self.link.result_of("write to", done);
            }
        }
    }

    /// The data keys of the records that commits after a position have written.
    fn keys_after(&self, client: &Arc<Client>, tip: Tip) -> Result<BTreeSet<KeyId>, StoreError> {
        let (with, position) = (Arc::clone(client), signed(tip.position));
        let sql = "SELECT value FROM edgewright.state WHERE position > $1";
        let rows = self.link.run("read", async move { with.query(sql, &[&position]).await })?;
        let (bad, mut used) = (unreadable(self.link.shown()), BTreeSet::new());
        for row in &rows {
            used.extend(record::key_of(row.try_get(0).map_err(&bad)?));
        }
        Ok(used)
    }

    /// Removes what the history no longer keeps. Returns up to which position, and whether that was because of its age.
    fn retain(
        &self,
        client: &Arc<Client>,
        retention: &Retention,
        tip: Tip,
        moment: TrustedMoment,
    ) -> Result<(Option<u64>, bool), StoreError> {
        let (kept, too_large, old) = self.limits(client, retention, moment)?;
        let too_many = tip.position.saturating_sub(retention.records);
        // One record always stays.
        let last = tip.position.saturating_sub(1);
        let over = too_many.max(too_large).min(last);
        let most = most_at_once(tip.position.saturating_sub(kept));
        let too_old = old.min(kept.saturating_add(most)).min(last);
        let (end, has_aged) = (over.max(too_old), too_old > over.max(kept));
        if end <= kept {
            return Ok((None, false));
        }
        let (with, position, epoch) = (Arc::clone(client), signed(end), self.writer.epoch());
        let moved = self.link.run("write to", async move {
            let begin = "UPDATE edgewright.head SET kept_position = c.position, kept_hash = c.hash, \
                         kept_revision = c.revision, kept_next_order = c.next_order \
                         FROM edgewright.commits AS c WHERE c.position = $1 AND head.epoch = $2";
            with.batch_execute("BEGIN").await?;
            with.execute("DELETE FROM edgewright.entries WHERE position <= $1", &[&position]).await?;
            // The head is locked as late as possible: commits wait for it.
            let moved = with.execute(begin, &[&position, &epoch]).await?;
            with.execute("DELETE FROM edgewright.commits WHERE position <= $1", &[&position]).await?;
            with.batch_execute(if moved == 1 { "COMMIT" } else { "ROLLBACK" }).await?;
            Ok(moved)
        })?;
        if moved != 1 {
            return Err(self.writer.overtaken());
        }
        let why = if has_aged { "they are too old" } else { "it is over its limit of records or bytes" };
        let (from, records) = (kept + 1, end - kept);
        tracing::info!(target: REMOVAL, records, "Removed records {from} to {end} from the history: {why}.");
        Ok((Some(end), has_aged))
    }

    /// Where the history begins, the last record that is over its limit of bytes, and the last one that is too old: 0 if none is,
    /// or ages do not count now.
    fn limits(
        &self,
        client: &Arc<Client>,
        retention: &Retention,
        moment: TrustedMoment,
    ) -> Result<(u64, u64, u64), StoreError> {
        let (with, bytes, tip) = (Arc::clone(client), signed(retention.bytes), signed(self.writer.tip().position));
        let oldest = oldest_kept(moment, retention.age);
        let now = moment.now.as_second();
        let (kept, large, old) = self.link.run("read", async move {
            let kept: i64 = with.query_one("SELECT kept_position FROM edgewright.head", &[]).await?.try_get(0)?;
            let sql = "SELECT coalesce(max(position), 0) FROM (SELECT position, \
                       sum(bytes) OVER (ORDER BY position DESC) AS total FROM edgewright.commits) AS sums \
                       WHERE total > $1::bigint";
            let large: i64 = with.query_one(sql, &[&bytes]).await?.try_get(0)?;
            let Some(oldest) = oldest else { return Ok((kept, large, 0)) };
            // What is dated in the future was written by another clock, and says nothing: it is as old as what follows it.
            let sql = "SELECT coalesce(max(position), 0) FROM edgewright.commits WHERE at < $1 AND position < \
                       (SELECT coalesce(min(position), $3::bigint) FROM edgewright.commits WHERE at BETWEEN $1 AND $2)";
            let old: i64 = with.query_one(sql, &[&oldest, &now, &tip]).await?.try_get(0)?;
            Ok((kept, large, old))
        })?;
        Ok((unsigned(kept), unsigned(large), unsigned(old)))
    }

    /// Replaces commits of the history, each in a transaction of its own. Their hashes stay.
    pub(super) fn edit(&self, history: &HistoryQuestions, edit: &mut BatchEdit<'_>) -> Result<(), StoreError> {
        let client = self.connect()?;
        let upto = self.writer.tip().position;
        history.walk(0, upto, &mut |_, batch| match edit(&batch)? {
            Some(edited) => self.replace(&client, &edited),
            None => Ok(()),
        })
    }

    fn replace(&self, client: &Arc<Client>, batch: &Batch) -> Result<(), StoreError> {
        let rows = GroupRows::new(Tip::default(), std::slice::from_ref(batch), self.writer.digests())?;
        let (with, epoch, position) = (Arc::clone(client), self.writer.epoch(), signed(batch.position));
        let replaced = self.link.run("write to", async move {
            with.batch_execute("BEGIN").await?;
            let sql = "UPDATE edgewright.commits AS c \
                       SET header = v.header, digest = v.digest, calls = v.calls, bytes = v.bytes \
                       FROM UNNEST($1::bytea[], $2::bytea[], $3::bytea[], $4::bigint[]) AS v (header, digest, calls, bytes) \
                       WHERE c.position = $5 AND EXISTS (SELECT 1 FROM edgewright.head WHERE epoch = $6 FOR SHARE)";
            let CommitRows { header, digest, calls, bytes, .. } = &rows.commits;
            let replaced = with.execute(sql, &[header, digest, calls, bytes, &position, &epoch]).await?;
            with.execute("DELETE FROM edgewright.entries WHERE position = $1", &[&position]).await?;
            for piece in &rows.entries {
                with.execute(INSERT_ENTRIES, &piece.parameters()).await?;
            }
            with.batch_execute(if replaced == 1 { "COMMIT" } else { "ROLLBACK" }).await?;
            Ok(replaced)
        })?;
        if replaced == 1 { Ok(()) } else { Err(self.writer.overtaken()) }
    }
}

/// Changes the state by a statement, unless another writer has taken over. Commits wait meanwhile.
async fn change_state(
    client: &Client,
    epoch: i64,
    statement: &str,
    parameters: &[&(dyn ToSql + Sync)],
) -> Result<(), Error> {
    client.batch_execute("BEGIN").await?;
    let changed = async {
        // A statement of its own: the next one then sees what a commit has done that it had to wait for.
        if client.query_opt(HOLD, &[&epoch]).await?.is_some() {
            client.execute(statement, parameters).await?;
        }
        client.batch_execute("COMMIT").await
    };
    let changed = changed.await;
    if changed.is_err() {
        // The connection is used again.
        let _ = client.batch_execute("ROLLBACK").await;
    }
    changed
}

/// The time of the oldest record that is young, in seconds; none if ages do not count now.
fn oldest_kept(moment: TrustedMoment, age: Duration) -> Option<i64> {
    let age = SignedDuration::try_from(age).unwrap_or(SignedDuration::MAX);
    let ages = Some(moment.ages).filter(|ages| *ages > Timestamp::MIN)?;
    ages.checked_sub(age).ok().map(Timestamp::as_second)
}
