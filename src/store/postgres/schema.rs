//! The tables, and how an older version of them becomes this one.
//!
//! Everything is in the schema `edgewright` of one database, so a database has one store. The version of the tables is a row;
//! each step to the next one is a migration in [`MIGRATIONS`], and all that are missing run in one transaction of the writer, under
//! a lock that other processes wait for. Tables of a newer version are refused, and nothing in them changes.
//!
//! Servers are upgraded one after the other, those that follow first. So a version also reads the tables of the ones from
//! [`OLDEST_READ`] on, whose writer may go on for a while; and servers of the former version keep what they have read when the writer
//! migrates. A migration must not take long: requests that read are answered meanwhile, but nothing can be written.

use tokio_postgres::Client;

use crate::model::Code;
use crate::store::error::StoreError;

/// The locks of a database that edgewright takes, as numbers: "ewmi" and "ewwr".
const MIGRATION_LOCK: i64 = 0x6577_6d69;
/// The lock of the writer, which it holds for as long as its connection lasts.
pub(super) const WRITER_LOCK: i64 = 0x6577_7772;

/// The steps from each version to the next one, the first of which makes the tables of [`FIRST`]. A new version is one more, at the
/// end, and never a change of another one.
const MIGRATIONS: [&str; 1] = [TABLES];
/// The first version that was released. Version 1 was not, so nothing migrates its tables.
const FIRST: i32 = 2;
/// The oldest version whose tables a process reads without a migration: each query of a reader must be possible in all from it on.
const OLDEST_READ: i32 = FIRST;

/// The first version.
///
/// `state` has the current records with their digests. `commits` has the headers of the history, and `entries` what each commit did,
/// with what undoes it. `head` is the end of the history, where it begins once retention has removed something, the sum of the
/// digests of the state, whether all of a copy is there, and the epoch, the name and the URL of the writer. `secrets` has the
/// wrapped data keys, and `files` what a folder has beside its store.
const TABLES: &str = "
CREATE TABLE edgewright.commits (
    position bigint PRIMARY KEY,
    revision bigint NOT NULL,
    made bigint,
    next_order bigint NOT NULL,
    at bigint NOT NULL,
    source bytea,
    header bytea NOT NULL,
    digest bytea NOT NULL,
    hash bytea NOT NULL,
    calls bytea NOT NULL,
    bytes bigint NOT NULL
);
CREATE INDEX commits_revision ON edgewright.commits (revision, position);
CREATE INDEX commits_made ON edgewright.commits (made) WHERE made IS NOT NULL;
CREATE INDEX commits_source ON edgewright.commits (source, position) WHERE source IS NOT NULL;
CREATE INDEX commits_applied ON edgewright.commits (position) WHERE source IS NOT NULL;
CREATE INDEX commits_at ON edgewright.commits (at);
CREATE TABLE edgewright.entries (
    position bigint NOT NULL,
    number integer NOT NULL,
    path text,
    entry bytea NOT NULL,
    PRIMARY KEY (position, number)
);
CREATE INDEX entries_path ON edgewright.entries (path, position) WHERE path IS NOT NULL;
CREATE TABLE edgewright.state (
    key bytea PRIMARY KEY,
    position bigint NOT NULL,
    value bytea NOT NULL,
    digest bigint NOT NULL
);
CREATE INDEX state_position ON edgewright.state (position);
CREATE TABLE edgewright.head (
    one boolean PRIMARY KEY DEFAULT true CHECK (one),
    store bytea NOT NULL,
    position bigint NOT NULL,
    hash bytea NOT NULL,
    revision bigint NOT NULL,
    next_order bigint NOT NULL,
    complete boolean NOT NULL,
    epoch bigint NOT NULL,
    writer text NOT NULL,
    url text NOT NULL,
    data_key text NOT NULL,
    kept_position bigint NOT NULL,
    kept_hash bytea NOT NULL,
    kept_revision bigint NOT NULL,
    kept_next_order bigint NOT NULL,
    state_digest numeric NOT NULL DEFAULT 0
);
CREATE TABLE edgewright.secrets (
    one boolean PRIMARY KEY DEFAULT true CHECK (one),
    keys bytea NOT NULL
);
CREATE TABLE edgewright.files (
    name text PRIMARY KEY,
    content bytea NOT NULL
);
";

