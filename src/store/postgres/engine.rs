//! The engine on PostgreSQL.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::address::{PostgresAddress, shown, url_of};
use super::failure::{damaged, replaced, unreadable};
use super::follower::Follower;
use super::head::{self, HeadRow, TIP, tip_of, unsigned};
use super::lease::bound;
use super::link::DatabaseLink;
use super::questions::HistoryQuestions;
use super::row_digests::RowDigests;
use super::shared_files::SharedFiles;
use super::upkeep::Upkeep;
use super::writer::{StoreWriter, WriterClaim};
use super::writer_lock::check_writable;
use super::{keys, schema};
use crate::model::Code;
use crate::store::commit::batch::{Batch, Tip};
use crate::store::commit::header::Retention;
use crate::store::engine::{
    BatchEdit, Engine, FollowedWriter, Forgotten, History, KeyedRecord, Outage, SidecarFiles, State, StateRecords,
    Statistics,
};
use crate::store::error::StoreError;
use crate::store::seal::{KeyId, Keyring, MasterKeySource, SaveKeys, StoreId};
use crate::store::session_kind::SessionKind;
use crate::syntax::text::printable;

/// How much of the history is read at the start for readers that have not seen all of it.
const EARLIER_COMMITS: usize = 1000;
const EARLIER_BYTES: u64 = 16 << 20;
/// The longest name of a connection that PostgreSQL keeps whole.
const MOST_NAME: usize = 63;

/// An engine on PostgreSQL: the one writer of its store, or one of many that read it, once or following the writer.
pub(crate) struct PostgresEngine {
    link: Arc<DatabaseLink>,
    history: HistoryQuestions,
    writer: Option<PostgresWriter>,
    /// Set if this process follows the one that writes.
    follower: Option<Follower>,
    keyring: Arc<Keyring>,
    session: SessionKind,
    /// The oldest record, and the size of the tables.
    oldest: AtomicU64,
    bytes: AtomicU64,
}

/// The parts that only a writer has.
struct PostgresWriter {
    writer: Arc<StoreWriter>,
    upkeep: Upkeep,
}

impl PostgresEngine {
    /// Returns whether a database has a store.
    pub(crate) fn exists(address: &Path) -> Result<bool, StoreError> {
        Ok(read_head(DatabaseLink::new(address_of(address)?.for_reading())?.as_ref())?.is_some())
    }

    /// Opens a store for writing, and creates it if there is none.
    /// A process that has had a store open names it: no other one is opened or created in its place.
    pub(crate) fn open(
        address: &Path,
        session: SessionKind,
        source: &MasterKeySource,
        known: Option<StoreId>,
    ) -> Result<Self, StoreError> {
        let link = link_to(address)?;
        keys::check_named(source, link.shown())?;
        let mut claim = WriterClaim::take(&link, name_of_process(), known)?;
        if claim.head.is_none() {
            let keys = keys::create(source, link.shown())?;
            claim.create(&link, &keys, Tip::default(), true)?;
        }
        // Before anything changes: a wrong master key must not take the store from anybody.
        let head = claim.head.clone().ok_or_else(|| damaged(link.shown(), "its head is missing"))?;
        check_complete(&head, &link)?;
        let digests = RowDigests::new(&keys::open(&link, head.store, source, unwritable(&link))?);
        let (writer, opened) = claim.begin(&link, digests)?;
        let writer = Arc::new(writer);
        let keyring = Arc::new(keys::open(&link, opened.store, source, saved_by(Arc::clone(&writer)))?);
        let data_key = KeyId::parse(&opened.data_key);
        let data_key = data_key.ok_or_else(|| damaged(link.shown(), "its head has no ID of a data key"))?;
        let upkeep = Upkeep::new(Arc::clone(&link), Arc::clone(&writer), Arc::clone(&keyring), data_key);
        Ok(Self::new(link, Some(PostgresWriter { writer, upkeep }), None, keyring, session, &opened))
    }

