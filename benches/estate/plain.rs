//! A plain program that writes the rows of edgewright's changes to a database: what the database itself can do.

use std::{
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::{Duration, Instant},
};

use tokio::{runtime::Runtime, task::JoinSet};
use tokio_postgres::{Client, NoTls};

use crate::table::percentile;

/// Tables like those of the store.
const TABLES: &str = "DROP SCHEMA IF EXISTS plain CASCADE; CREATE SCHEMA plain;
    CREATE TABLE plain.commits (LIKE edgewright.commits INCLUDING ALL);
    CREATE TABLE plain.entries (LIKE edgewright.entries INCLUDING ALL);
    CREATE TABLE plain.state (LIKE edgewright.state INCLUDING ALL);
    CREATE TABLE plain.head (position bigint NOT NULL);
    INSERT INTO plain.head VALUES (0);";
/// The rows of the last change of a route, which has one entry.
const LAST_CHANGE: &str = "SELECT header, commits.digest, hash, calls, path, entry, key, value
    FROM edgewright.commits JOIN edgewright.entries USING (position) JOIN edgewright.state USING (position)
    ORDER BY position DESC LIMIT 1";
const COMMITS: &str =
    "INSERT INTO plain.commits (position, revision, next_order, at, header, digest, hash, calls, bytes)
    SELECT p, p, p, p, $2, $3, $4, $5, 0 FROM unnest($1::bigint[]) p";
const ENTRIES: &str = "INSERT INTO plain.entries (position, number, path, entry)
    SELECT p, 0, $2, $3 FROM unnest($1::bigint[]) p";
const STATE: &str = "INSERT INTO plain.state (key, position, value, digest)
    SELECT $2::bytea || int8send(p % 1000), p, $3, p FROM unnest($1::bigint[]) p
    ON CONFLICT (key) DO UPDATE SET position = excluded.position, value = excluded.value, digest = excluded.digest";
const HEAD: &str = "UPDATE plain.head SET position = $1";

/// The rows of one change.
struct Change {
    header: Vec<u8>,
    digest: Vec<u8>,
    hash: Vec<u8>,
    calls: Vec<u8>,
    path: Option<String>,
    entry: Vec<u8>,
    key: Vec<u8>,
    value: Vec<u8>,
}

/// A plain program with its tables.
pub(crate) struct Plain {
    database: String,
    runtime: Runtime,
    change: Arc<Change>,
    next: Arc<AtomicI64>,
}

impl Plain {
    /// Makes the tables, in the database of a store in which a route was changed.
    pub(crate) fn new(database: &str) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let change = runtime.block_on(async {
            let client = connect(database).await;
            client.batch_execute(TABLES).await.unwrap();
            let row = client.query_one(LAST_CHANGE, &[]).await.unwrap();
            Change {
                header: row.get(0),
                digest: row.get(1),
                hash: row.get(2),
                calls: row.get(3),
                path: row.get(4),
                entry: row.get(5),
                key: row.get(6),
                value: row.get(7),
            }
        });
        Self { database: database.to_owned(), runtime, change: Arc::new(change), next: Arc::new(AtomicI64::new(1)) }
    }

    /// Changes per second of one client that commits so many at once.
    pub(crate) fn rate_in_batches(&self, size: usize, time: Duration) -> f64 {
        self.runtime.block_on(async {
            let client = connect(&self.database).await;
            let began = Instant::now();
            let mut changes = 0;
            while began.elapsed() < time {
                let positions = (0..size).map(|_| self.next.fetch_add(1, Ordering::Relaxed)).collect();
                write(&client, &self.change, positions, true).await;
                changes += size;
            }
            changes as f64 / began.elapsed().as_secs_f64()
        })
    }

    /// The 99th percentile of the times of commits of one change by so many clients at once, in seconds. None of them
    /// waits for a row of another one.
    pub(crate) fn p99_of_commits(&self, clients: usize, time: Duration) -> f64 {
        self.runtime.block_on(async {
            let mut tasks = JoinSet::new();
            for _ in 0..clients {
                let client = connect(&self.database).await;
                let (change, next) = (Arc::clone(&self.change), Arc::clone(&self.next));
                tasks.spawn(async move {
                    let (began, mut times) = (Instant::now(), Vec::new());
                    while began.elapsed() < time {
                        let start = Instant::now();
                        write(&client, &change, vec![next.fetch_add(1, Ordering::Relaxed)], false).await;
                        times.push(start.elapsed().as_secs_f64());
                    }
                    times
                });
            }
            percentile(tasks.join_all().await.concat(), 99)
        })
    }
}

async fn connect(database: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(database, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

/// Writes changes at these positions in one transaction.
async fn write(client: &Client, change: &Change, positions: Vec<i64>, with_head: bool) {
    client.batch_execute("BEGIN").await.unwrap();
    if with_head {
        client.execute(HEAD, &[&positions[0]]).await.unwrap();
    }
    let Change { header, digest, hash, calls, path, entry, key, value } = change;
    client.execute(COMMITS, &[&positions, header, digest, hash, calls]).await.unwrap();
    client.execute(ENTRIES, &[&positions, path, entry]).await.unwrap();
    client.execute(STATE, &[&positions, key, value]).await.unwrap();
    client.batch_execute("COMMIT").await.unwrap();
}
