//! Connections to the database, for callers that wait.
//!
//! The store waits for its engine, from any thread, also from one that runs requests. The client for PostgreSQL is
//! asynchronous, so it has a thread of its own, on which all work runs, and callers wait for their part of it.
//!
//! Nothing waits for ever: work has a time after which its connection counts as lost. But what is slow is not lost: a large
//! write takes long, and so does one that waits for a lock. So if an answer takes more than a moment, another connection is
//! opened to see whether the database answers at all, and one that does not is given up within seconds.

use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;
use tokio::time::{sleep, timeout};
use tokio_postgres::config::TargetSessionAttrs;
use tokio_postgres::{Client, Config, Error};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::address::PostgresAddress;
use super::failure::{CURE, failed, is_away, is_lost, lacks_password, replaced};
use crate::lock::Lock;
use crate::model::Code;
use crate::store::error::StoreError;

/// How long work on the database is waited for, with what it sends and reads. A first apply of 100,000 resources takes seconds.
const TIMEOUT: Duration = Duration::from_secs(120);
/// How long an answer may take until another connection tries whether the database answers.
const SLOW: Duration = Duration::from_secs(2);

/// A way to a database.
pub(super) struct DatabaseLink {
    address: Arc<PostgresAddress>,
    handle: Handle,
    /// Ends the thread when it is dropped.
    end: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
    questions: Arc<QuestionConnection>,
    /// Whether the database was last seen with another store than the one that was opened.
    is_replaced: AtomicBool,
}

/// A connection for questions, which is opened when one is asked. A question waits for those before it on the same connection.
pub(super) struct QuestionConnection {
    /// How other processes see it.
    name: &'static str,
    client: Lock<Option<Arc<Client>>>,
}

impl QuestionConnection {
    /// One with a name, which is not open yet.
    pub(super) fn new(name: &'static str) -> Arc<Self> {
        Arc::new(Self { name, client: Lock::default() })
    }

