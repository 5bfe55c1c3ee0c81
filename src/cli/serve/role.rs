//! The role of a server among several on one database (D115): one writes, and the others follow it.
//!
//! A thread keeps the role for one round of the server. One that follows takes in what the writer commits, and takes its place when
//! nobody has held its lock for a while: a writer whose connection was cut has it back before that. One that writes keeps its
//! connection, and follows once another process has taken the store over or nothing can be written any more. No server moves into
//! another store that it finds in the database: it answers from what it has read until its own one is back.
//!
//! The store for the next role is opened while this round still serves, and a round only ends when that has succeeded. So requests
//! that read are answered all the time but for the moment between two rounds, in which new ones wait. A round that could not start
//! all of its parts serves without them, and ends for another one that tries again.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, channel};

use tokio::sync::oneshot;

use crate::background::ThreadGuard;
use crate::cli::prelude::*;
use crate::cli::store::retention_args::RetentionArgs;
use crate::cli::store::store_args::StoreArgs;
use crate::lock::Lock;
use crate::store::StoreError;

/// How often a server that follows asks for new commits.
const FOLLOW: Duration = Duration::from_millis(25);
/// How many pages of commits it takes in before it checks anything else.
const MOST_PAGES: usize = 100;
/// How often a server that writes probes its connection.
const PROBE: Duration = Duration::from_secs(1);
/// How long the lock of the writer is free before another process takes it.
const GONE: Duration = Duration::from_secs(2);
/// The pause after a change of roles that has failed, and before a master key is read again that did not open the store.
const PAUSE: Duration = Duration::from_secs(2);
/// The pause before another round with the same role, which connections do not survive.
const RETRY: Duration = Duration::from_secs(10);

/// Keeps the role of a server until it is dropped.
pub(super) struct RoleWatch {
    next: Receiver<Arc<Store>>,
    over: Option<oneshot::Receiver<()>>,
    /// When the round may end for another one with the same role.
    retry_at: Arc<Lock<Option<Instant>>>,
    _thread: Option<ThreadGuard>,
}

impl RoleWatch {
    /// Starts to keep the role that a server has on an open store.
    pub(super) fn start(args: &StoreArgs, retention: &RetentionArgs, store: &Arc<Store>) -> std::io::Result<Self> {
        let ((opened, next), (over, is_over)) = (channel::<Arc<Store>>(), oneshot::channel::<()>());
        let retry_at: Arc<Lock<Option<Instant>>> = Arc::default();
        // A store in a folder has one process.
        let thread = args.is_in_database().then(|| {
            let role = ServerRole::new(args.clone(), retention.clone(), Arc::clone(store), Arc::clone(&retry_at));
            ThreadGuard::start("role", move |goes_on| {
                if let Some(store) = role.keep(goes_on)
                    && opened.send(store).is_ok()
                {
                    let _ = over.send(());
                }
            })
        });
        Ok(Self { next, over: Some(is_over), retry_at, _thread: thread.transpose()? })
    }

    /// Completes when the round is to end. Can be asked for once.
    pub(super) fn ends(&mut self) -> impl Future<Output = ()> + Send + 'static + use<> {
        let over = self.over.take();
        async move {
            let is_over = match over {
                Some(over) => over.await.is_ok(),
                None => false,
            };
            if !is_over {
                std::future::pending::<()>().await;
            }
        }
    }

    /// Has the round end after a while for another one with the same role, once the database answers.
    pub(super) fn try_again(&self) {
        *self.retry_at.lock() = Some(Instant::now() + RETRY);
    }

    pub(super) fn next(&self) -> Option<Arc<Store>> {
        self.next.try_recv().ok()
    }
}

struct ServerRole {
    args: StoreArgs,
    retention: RetentionArgs,
    store: Arc<Store>,
    retry_at: Arc<Lock<Option<Instant>>>,
    /// Why the last poll of the database failed, if it has.
    failing: Option<Code>,
    /// The last failed change of roles, as it was logged.
    refused: String,
    /// When the next change of roles may be tried, and the master key read again.
    not_before: Instant,
}

impl ServerRole {
    fn new(args: StoreArgs, retention: RetentionArgs, store: Arc<Store>, retry_at: Arc<Lock<Option<Instant>>>) -> Self {
        Self { args, retention, store, retry_at, failing: None, refused: String::new(), not_before: Instant::now() }
    }

    /// Keeps the role until the round is to end, and returns the store for the next one. Returns none if the round ends before.
    fn keep(mut self, goes_on: &dyn Fn(Duration) -> bool) -> Option<Arc<Store>> {
        let pause = if self.store.followed_writer().is_some() { FOLLOW } else { PROBE };
        while goes_on(pause) {
            match catch_unwind(AssertUnwindSafe(|| self.step())) {
                Ok(None) => {}
                Ok(Some(store)) => return Some(store),
                Err(_) => tracing::error!("keeping the role of this server panicked; it is tried again"),
            }
        }
        None
    }

