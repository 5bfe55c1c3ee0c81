//! A group of commits as one transaction, on the connection of the writer.

use std::sync::Arc;

use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Error, Statement};

use super::head::signed;
use super::lease::SessionLease;
use super::link::DatabaseLink;
use super::rows::{EntryRows, GroupRows, StateRows};
use crate::store::commit::batch::Tip;
use crate::store::error::StoreError;

const ADVANCE: &str = "UPDATE edgewright.head SET position = $1, hash = $2, revision = $3, next_order = $4 \
                       WHERE epoch = $5 AND position = $6 AND hash = $7";
const INSERT_COMMITS: &str = "INSERT INTO edgewright.commits \
     (position, revision, made, next_order, at, source, header, digest, hash, calls, bytes) \
     SELECT * FROM UNNEST($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bytea[], \
     $7::bytea[], $8::bytea[], $9::bytea[], $10::bytea[], $11::bigint[])";
pub(super) const INSERT_ENTRIES: &str = "INSERT INTO edgewright.entries (position, number, path, entry) \
                                         SELECT * FROM UNNEST($1::bigint[], $2::integer[], $3::text[], $4::bytea[])";
/// Writes rows of the state, and moves the sum of their digests. The part `former` sees the rows as they were before.
pub(super) const WRITE_STATE: &str = "WITH given AS (\
         SELECT * FROM UNNEST($1::bytea[], $2::bigint[], $3::bytea[], $4::bigint[]) AS v (key, position, value, digest)), \
     former AS (SELECT digest FROM edgewright.state WHERE key = ANY($1::bytea[])), \
     written AS (INSERT INTO edgewright.state (key, position, value, digest) \
         SELECT key, position, value, digest FROM given \
         ON CONFLICT (key) DO UPDATE SET position = EXCLUDED.position, value = EXCLUDED.value, digest = EXCLUDED.digest) \
     UPDATE edgewright.head SET state_digest = state_digest + (SELECT sum(digest) FROM given) \
         - coalesce((SELECT sum(digest) FROM former), 0) WHERE EXISTS (SELECT 1 FROM given)";
const REMOVE_STATE: &str = "WITH gone AS (DELETE FROM edgewright.state WHERE key = ANY($1::bytea[]) RETURNING digest) \
     UPDATE edgewright.head SET state_digest = state_digest - (SELECT sum(digest) FROM gone) \
         WHERE EXISTS (SELECT 1 FROM gone)";

/// A connection that has the lock of the writer.
#[derive(Clone)]
pub(super) struct WriterConnection {
    pub(super) client: Arc<Client>,
    /// The process of the server behind it.
    pub(super) process: i32,
    statements: Arc<GroupStatements>,
    _lease: Arc<SessionLease>,
}

/// The prepared statements of a group.
struct GroupStatements {
    advance: Statement,
    commits: Statement,
    entries: Statement,
    state: Statement,
    removed: Statement,
}

/// The failure of a group.
pub(super) enum GroupFailure {
    /// The head is not where this writer has left it.
    Moved,
    /// Nothing of it counts.
    Undone(Error),
    /// Nobody has said whether it counts.
    Unsure,
}

/// Sends a group, and waits for the answer to its commit.
pub(super) async fn write(
    connection: WriterConnection,
    rows: Arc<GroupRows>,
    epoch: i64,
    before: Tip,
) -> Result<(), GroupFailure> {
    let WriterConnection { client, statements, .. } = connection;
    let undone = GroupFailure::Undone;
    let numbers = [rows.end.position, rows.end.revision, rows.end.next_order, before.position].map(signed);
    let [position, revision, next_order, expected] = numbers;
    let (hash, former) = (rows.end.hash.to_vec(), before.hash.to_vec());
    let advance: [&(dyn ToSql + Sync); 7] = [&position, &hash, &revision, &next_order, &epoch, &expected, &former];
    let commits = rows.commits.parameters();
    let (mut entries, mut state) = (rows.entries.iter(), rows.state.iter());
    let (no_entries, no_state) = (EntryRows::default(), StateRows::default());
    let first_entries = entries.next().unwrap_or(&no_entries).parameters();
    let first_state = state.next().unwrap_or(&no_state).parameters();
    let removed: [&(dyn ToSql + Sync); 1] = [&rows.removed];
    // All of it is sent before the first answer is waited for, in this order.
    let (begun, moved, inserted, with_entries, written, cleared) = tokio::join!(
        biased;
        client.batch_execute("BEGIN"),
        client.execute(&statements.advance, &advance),
        client.execute(&statements.commits, &commits),
        client.execute(&statements.entries, &first_entries),
        client.execute(&statements.state, &first_state),
        client.execute(&statements.removed, &removed),
    );
    begun.map_err(undone)?;
    if moved.map_err(undone)? != 1 {
        return Err(GroupFailure::Moved);
    }
    for done in [inserted, with_entries, written, cleared] {
        done.map_err(undone)?;
    }
    for rows in entries {
        client.execute(&statements.entries, &rows.parameters()).await.map_err(undone)?;
    }
    for rows in state {
        client.execute(&statements.state, &rows.parameters()).await.map_err(undone)?;
    }
    // Also an error that the server reports may come after the commit is durable, for example when it is shut down.
    client.batch_execute("COMMIT").await.map_err(|_| GroupFailure::Unsure)
}

/// Prepares the statements of groups on a connection.
pub(super) fn prepare(
    link: &DatabaseLink,
    client: Arc<Client>,
    lease: SessionLease,
) -> Result<WriterConnection, StoreError> {
    let with = Arc::clone(&client);
    let (process, statements) = link.run("open", async move {
        let process: i32 = with.query_one("SELECT pg_backend_pid()", &[]).await?.try_get(0)?;
        let statements = GroupStatements {
            advance: with.prepare(ADVANCE).await?,
            commits: with.prepare(INSERT_COMMITS).await?,
            entries: with.prepare(INSERT_ENTRIES).await?,
            state: with.prepare(WRITE_STATE).await?,
            removed: with.prepare(REMOVE_STATE).await?,
        };
        Ok((process, statements))
    })?;
    Ok(WriterConnection { client, process, statements: Arc::new(statements), _lease: Arc::new(lease) })
}
