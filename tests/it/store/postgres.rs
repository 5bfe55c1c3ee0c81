//! A store on PostgreSQL: one writer, who knows it; what is acknowledged when the server dies; and what a database has not.
//!
//! `engines.rs` has what every engine must do.

mod backups;
mod history;
mod outages;
mod reads;
mod refusals;
mod standbys;
mod state;
mod writers;

use std::time::Duration;

use edgewright::storage::{CommitError, StoreError};

use crate::support::{postgres::Postgres, program::within};

fn failed(result: Result<impl Sized, CommitError>) -> StoreError {
    match result.err().unwrap() {
        CommitError::Failed(error) => error,
        other => panic!("{other}"),
    }
}

/// Cuts the connections of the writers of a database.
fn cut(postgres: &Postgres, database: &str) {
    let sql = format!(
        "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity \
         WHERE datname = '{database}' AND application_name LIKE 'edgewright, process%'"
    );
    assert_ne!(postgres.psql("postgres", &sql).unwrap(), "0");
    let left = sql.replace("count(pg_terminate_backend(pid))", "count(*)");
    within(Duration::from_secs(10), "the end of a connection", || {
        (postgres.psql("postgres", &left).unwrap() == "0").then_some(())
    });
}
