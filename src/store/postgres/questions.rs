//! What the history is asked, as queries that an index answers.
//!
//! A commit is one row with its header, and a row for each entry, so that a list reads headers alone, and the history of a
//! resource the entries of that resource alone. What is read is verified as in a folder: an entry by its checksum, and a whole
//! commit by its digest. A walk reads commits in pages of some megabytes.
//!
//! Retention removes commits meanwhile. Each commit is read by one statement, so it is there with all of its entries or not at all,
//! and one that is missing is damage only if the history still begins before it.

use std::sync::Arc;

use bytes::Bytes;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Error, Row};

use super::failure::{damaged, unreadable};
use super::head::{TIP, hash_of, signed, tip_of, unsigned};
use super::link::{DatabaseLink, QuestionConnection};
use super::rows::{RepeatedColumns, path_of};
use crate::model::Code;
use crate::store::commit::batch::{Batch, Tip};
use crate::store::commit::entries::{CommitEntries, decode_entry};
use crate::store::commit::header::CommitHeader;
use crate::store::engine::{BatchVisit, History, Query, ResourceHistoryQuery, ResourceHistoryVisit};
use crate::store::error::StoreError;

/// The most commits of a page of a walk, and the most bytes of them, more or less.
const PAGE: usize = 500;
const PAGE_BYTES: u64 = 16 << 20;
/// How many resources are asked about at once, and how many entries of each.
const RESOURCES_AT_ONCE: usize = 500;
const ENTRIES_AT_ONCE: i64 = 8;

/// Commits and their entries, as of one moment. Sorting them here takes no memory of the database.
const COMMITS: &str = "SELECT position, NULL::integer AS number, revision, next_order, header, digest, hash, calls, \
                       made, at, source, bytes, NULL::text AS path, NULL::bytea AS entry \
                       FROM edgewright.commits WHERE position BETWEEN $1 AND $2 \
                       UNION ALL \
                       SELECT position, number, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, path, entry \
                       FROM edgewright.entries WHERE position BETWEEN $1 AND $2";
const SOME_ENTRIES: &str = "SELECT entry FROM edgewright.entries WHERE position = $1 AND path IS NOT NULL \
                            ORDER BY number OFFSET $2 LIMIT $3";
const KEPT: &str = "SELECT kept_position, kept_hash, kept_revision, kept_next_order FROM edgewright.head";

/// Whether the columns of commits are compared with the content that they repeat. Indexes have them, and a server that starts or
/// follows needs none.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Columns {
    Compared,
    Ignored,
}

/// The history of a store, as it is in the database.
pub(super) struct HistoryQuestions {
    pub(super) link: Arc<DatabaseLink>,
    pub(super) over: Arc<QuestionConnection>,
}

impl HistoryQuestions {
    /// Runs a question.
    pub(super) fn ask<T, Q>(&self, question: impl Fn(Arc<Client>) -> Q) -> Result<T, StoreError>
    where
        T: Send + 'static,
        Q: Future<Output = Result<T, Error>> + Send + 'static,
    {
        self.link.ask_over(&self.over, question)
    }

    /// The database, as messages show it.
    pub(super) fn shown(&self) -> &str {
        self.link.shown()
    }

    fn bad(&self) -> impl Fn(Error) -> StoreError {
        unreadable(self.shown())
    }

    /// The commits from one position to another one, oldest first.
    fn commits(&self, first: u64, last: u64, columns: Columns) -> Result<Vec<Batch>, StoreError> {
        let (first, last) = (signed(first), signed(last));
        let rows = self.ask(move |client| async move { client.query(COMMITS, &[&first, &last]).await })?;
        let bad = self.bad();
        let mut ordered = Vec::with_capacity(rows.len());
        for row in &rows {
            let place: (i64, Option<i32>) =
                (row.try_get("position").map_err(&bad)?, row.try_get("number").map_err(&bad)?);
            ordered.push((place, row));
        }
        // A commit comes before its entries.
        ordered.sort_unstable_by_key(|(place, _)| *place);
        let mut read: Vec<(i64, &Row, Vec<u8>)> = Vec::new();
        for ((position, number), row) in ordered.iter().copied() {
            if number.is_none() {
                read.push((position, row, Vec::new()));
            } else if let Some((of, _, encoded)) = read.last_mut()
                && *of == position
            {
                encoded.extend_from_slice(row.try_get("entry").map_err(&bad)?);
            }
        }
        let read = read.into_iter().map(|(_, row, encoded)| batch_of(row, encoded, self.shown()));
        let batches = read.collect::<Result<Vec<Batch>, StoreError>>()?;
        if columns == Columns::Compared {
            let mut rows = ordered.into_iter().map(|((_, number), row)| (number, row));
            batches.iter().try_for_each(|batch| self.check_columns(batch, &mut rows))?;
        }
        Ok(batches)
    }