/// The version that this program reads and writes.
pub(super) const VERSION: i32 = FIRST - 1 + MIGRATIONS.len() as i32;

/// Returns the version of the tables, or none if there are none.
pub(super) async fn version(client: &Client) -> Result<Option<i32>, tokio_postgres::Error> {
    let found = client.query_one("SELECT to_regclass('edgewright.schema_version') IS NOT NULL", &[]).await?;
    if !found.try_get::<_, bool>(0)? {
        return Ok(None);
    }
    let row = client.query_opt("SELECT version FROM edgewright.schema_version", &[]).await?;
    row.map(|row| row.try_get(0)).transpose()
}

/// Refuses tables that this program does not know. Those of an older version are migrated by a writer.
pub(super) fn check(found: i32, shown: &str, is_reader: bool) -> Result<(), StoreError> {
    if found > VERSION {
        let message = format!(
            "the tables of the store {shown} have version {found}, and this version of edgewright knows only {VERSION}"
        );
        return Err(StoreError::new(Code::StoreFormat, message).help("use the version of edgewright that wrote them"));
    }
    if (1..FIRST).contains(&found) {
        let message = format!(
            "the tables of the store {shown} have version {found}, which was never released, and this version of edgewright \
             reads only {FIRST} and newer"
        );
        let help = "run `edgewright backup` with the version that wrote them, and `edgewright restore` into an empty database with \
                    this one";
        return Err(StoreError::new(Code::StoreFormat, message).help(help));
    }
    if is_reader && found < OLDEST_READ {
        let message = format!(
            "the tables of the store {shown} have version {found}, which must become {OLDEST_READ} or newer first"
        );
        let help = "start a server of this version, or run a command that changes something: it migrates the tables";
        return Err(StoreError::new(Code::StoreFormat, message).help(help));
    }
    Ok(())
}

/// Brings the tables to this version, unless they are newer. Returns the version that they had before.
pub(super) async fn migrate(client: &Client) -> Result<i32, tokio_postgres::Error> {
    client.batch_execute("BEGIN").await?;
    client.execute("SELECT pg_advisory_xact_lock($1)", &[&MIGRATION_LOCK]).await?;
    // Asked first: who may not create a schema may use one that somebody has made.
    let there = client.query_one("SELECT to_regnamespace('edgewright') IS NOT NULL", &[]).await?;
    if !there.try_get::<_, bool>(0)? {
        client.batch_execute("CREATE SCHEMA edgewright").await?;
    }
    let found = match version(client).await? {
        Some(found) => found,
        None => {
            let create = "CREATE TABLE edgewright.schema_version (\
                          one boolean PRIMARY KEY DEFAULT true CHECK (one), version integer NOT NULL);\
                          INSERT INTO edgewright.schema_version (version) VALUES (0)";
            client.batch_execute(create).await?;
            0
        }
    };
    for step in MIGRATIONS.iter().skip(usize::try_from(found + 1 - FIRST).unwrap_or_default()) {
        client.batch_execute(step).await?;
    }
    if found < VERSION {
        client.execute("UPDATE edgewright.schema_version SET version = $1", &[&VERSION]).await?;
    }
    client.batch_execute("COMMIT").await?;
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_of_a_newer_version_are_refused_and_a_reader_migrates_none() {
        for (found, is_reader, is_refused) in [
            (VERSION + 1, false, true),
            (VERSION + 1, true, true),
            (VERSION, true, false),
            (OLDEST_READ - 1, true, true),
            (OLDEST_READ, true, false),
            (FIRST - 1, false, true),
            (0, false, false),
        ] {
            let checked = check(found, "postgres://db/edge", is_reader);
            assert_eq!(checked.is_err(), is_refused, "{found} {is_reader}");
            assert!(checked.err().is_none_or(|error| error.code == Code::StoreFormat));
        }
    }
}