    /// Opens a store for reading, beside a writer, which a long session follows. Returns none if there is none. Fails if it is not
    /// the known one.
    pub(crate) fn open_to_read(
        address: &Path,
        session: SessionKind,
        source: &MasterKeySource,
        known: Option<StoreId>,
    ) -> Result<Option<Self>, StoreError> {
        let link = match session {
            SessionKind::Brief => DatabaseLink::new(address_of(address)?.for_reading())?,
            // Only the primary has the lock of the writer, and all that it has committed.
            SessionKind::Long => {
                let link = link_to(address)?;
                check_writable(is_standby(&link)?, link.shown())?;
                link
            }
        };
        let head = read_head(&link)?;
        head::check_known(head.as_ref(), known, link.shown())?;
        let Some(head) = head else { return Ok(None) };
        let keyring = keys::open(&link, head.store, source, unwritable(&link))?;
        let follower = match session {
            SessionKind::Long => Some(Follower::new(Arc::clone(&link), &head)),
            SessionKind::Brief => None,
        };
        Ok(Some(Self::new(link, None, follower, Arc::new(keyring), session, &head)))
    }

    fn new(
        link: Arc<DatabaseLink>,
        writer: Option<PostgresWriter>,
        follower: Option<Follower>,
        keyring: Arc<Keyring>,
        session: SessionKind,
        opened: &HeadRow,
    ) -> Self {
        let history = HistoryQuestions { link: Arc::clone(&link), over: Arc::clone(link.questions()) };
        let oldest = AtomicU64::new(opened.kept.position + 1);
        Self { link, history, writer, follower, keyring, session, oldest, bytes: AtomicU64::new(0) }
    }

    /// Whether this reads a standby, which does not know whether somebody writes to its primary.
    pub(crate) fn reads_standby(&self) -> Result<bool, StoreError> {
        is_standby(&self.link)
    }

    /// The parts of a writer. Fails if this process only reads.
    fn writer(&self) -> Result<&PostgresWriter, StoreError> {
        self.writer.as_ref().ok_or_else(|| match &self.follower {
            Some(follower) => follower.refusal(),
            None => read_only(&self.link),
        })
    }

    /// The current state, as of one moment and verified. A reader takes in the data keys of that moment.
    fn read_state(&self) -> Result<(HeadRow, Vec<KeyedRecord>), StoreError> {
        let (shown, client) = (self.link.shown(), Arc::new(self.link.connect("edgewright (load)")?));
        bound(&self.link, &client)?;
        let (head, end, wrapped, rows, expected, bytes, is_standby) = self.link.run("read", async move {
            client.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY").await?;
            let wrapped = client.query_one("SELECT keys FROM edgewright.secrets", &[]).await?;
            let head = client.query_one(head::READ, &[]).await?;
            let position: i64 = head.try_get("position")?;
            let sql = "SELECT position, hash, revision, next_order FROM edgewright.commits WHERE position = $1";
            let end = client.query_opt(sql, &[&position]).await?;
            let rows = client.query("SELECT key, value, digest FROM edgewright.state ORDER BY key", &[]).await?;
            let sql = "SELECT state_digest::text, (pg_total_relation_size('edgewright.commits') + \
                       pg_total_relation_size('edgewright.entries') + \
                       pg_total_relation_size('edgewright.state'))::bigint, pg_is_in_recovery() FROM edgewright.head";
            let row = client.query_one(sql, &[]).await?;
            let (expected, bytes, is_standby): (String, i64, bool) =
                (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
            client.batch_execute("COMMIT").await?;
            Ok((head, end, wrapped, rows, expected, bytes, is_standby))
        })?;
        // This connection can lead elsewhere than the one before it.
        check_writable(is_standby && self.session == SessionKind::Long, shown)?;
        let head = HeadRow::from_row(&head, shown)?;
        if head.store != self.keyring.store() {
            return Err(replaced(shown));
        }
        let end = end.map(|row| tip_of(&row, shown, TIP)).transpose()?;
        if head.tip.position > head.kept.position && end != Some(head.tip) {
            return Err(damaged(shown, format!("record {} is not the one that its head names", head.tip.position)));
        }
        let bad = unreadable(shown);
        if self.writer.is_none() {
            // The writer may have made another one since the store was opened.
            keys::renew(&self.keyring, wrapped.try_get(0).map_err(&bad)?, shown)?;
        }
        let (digests, mut records) = (RowDigests::new(&self.keyring), Vec::with_capacity(rows.len()));
        let mut sum = 0_i128;
        for row in rows {
            let key = String::from_utf8(row.try_get(0).map_err(&bad)?);
            let key = key.map_err(|_| damaged(shown, "a record's key is not UTF-8"))?;
            let (value, digest): (Vec<u8>, i64) = (row.try_get(1).map_err(&bad)?, row.try_get(2).map_err(&bad)?);
            if digests.of(key.as_bytes(), &value) != digest {
                let key = printable(&key);
                return Err(damaged(
                    shown,
                    format!("the record `{key}` of its state is not what a commit has written"),
                ));
            }
            sum += i128::from(digest);
            records.push((key, value));
        }
        if sum.to_string() != expected {
            return Err(damaged(shown, "records were added to or removed from its state, and not by a commit"));
        }
        self.bytes.store(unsigned(bytes), Ordering::Relaxed);
        Ok((head, records))
    }
}

impl Engine for PostgresEngine {
    fn load(&self) -> Result<State, StoreError> {
        let (head, records) = self.read_state()?;
        let expected = self.writer.as_ref().map(|it| (it.writer.epoch(), it.writer.tip()));
        if let Some((epoch, tip)) = expected
            && (head.epoch, head.tip) != (epoch, tip)
        {
            let message = format!("the store {} was changed by another process while it was read", self.link.shown());
            return Err(StoreError::new(Code::StoreLocked, message).help("try again"));
        }
        self.oldest.store(head.kept.position + 1, Ordering::Relaxed);
        let earlier = match self.session {
            SessionKind::Long => self.history.newest(head.tip.position, EARLIER_COMMITS, EARLIER_BYTES)?,
            SessionKind::Brief => Vec::new(),
        };
        Ok(State {
            tip: head.tip,
            root_secret: self.keyring.root_secret(),
            records,
            batches: Vec::new(),
            earlier,
            keyring: Some(Arc::clone(&self.keyring)),
            warnings: Vec::new(),
        })
    }