    /// Fails if a column of a commit or of its entries is not what it repeats. Takes their rows, in this order.
    fn check_columns<'r>(
        &self,
        batch: &Batch,
        rows: &mut impl Iterator<Item = (Option<i32>, &'r Row)>,
    ) -> Result<(), StoreError> {
        let position = batch.position;
        let differs = || damaged(self.shown(), format!("a column of record {position} differs from its content"));
        let (bad, mut next) = (self.bad(), || rows.next().ok_or_else(differs));
        let (_, row) = next()?;
        if RepeatedColumns::in_row(row).map_err(&bad)? != RepeatedColumns::of(batch)? {
            return Err(differs());
        }
        for (expected, entry) in (0..).zip(batch.entries.iter()) {
            let (number, row) = next()?;
            let path: Option<String> = row.try_get("path").map_err(&bad)?;
            if (number, path) != (Some(expected), path_of(entry.key)) {
                return Err(differs());
            }
        }
        Ok(())
    }

    /// The next commits after a position and up to another one, which is later: at least one, oldest first and without a gap.
    pub(super) fn page(&self, before: u64, upto: u64, columns: Columns) -> Result<Vec<Batch>, StoreError> {
        let (start, end) = (signed(before), signed(upto));
        let sql = "SELECT position, bytes FROM edgewright.commits WHERE position > $1 AND position <= $2 \
                   ORDER BY position LIMIT $3";
        let rows = self.ask(move |client| async move { client.query(sql, &[&start, &end, &(PAGE as i64)]).await })?;
        let last = self.end_of_page(before, &rows)?;
        let found = self.commits(before + 1, last, columns)?;
        // Since the sizes were read, the first ones may have been removed.
        let is_there = |(batch, position): &(&Batch, u64)| batch.position == *position;
        let there = found.iter().zip(before + 1..).take_while(is_there).count() as u64;
        if before + there == last { Ok(found) } else { Err(self.missing(before + there + 1)) }
    }

    /// The last position of a page: its commits follow each other without a gap.
    fn end_of_page(&self, before: u64, rows: &[Row]) -> Result<u64, StoreError> {
        let (bad, mut last, mut total) = (self.bad(), before, 0);
        for row in rows {
            let position = unsigned(row.try_get(0).map_err(&bad)?);
            total += unsigned(row.try_get(1).map_err(&bad)?);
            if position != last + 1 || (last > before && total > PAGE_BYTES) {
                break;
            }
            last = position;
        }
        if last == before { Err(self.missing(before + 1)) } else { Ok(last) }
    }

    /// The error of a commit that is not there: retention may have removed it meanwhile.
    fn missing(&self, position: u64) -> StoreError {
        let kept = self.ask(|client| async move { client.query_one(KEPT, &[]).await });
        match kept.and_then(|row| self.kept(&row)) {
            Ok(kept) if kept.position >= position => {
                let message = format!("record {position} of the history was removed while the history was read");
                StoreError::new(Code::StoreFailed, message).help("try again: older records are no longer kept")
            }
            Ok(_) => damaged(self.shown(), format!("record {position} of the history is missing")),
            Err(error) => error,
        }
    }

    fn kept(&self, row: &Row) -> Result<Tip, StoreError> {
        tip_of(row, self.shown(), ["kept_position", "kept_hash", "kept_revision", "kept_next_order"])
    }

    /// The end of the history at a revision, or where the history begins if that is later or if the revision is 0.
    fn before(&self, revision: u64) -> Result<Tip, StoreError> {
        let wanted = signed(revision);
        let (kept, found) = self.ask(move |client| async move {
            let sql = "SELECT position, hash, revision, next_order FROM edgewright.commits WHERE revision <= $1 \
                       ORDER BY revision DESC, position DESC LIMIT 1";
            let found = client.query_opt(sql, &[&wanted]).await?;
            // Afterwards: if retention has removed what was searched for, the history begins later by now.
            Ok((client.query_one(KEPT, &[]).await?, found))
        })?;
        match found.filter(|_| revision > 0) {
            Some(row) => tip_of(&row, self.shown(), TIP),
            None => self.kept(&kept),
        }
    }