    fn step(&mut self) -> Option<Arc<Store>> {
        let next = if self.store.stands_in_since().is_some() {
            self.come_back()
        } else if self.store.followed_writer().is_some() {
            self.follow()
        } else {
            self.write()
        };
        if let Some(next) = &next {
            self.compare(next);
        }
        let is_due = || self.retry_at.lock().is_some_and(|at| Instant::now() >= at);
        next.map(Arc::new).or_else(|| (self.failing.is_none() && is_due()).then(|| Arc::clone(&self.store)))
    }

    fn follow(&mut self) -> Option<Store> {
        // Without the master key, nothing can be taken in, and the command that prints it may take its time.
        if self.failing == Some(Code::MasterKey) && Instant::now() < self.not_before {
            return None;
        }
        let mut taken = self.store.catch_up();
        for _ in 0..MOST_PAGES {
            if !matches!(taken, Ok(true)) {
                break;
            }
            taken = self.store.catch_up();
        }
        match taken {
            Ok(_) => {
                self.note(None, "");
                let gone = self.store.followed_writer()?.gone_since?;
                if gone.elapsed() < GONE {
                    return None;
                }
                let store = self.open(|role| role.args.open_to_write(&role.retention, role.store.id()).map(Some))?;
                tracing::info!("The server that wrote to the store is gone. This one takes its place.");
                Some(store)
            }
            // What was read until now stays, also if a newer version of edgewright has migrated the tables, or if they are those of
            // another store.
            Err(error) if matches!(error.code, Code::StoreUnavailable | Code::StoreFailed | Code::StoreFormat) => {
                self.note(Some(error), "no news of the store");
                None
            }
            // The writer has another one, which is not here yet.
            Err(error) if error.code == Code::MasterKey => {
                self.not_before = Instant::now() + PAUSE;
                self.note(Some(error), "no news of the store");
                None
            }
            Err(error) => {
                let store = self.open(|role| role.args.open_to_follow(role.store.id()))?;
                tracing::warn!(code = %error.code, "The store is read again: {error}");
                Some(store)
            }
        }
    }

    /// Tries the database again that a local copy stands in for.
    fn come_back(&mut self) -> Option<Store> {
        let store = self.open(|role| role.args.open_to_serve(&role.retention, role.store.id()).map(Some))?;
        tracing::info!("The database answers again. This server takes its place among those that use it.");
        Some(store)
    }

    fn write(&mut self) -> Option<Store> {
        let probed = self.store.probe();
        let Err(error) = self.store.health() else {
            self.note(probed.err(), "nothing can be written to the store");
            return None;
        };
        // Another round with the same role would write no more, either.
        self.failing = Some(error.code);
        let store = self.open(|role| role.args.open_to_follow(role.store.id()))?;
        tracing::warn!(code = %error.code, "This server can no longer write: {error}");
        Some(store)
    }

    /// Says if the store that was opened lacks what this server has answered with.
    fn compare(&self, next: &Store) {
        let (before, now) = (self.store.snapshot().revision, next.snapshot().revision);
        let has_lost = next.has_lost(&self.store).unwrap_or_else(|error| {
            tracing::warn!(code = %error.code, "cannot compare the history with what was read before: {error}");
            now < before
        });
        let found = if has_lost { Some(Instant::now()) } else { self.store.went_back() };
        if let Some(at) = found {
            next.note_went_back(at);
        }
        if has_lost {
            let history = if now < before { "" } else { " of another history" };
            tracing::error!(
                "The database is at revision {now}{history} and was at {before}: it has lost changes that were confirmed, for example by a \
                 failover to a replica that lagged. Sources are applied again; make other changes again, or restore the database."
            );
        }
    }

    /// Opens the store for another role, unless that has failed a moment ago.
    fn open(&mut self, open: impl FnOnce(&Self) -> Result<Option<Store>, Failure>) -> Option<Store> {
        if Instant::now() < self.not_before {
            return None;
        }
        let opened = open(self).unwrap_or_else(|failure| {
            let messages: Vec<&str> = failure.diagnostics.iter().map(|it| it.message.as_str()).collect();
            let messages = messages.join("; ");
            // Another server was faster.
            if !failure.has_code(Code::StoreLocked) && self.refused != messages {
                tracing::warn!("cannot change the role of this server: {messages}; trying again");
                self.refused = messages;
            }
            None
        });
        if opened.is_none() {
            self.not_before = Instant::now() + PAUSE;
        }
        opened
    }

    /// Logs an error of the store once, and that it has passed.
    fn note(&mut self, error: Option<StoreError>, what: &str) {
        let before = std::mem::replace(&mut self.failing, error.as_ref().map(|error| error.code));
        match error {
            Some(error) if before != Some(error.code) => tracing::warn!(code = %error.code, "{what}: {error}"),
            None if before == Some(Code::MasterKey) => tracing::info!("The master key opens the store again."),
            None if before.is_some() => tracing::info!("The database answers again."),
            _ => {}
        }
    }
}