    fn append(&self, after: u64, batches: &[Batch]) -> Result<(), StoreError> {
        let PostgresWriter { writer, upkeep } = self.writer()?;
        if batches.is_empty() {
            return Ok(());
        }
        let bytes = writer.append(after, batches)?;
        upkeep.note(bytes);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        Ok(())
    }

    fn batches_after(&self, known: Tip) -> Result<(Vec<Batch>, Forgotten), StoreError> {
        let Some(follower) = &self.follower else { return Ok(Default::default()) };
        let (head, batches, forgotten) = follower.batches_after(known, &self.keyring)?;
        self.oldest.store(head.kept.position + 1, Ordering::Relaxed);
        Ok((batches, forgotten))
    }

    fn followed_writer(&self) -> Option<FollowedWriter> {
        self.follower.as_ref().map(Follower::writer)
    }

    fn is_shared(&self) -> bool {
        true
    }

    fn advertise(&self, url: &str) -> Result<(), StoreError> {
        self.writer.as_ref().map_or(Ok(()), |it| it.writer.advertise(url))
    }

    fn history(&self) -> &dyn History {
        &self.history
    }

    fn edit_history(&self, edit: &mut BatchEdit<'_>) -> Result<(), StoreError> {
        self.health()?;
        self.writer()?.upkeep.edit(&self.history, edit)
    }

    fn statistics(&self) -> Statistics {
        Statistics { bytes: self.bytes.load(Ordering::Relaxed), oldest: self.oldest.load(Ordering::Relaxed) }
    }

    fn sidecar_files(&self) -> Option<Arc<dyn SidecarFiles>> {
        let writer = self.writer().map(|it| Arc::clone(&it.writer));
        Some(Arc::new(SharedFiles { link: Arc::clone(&self.link), writer }))
    }

    fn health(&self) -> Result<(), StoreError> {
        self.writer()?.writer.health()
    }

    fn probe(&self) -> Result<(), StoreError> {
        self.writer()?.writer.probe()
    }

    fn outage(&self) -> Option<Outage> {
        self.writer.as_ref().and_then(|it| it.writer.outage())
    }

