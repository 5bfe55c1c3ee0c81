//! The row that says where the history ends and begins, and who writes.

use tokio_postgres::Row;

use super::failure::{damaged, replaced};
use crate::store::commit::batch::Tip;
use crate::store::commit::entries::Hash;
use crate::store::error::StoreError;
use crate::store::seal::StoreId;

/// Reads the head. There is none before a store is created.
pub(super) const READ: &str = "SELECT store, position, hash, revision, next_order, kept_position, kept_hash, kept_revision, \
                               kept_next_order, complete, epoch, writer, url, data_key FROM edgewright.head";

/// The columns of the end of a history.
pub(super) const TIP: [&str; 4] = ["position", "hash", "revision", "next_order"];

/// The head of a store.
#[derive(Debug, Clone)]
pub(super) struct HeadRow {
    /// The id of the store.
    pub(super) store: StoreId,
    /// The end of the history.
    pub(super) tip: Tip,
    /// The commit after which the history begins: what is before it was removed.
    pub(super) kept: Tip,
    /// Whether all of it is there: a copy can be interrupted.
    pub(super) complete: bool,
    /// The number of the last writer, which is higher than those of the writers before it.
    pub(super) epoch: i64,
    /// The last writer, for people.
    pub(super) writer: String,
    /// The URL under which other servers reach it, if it has said so.
    pub(super) url: Option<String>,
    /// The data key of the state.
    pub(super) data_key: String,
}

impl HeadRow {
    /// Reads what [`READ`] returns.
    pub(super) fn from_row(row: &Row, shown: &str) -> Result<Self, StoreError> {
        let bad = |error: tokio_postgres::Error| damaged(shown, format!("its head cannot be read: {error}"));
        let text = |column: &str| row.try_get::<_, String>(column).map_err(bad);
        let store: Vec<u8> = row.try_get("store").map_err(bad)?;
        let store = StoreId::try_from(store).map_err(|_| damaged(shown, "its head has no ID of a store"))?;
        Ok(Self {
            store,
            tip: tip_of(row, shown, TIP)?,
            kept: tip_of(row, shown, ["kept_position", "kept_hash", "kept_revision", "kept_next_order"])?,
            complete: row.try_get("complete").map_err(bad)?,
            epoch: row.try_get("epoch").map_err(bad)?,
            writer: text("writer")?,
            url: Some(text("url")?).filter(|url| !url.is_empty()),
            data_key: text("data_key")?,
        })
    }
}

/// Fails if a head is not that of the store which this process has had open, if it has.
pub(super) fn check_known(head: Option<&HeadRow>, known: Option<StoreId>, shown: &str) -> Result<(), StoreError> {
    match known {
        Some(known) if head.is_none_or(|head| head.store != known) => Err(replaced(shown)),
        _ => Ok(()),
    }
}

/// Reads a position of the history from four columns of a row.
pub(super) fn tip_of(row: &Row, shown: &str, columns: [&str; 4]) -> Result<Tip, StoreError> {
    let [position, hash, revision, next_order] = columns;
    let bad = |error: tokio_postgres::Error| damaged(shown, format!("a position cannot be read: {error}"));
    let number = |column: &str| row.try_get::<_, i64>(column).map(unsigned).map_err(bad);
    Ok(Tip {
        position: number(position)?,
        hash: hash_of(row, shown, hash)?,
        revision: number(revision)?,
        next_order: number(next_order)?,
    })
}

/// Reads a hash from a column of a row.
pub(super) fn hash_of(row: &Row, shown: &str, column: &str) -> Result<Hash, StoreError> {
    let bytes: Option<&[u8]> = row.try_get(column).ok();
    bytes.and_then(|bytes| Hash::try_from(bytes).ok()).ok_or_else(|| damaged(shown, "a hash cannot be read"))
}

/// A number of the store as the database has it.
pub(super) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// A number of the database as the store has it.
pub(super) fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or_default()
}
