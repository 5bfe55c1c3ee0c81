//! Connections to the database, for callers that wait.
//!
//! The store waits for its engine, from any thread, also from one that runs requests. The client for PostgreSQL is
//! asynchronous, so it has a thread of its own, on which all work runs, and callers wait for their part of it. Nothing waits
//! for ever: work has a time after which its connection counts as lost.

use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;
use tokio_postgres::Client;

use super::address::PostgresAddress;
use super::failure::{CURE, failed};
use crate::lock::Lock;
use crate::model::Code;
use crate::store::error::StoreError;

/// How long work on the database is waited for, with what it sends and reads. A first apply of 100,000 resources takes seconds.
pub(super) const PATIENCE: Duration = Duration::from_secs(120);

/// A way to a database.
pub(super) struct DatabaseLink {
    address: PostgresAddress,
    handle: Handle,
    /// Ends the thread when it is dropped.
    end: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
    /// The connection for questions, if there is one.
    questions: Lock<Option<Arc<Client>>>,
}

impl DatabaseLink {
    /// Starts the thread. Connects to nothing yet.
    pub(super) fn new(address: PostgresAddress) -> Result<Arc<Self>, StoreError> {
        let runtime = Builder::new_current_thread().enable_all().build().map_err(StoreError::internal)?;
        let handle = runtime.handle().clone();
        let (end, ended) = oneshot::channel::<()>();
        let thread = std::thread::Builder::new().name("postgres".into()).spawn(move || {
            let _ = runtime.block_on(ended);
        });
        let thread = Some(thread.map_err(StoreError::internal)?);
        Ok(Arc::new(Self { address, handle, end: Some(end), thread, questions: Lock::default() }))
    }

    /// The database, as messages show it.
    pub(super) fn shown(&self) -> &str {
        &self.address.shown
    }

    /// The error of something that the database did not do; `doing` completes "cannot …".
    pub(super) fn failed(&self, doing: &str, error: &tokio_postgres::Error) -> StoreError {
        failed(doing, self.shown(), error)
    }

    /// Runs work on the thread of the connections, and waits for it. Returns none if it takes too long, or has panicked.
    pub(super) fn wait<T: Send + 'static>(&self, work: impl Future<Output = T> + Send + 'static) -> Option<T> {
        let (done, result) = mpsc::sync_channel(1);
        self.handle.spawn(async move {
            if let Ok(found) = tokio::time::timeout(PATIENCE, work).await {
                let _ = done.send(found);
            }
        });
        result.recv().ok()
    }

    /// Runs work that can fail; `doing` completes "cannot …".
    pub(super) fn run<T: Send + 'static>(
        &self,
        doing: &'static str,
        work: impl Future<Output = Result<T, tokio_postgres::Error>> + Send + 'static,
    ) -> Result<T, StoreError> {
        match self.wait(work) {
            Some(done) => done.map_err(|error| self.failed(doing, &error)),
            None => Err(self.silent(doing)),
        }
    }

    /// The error of a database that does not answer.
    pub(super) fn silent(&self, doing: &str) -> StoreError {
        let message = format!("cannot {doing} the store {}: PostgreSQL does not answer", self.shown());
        StoreError::new(Code::StoreFailed, message).help(CURE)
    }

    /// Opens a connection, which other processes see under a name.
    pub(super) fn connect(&self, name: &str) -> Result<Client, StoreError> {
        let mut config = self.address.config.clone();
        config.application_name(name);
        let connector = self.address.tls.connector()?;
        self.run("connect to", async move {
            let (client, connection) = config.connect(connector).await?;
            // It ends with the client. Whoever uses the client is told of its errors.
            tokio::spawn(async move { drop(connection.await) });
            Ok(client)
        })
    }

    /// Runs a question, on a connection that is opened again if it was lost.
    pub(super) fn ask<T, Q>(
        &self,
        doing: &'static str,
        question: impl FnOnce(Arc<Client>) -> Q,
    ) -> Result<T, StoreError>
    where
        T: Send + 'static,
        Q: Future<Output = Result<T, tokio_postgres::Error>> + Send + 'static,
    {
        let known = self.questions.lock().clone().filter(|client| !client.is_closed());
        let client = match known {
            Some(client) => client,
            None => {
                let client = Arc::new(self.connect("edgewright (questions)")?);
                *self.questions.lock() = Some(Arc::clone(&client));
                client
            }
        };
        self.run(doing, question(client))
    }
}

impl Drop for DatabaseLink {
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