    /// The newest commits up to a position, oldest first: of at most so many, those that have a certain size together.
    pub(super) fn newest(&self, upto: u64, most: usize, bytes: u64) -> Result<Vec<Batch>, StoreError> {
        let (end, limit) = (signed(upto), i64::try_from(most).unwrap_or(i64::MAX));
        let sql = "SELECT position, bytes FROM edgewright.commits WHERE position <= $1 ORDER BY position DESC LIMIT $2";
        let rows = self.ask(move |client| async move { client.query(sql, &[&end, &limit]).await })?;
        let (bad, mut first, mut total) = (self.bad(), upto.saturating_add(1), 0);
        for row in &rows {
            total += unsigned(row.try_get(1).map_err(&bad)?);
            if total > bytes {
                break;
            }
            first = unsigned(row.try_get(0).map_err(&bad)?);
        }
        if first > upto { Ok(Vec::new()) } else { self.commits(first, upto, Columns::Ignored) }
    }

    /// Visits the next entries of some resources. Returns the resources whose histories go on.
    fn visit_page(
        &self,
        mut asked: Vec<OpenPath>,
        source: Option<Vec<u8>>,
        visit: &mut ResourceHistoryVisit<'_>,
    ) -> Result<Vec<OpenPath>, StoreError> {
        let paths: Vec<String> = asked.iter().map(|open| open.path.clone()).collect();
        let ends: Vec<i64> = asked.iter().map(|open| open.end).collect();
        let sql = "SELECT asked.number, found.position, found.entry, found.header \
                   FROM UNNEST($1::text[], $2::bigint[]) WITH ORDINALITY AS asked (path, before, number) \
                   CROSS JOIN LATERAL (\
                       SELECT e.position, e.number, e.entry, c.header \
                       FROM edgewright.entries e JOIN edgewright.commits c ON c.position = e.position \
                       WHERE e.path = asked.path AND e.position < asked.before \
                       AND ($3::bytea IS NULL OR c.source = $3) \
                       ORDER BY e.position DESC, e.number DESC LIMIT $4\
                   ) AS found \
                   ORDER BY asked.number, found.position DESC, found.number DESC";
        let rows = self.ask(move |client| {
            let (paths, ends, source) = (paths.clone(), ends.clone(), source.clone());
            async move {
                let parameters: [&(dyn ToSql + Sync); 4] = [&paths, &ends, &source, &ENTRIES_AT_ONCE];
                client.query(sql, &parameters).await
            }
        })?;
        let bad = self.bad();
        let mut seen = vec![0_i64; asked.len()];
        let mut is_done = vec![false; asked.len()];
        for row in &rows {
            let number = unsigned(row.try_get::<_, i64>(0).map_err(&bad)?);
            let at = usize::try_from(number.saturating_sub(1)).unwrap_or(usize::MAX);
            let places = asked.get_mut(at).zip(seen.get_mut(at)).zip(is_done.get_mut(at));
            let Some(((open, seen), is_done)) = places.filter(|(_, is_done)| !**is_done) else { continue };
            open.end = row.try_get(1).map_err(&bad)?;
            *seen += 1;
            let entry = decode_entry(row.try_get(2).map_err(&bad)?);
            let entry = entry.ok_or_else(|| {
                damaged(self.shown(), format!("the checksum of an entry of record {} does not match", open.end))
            })?;
            let header = CommitHeader::from_bytes(row.try_get(3).map_err(&bad)?)?;
            *is_done = visit(open.number, &header, &entry)?.is_break();
        }
        let counts = seen.into_iter().zip(is_done);
        let going_on = |(seen, is_done): &(i64, bool)| *seen == ENTRIES_AT_ONCE && !is_done;
        Ok(asked.into_iter().zip(counts).filter(|(_, counts)| going_on(counts)).map(|(open, _)| open).collect())
    }
}