    fn wants_checkpoint(&self) -> bool {
        self.writer.as_ref().is_some_and(|it| it.upkeep.is_due())
    }

    fn rotate(&self) -> Result<(), StoreError> {
        self.writer.as_ref().map_or(Ok(()), |it| it.upkeep.begin())
    }

    fn checkpoint(&self, state: &mut StateRecords<'_>, retention: &Retention) -> Result<(), StoreError> {
        let Some(PostgresWriter { upkeep, .. }) = &self.writer else { return Ok(()) };
        if let Some(removed) = upkeep.finish(state, retention)? {
            self.oldest.store(removed + 1, Ordering::Relaxed);
        }
        Ok(())
    }
}

pub(super) fn link_to(address: &Path) -> Result<Arc<DatabaseLink>, StoreError> {
    DatabaseLink::new(address_of(address)?)
}

fn address_of(address: &Path) -> Result<PostgresAddress, StoreError> {
    let unknown = || StoreError::new(Code::StoreFailed, format!("{} is not a database address", shown(address)));
    PostgresAddress::parse(url_of(address).ok_or_else(unknown)?)
}

/// Whether questions are answered by a standby.
fn is_standby(link: &DatabaseLink) -> Result<bool, StoreError> {
    link.ask(|client| async move { client.query_one("SELECT pg_is_in_recovery()", &[]).await?.try_get(0) })
}

/// Reads the head of a store that is only looked at; none if there is no store.
fn read_head(link: &DatabaseLink) -> Result<Option<HeadRow>, StoreError> {
    let version = link.ask(|client| async move { schema::version(&client).await })?;
    // What has no version was interrupted before it was a store.
    let Some(version) = version.filter(|version| *version > 0) else { return Ok(None) };
    schema::check(version, link.shown(), true)?;
    let row = link.ask(|client| async move { client.query_opt(head::READ, &[]).await })?;
    let head = row.map(|row| HeadRow::from_row(&row, link.shown())).transpose()?;
    head.as_ref().map_or(Ok(()), |head| check_complete(head, link))?;
    Ok(head)
}

/// Fails if a copy was interrupted.
fn check_complete(head: &HeadRow, link: &DatabaseLink) -> Result<(), StoreError> {
    if head.complete {
        return Ok(());
    }
    let message = format!("a copy or restore into {} was interrupted, or is being made", link.shown());
    let help = "if it was interrupted, run `DROP SCHEMA edgewright CASCADE` in the database, and copy or restore again";
    Err(StoreError::new(Code::StoreFormat, message).help(help))
}

/// How a writer saves the keys.
fn saved_by(writer: Arc<StoreWriter>) -> SaveKeys {
    Box::new(move |bytes: &[u8]| {
        let bytes = bytes.to_vec();
        writer.change(move |client, epoch| {
            let bytes = bytes.clone();
            async move {
                let sql = "WITH held AS (SELECT 1 FROM edgewright.head WHERE epoch = $1 FOR SHARE) \
                           INSERT INTO edgewright.secrets (keys) SELECT $2::bytea FROM held \
                           ON CONFLICT (one) DO UPDATE SET keys = EXCLUDED.keys";
                client.execute(sql, &[&epoch, &bytes]).await
            }
        })
    })
}

fn read_only(link: &DatabaseLink) -> StoreError {
    StoreError::new(Code::StoreFailed, format!("the store {} is open read-only", link.shown()))
}

/// A reader saves nothing.
fn unwritable(link: &DatabaseLink) -> SaveKeys {
    let error = read_only(link);
    Box::new(move |_: &[u8]| Err(error.clone()))
}

/// How other processes see this one: in the message that the store is in use, and in the tables of PostgreSQL.
pub(super) fn name_of_process() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let host: String = host.trim().chars().filter(char::is_ascii_graphic).collect();
    let place = if host.is_empty() { String::new() } else { format!(" on {host}") };
    let name = format!("edgewright, process {}{place}", std::process::id());
    name.chars().take(MOST_NAME).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_process_is_kept_whole_by_the_server() {
        let name = name_of_process();
        assert!(name.len() <= MOST_NAME && name.contains(&std::process::id().to_string()), "{name}");
    }
}