    /// Has the next question open another one.
    pub(super) fn close(&self) {
        *self.client.lock() = None;
    }
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
        let address = Arc::new(address);
        let questions = QuestionConnection::new("edgewright (questions)");
        let is_replaced = AtomicBool::new(false);
        Ok(Arc::new(Self { address, handle, end: Some(end), thread, questions, is_replaced }))
    }

    /// The database, as messages show it.
    pub(super) fn shown(&self) -> &str {
        &self.address.shown
    }

    /// Notes whether the database has another store than the one that was opened.
    pub(super) fn note_replaced(&self, is_replaced: bool) {
        self.is_replaced.store(is_replaced, Ordering::Relaxed);
    }

    /// Fails once the database is known to have another store than the one that was opened: what that one has is not for whoever
    /// asks here. Until the next poll or probe, an answer can still come from it.
    pub(super) fn check_store(&self) -> Result<(), StoreError> {
        if self.is_replaced.load(Ordering::Relaxed) { Err(self.replaced()) } else { Ok(()) }
    }

    /// The error of a database that has another store than the one that was opened.
    pub(super) fn replaced(&self) -> StoreError {
        // Clients are told to come again.
        StoreError { code: Code::StoreUnavailable, ..replaced(self.shown()) }
    }

    /// The error of something that the database did not do; `doing` completes "cannot …".
    pub(super) fn failed(&self, doing: &str, error: &Error) -> StoreError {
        failed(doing, self.shown(), error)
    }

    /// Runs work on the thread of the connections, and waits for it. Returns none if the database no longer answers, or if
    /// the work takes too long or has panicked.
    pub(super) fn wait<T: Send + 'static>(&self, work: impl Future<Output = T> + Send + 'static) -> Option<T> {
        let address = Arc::clone(&self.address);
        self.on_thread(async move { timeout(TIMEOUT, while_it_answers(&address, work)).await.ok().flatten() })
    }

    /// Runs work on the thread of the connections that nobody waits for.
    pub(super) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) -> tokio::task::JoinHandle<()> {
        self.handle.spawn(work)
    }

    fn on_thread<T: Send + 'static>(&self, work: impl Future<Output = Option<T>> + Send + 'static) -> Option<T> {
        let (done, result) = mpsc::sync_channel(1);
        self.handle.spawn(async move {
            if let Some(found) = work.await {
                let _ = done.send(found);
            }
        });
        result.recv().ok()
    }

    /// Runs work that can fail; `doing` completes "cannot …".
    pub(super) fn run<T: Send + 'static>(
        &self,
        doing: &'static str,
        work: impl Future<Output = Result<T, Error>> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.result_of(doing, self.wait(work))
    }

    /// The result of work that was waited for.
    pub(super) fn result_of<T>(&self, doing: &str, done: Option<Result<T, Error>>) -> Result<T, StoreError> {
        done.map_or_else(|| Err(self.silent(doing)), |done| done.map_err(|error| self.failed(doing, &error)))
    }

    /// The error of a database that does not answer.
    pub(super) fn silent(&self, doing: &str) -> StoreError {
        let message = format!("cannot {doing} the store {}: PostgreSQL does not answer", self.shown());
        StoreError::new(Code::StoreUnavailable, message).help(CURE)
    }

    /// Opens a connection, which other processes see under a name.
    pub(super) fn connect(&self, name: &str) -> Result<Client, StoreError> {
        let (connector, mut config) = (self.address.tls.connector()?, self.address.with_password()?);
        config.application_name(name);
        let address = Arc::clone(&self.address);
        match self.on_thread(async move { open(&address, connector, config).await }) {
            Some(opened) => opened.map_err(|error| {
                let failure = self.failed("connect to", &error);
                let unmatched = || self.address.unmatched_passfile();
                match lacks_password(&error).then(unmatched).flatten() {
                    Some(why) => StoreError { message: format!("{}: {why}", failure.message), ..failure },
                    None => failure,
                }
            }),
            None => Err(self.silent("connect to")),
        }
    }

    /// The connection for the questions of everybody.
    pub(super) fn questions(&self) -> &Arc<QuestionConnection> {
        &self.questions
    }

    /// Runs a question of everybody.
    pub(super) fn ask<T, Q>(&self, question: impl Fn(Arc<Client>) -> Q) -> Result<T, StoreError>
    where
        T: Send + 'static,
        Q: Future<Output = Result<T, Error>> + Send + 'static,
    {
        self.ask_over(&self.questions, question)
    }

    /// Runs a question on a connection, which is opened again once if it was lost: whoever must not wait for others has one of
    /// its own. A question changes nothing, so that it can be asked again.
    pub(super) fn ask_over<T, Q>(
        &self,
        connection: &QuestionConnection,
        question: impl Fn(Arc<Client>) -> Q,
    ) -> Result<T, StoreError>
    where
        T: Send + 'static,
        Q: Future<Output = Result<T, Error>> + Send + 'static,
    {
        let known = connection.client.lock().clone().filter(|client| !client.is_closed());
        let done = known.map(|client| self.wait(question(client)));
        // The database may have restarted since the last question.
        let done = done.filter(|done| !matches!(done, Some(Err(error)) if is_lost(error) && is_away(error)));
        let done = match done {
            Some(done) => done,
            None => {
                let client = Arc::new(self.connect(connection.name)?);
                *connection.client.lock() = Some(Arc::clone(&client));
                self.wait(question(client))
            }
        };
        let answered = self.result_of("read", done);
        if answered.as_ref().is_err_and(|error| error.code == Code::StoreUnavailable) {
            // It may be silent without being closed.
            connection.close();
        }
        answered
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

/// Waits for work for as long as the database answers at all.
async fn while_it_answers<T>(address: &PostgresAddress, work: impl Future<Output = T>) -> Option<T> {
    let mut work = pin!(work);
    loop {
        let check = async {
            sleep(SLOW).await;
            answers(address).await
        };
        tokio::select! {
            biased;
            found = &mut work => return Some(found),
            is_there = check => if !is_there { return None },
        }
    }
}

/// Whether the database answers, be it that it refuses the connection.
async fn answers(address: &PostgresAddress) -> bool {
    // Without its files, nobody can tell.
    let Ok(connector) = address.tls.connector() else { return true };
    // The password is not needed: to ask for it is an answer.
    let mut config = address.config.clone();
    config.application_name("edgewright (check)");
    match open(address, connector, config).await {
        Some(Ok(_)) => true,
        Some(Err(error)) => error.as_db_error().is_some() || !is_away(&error),
        None => false,
    }
}

/// Opens a connection. Returns none if nobody answers in time.
async fn open(
    address: &PostgresAddress,
    connector: MakeRustlsConnect,
    mut config: Config,
) -> Option<Result<Client, Error>> {
    let mut opened = timeout(address.connect_timeout(), config.connect(connector.clone())).await.ok()?;
    if opened.is_err() && address.may_be_standby {
        config.target_session_attrs(TargetSessionAttrs::Any);
        opened = timeout(address.connect_timeout(), config.connect(connector)).await.ok()?;
    }
    Some(opened.map(|(client, connection)| {
        // It ends with the client. Whoever uses the client is told of its errors.
        tokio::spawn(async move { drop(connection.await) });
        client
    }))
}