/// Fails if the history is known to be that of another store by now.
impl History for HistoryQuestions {
    fn headers(&self, query: &Query, before: u64, limit: usize) -> Result<Vec<CommitHeader>, StoreError> {
        self.link.check_store()?;
        let (end, limit) = (signed(before), i64::try_from(limit).unwrap_or(i64::MAX));
        let made = match query {
            Query::Revision(revision) => Some(signed(*revision)),
            Query::All | Query::Reconciliations => None,
        };
        let sql = match query {
            Query::All => "SELECT header FROM edgewright.commits WHERE position < $1 ORDER BY position DESC LIMIT $2",
            Query::Reconciliations => {
                "SELECT header FROM edgewright.commits WHERE position < $1 AND source IS NOT NULL \
                 ORDER BY position DESC LIMIT $2"
            }
            Query::Revision(_) => {
                "SELECT header FROM edgewright.commits WHERE position < $1 AND made = $3 \
                 ORDER BY position DESC LIMIT $2"
            }
        };
        let rows = self.ask(move |client| async move {
            match &made {
                Some(made) => client.query(sql, &[&end, &limit, made]).await,
                None => client.query(sql, &[&end, &limit]).await,
            }
        })?;
        let bad = self.bad();
        rows.iter().map(|row| CommitHeader::from_bytes(row.try_get(0).map_err(&bad)?)).collect()
    }

    fn commit(&self, position: u64) -> Result<Option<Batch>, StoreError> {
        self.link.check_store()?;
        Ok(self.commits(position, position, Columns::Ignored)?.pop())
    }

    fn some_entries(&self, position: u64, skip: usize, most: usize) -> Result<Option<CommitEntries>, StoreError> {
        self.link.check_store()?;
        let (at, skip, most) = (signed(position), signed(skip as u64), signed(most as u64));
        let rows = self.ask(move |client| async move { client.query(SOME_ENTRIES, &[&at, &skip, &most]).await })?;
        let (bad, mut entries) = (self.bad(), CommitEntries::default());
        for row in &rows {
            let entry = decode_entry(row.try_get(0).map_err(&bad)?);
            let entry = entry.ok_or_else(|| {
                damaged(self.shown(), format!("the checksum of an entry of record {position} does not match"))
            })?;
            entries.push(&entry);
        }
        Ok(Some(entries))
    }

    fn resource_histories(
        &self,
        wanted: ResourceHistoryQuery<'_>,
        visit: &mut ResourceHistoryVisit<'_>,
    ) -> Result<(), StoreError> {
        self.link.check_store()?;
        let end = signed(wanted.before);
        let mut open: Vec<OpenPath> = wanted
            .paths
            .iter()
            .enumerate()
            .map(|(number, path)| OpenPath { number, path: path.clone(), end })
            .collect();
        let source = wanted.source.map(|source| source.as_bytes().to_vec());
        while !open.is_empty() {
            let rest = open.split_off(open.len().min(RESOURCES_AT_ONCE));
            let mut left = self.visit_page(std::mem::replace(&mut open, rest), source.clone(), visit)?;
            // Those with more entries go on before the others begin.
            left.append(&mut open);
            open = left;
        }
        Ok(())
    }

    fn walk(&self, revision: u64, upto: u64, visit: &mut BatchVisit<'_>) -> Result<(), StoreError> {
        self.link.check_store()?;
        let mut before = self.before(revision)?;
        while before.position < upto {
            for batch in self.page(before.position, upto, Columns::Compared)? {
                let after = Tip::after(&batch);
                visit(before, batch)?;
                before = after;
            }
        }
        Ok(())
    }
}

/// A resource whose history goes on.
struct OpenPath {
    /// The number of its path among those that are wanted.
    number: usize,
    path: String,
    /// The position before which its next entries are.
    end: i64,
}

/// Makes a commit of its row and its encoded entries, and verifies its digest.
fn batch_of(row: &Row, encoded: Vec<u8>, shown: &str) -> Result<Batch, StoreError> {
    let Tip { position, hash, revision, next_order } = tip_of(row, shown, TIP)?;
    let bytes = |column: &str| -> Result<Bytes, StoreError> {
        let bytes: Result<Vec<u8>, Error> = row.try_get(column);
        bytes.map(Bytes::from).map_err(|error| damaged(shown, format!("record {position} cannot be read: {error}")))
    };
    let (header, calls, digest) = (bytes("header")?, bytes("calls")?, hash_of(row, shown, "digest")?);
    let entries = CommitEntries::parse(encoded.into());
    let entries = entries.filter(|entries| entries.digest(&calls) == digest);
    let entries =
        entries.ok_or_else(|| damaged(shown, format!("the digest of record {position} does not match its content")))?;
    Ok(Batch { position, revision, next_order, header, digest, hash, calls, entries })
}
