//! The lease of a writer, and the end of transactions that stop.
//!
//! # The problem
//!
//! A process that is stopped, or whose machine or network is gone, keeps its connections for minutes or hours, and with them the
//! lock of the writer and the locks of transactions: nobody could write in its place.
//!
//! # The idea
//!
//! The database ends a session of which it hears nothing for some seconds. From the moment it has the lock, the connection of the
//! writer is renewed every second by the thread of the connections, whatever the rest of the process does: a start, a commit or
//! a command for the master key may take long, and only a process that runs no thread at all stops. Other connections with
//! transactions have no lease, but no transaction of theirs is waited for either.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::sleep;
use tokio_postgres::Client;

use super::link::DatabaseLink;
use crate::store::error::StoreError;

/// How often the session of a writer is renewed.
const RENEWAL: Duration = Duration::from_secs(1);

/// Ends a transaction that stops, and a connection whose machine is gone.
const BOUNDS: &str = "SELECT set_config(name, value, false) \
                      FROM (VALUES ('idle_in_transaction_session_timeout', '6s'), ('tcp_keepalives_idle', '3'), \
                      ('tcp_keepalives_interval', '1'), ('tcp_keepalives_count', '3')) AS bounds (name, value)";
/// Ends a session that is not renewed. PostgreSQL has it from version 14 on.
const LEASE: &str = "SELECT set_config(name, '6s', false) FROM pg_settings WHERE name = 'idle_session_timeout'";

/// Renews the session of a connection until it is dropped.
pub(super) struct SessionLease(JoinHandle<()>);

impl SessionLease {
    /// Begins the lease of a connection.
    pub(super) fn begin(link: &DatabaseLink, client: &Arc<Client>) -> Result<Self, StoreError> {
        bound(link, client)?;
        let with = Arc::clone(client);
        link.run("open", async move { with.batch_execute(LEASE).await })?;
        let with = Arc::clone(client);
        Ok(Self(link.spawn(async move {
            while !with.is_closed() {
                sleep(RENEWAL).await;
                // It can come into a transaction, which it does not change; one that has failed refuses it.
                let _ = with.batch_execute("SELECT 1").await;
            }
        })))
    }
}

impl Drop for SessionLease {
    fn drop(&mut self) {
        // It keeps the connection, which must end with its last user.
        self.0.abort();
    }
}

/// Has the database end a connection that stops within a transaction.
pub(super) fn bound(link: &DatabaseLink, client: &Arc<Client>) -> Result<(), StoreError> {
    let with = Arc::clone(client);
    link.run("open", async move { with.batch_execute(BOUNDS).await })
}
