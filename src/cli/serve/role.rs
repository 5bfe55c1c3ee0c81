//! The role of a server among several on one database (D115): one writes, and the others follow it.
//!
//! A thread keeps the role for one round of the server. One that follows takes in what the writer commits, and takes its place when
//! nobody has held its lock for a while: a writer whose connection was cut has it back before that. One that writes renews its
//! session, and follows once another process has taken the store over or nothing can be written any more.
//!
//! The store for the next role is opened while this round still serves, and a round only ends when that has succeeded. So requests
//! that read are answered all the time but for the moment between two rounds, in which new ones wait.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};

use tokio::sync::oneshot;

use crate::cli::prelude::*;
use crate::cli::store::retention_args::RetentionArgs;
use crate::cli::store::store_args::StoreArgs;

/// How often a server that follows asks for news.
const NEWS: Duration = Duration::from_millis(25);
/// How much news it takes in before it looks at anything else.
const MOST_PAGES: usize = 100;
/// How often a server that writes renews its session.
const RENEWAL: Duration = Duration::from_secs(1);
/// How long the lock of the writer is free before another process takes it.
const GONE: Duration = Duration::from_secs(2);
/// The pause after a change of roles that has failed.
const PAUSE: Duration = Duration::from_secs(2);

/// Keeps the role of a server until it is dropped.
pub(super) struct RoleWatch {
    next: Receiver<Store>,
    /// The thread ends with it.
    _alive: Sender<()>,
}

impl RoleWatch {
    /// Starts to keep the role that a server has on an open store. The future completes when it is to have another one.
    pub(super) fn start(
        args: &StoreArgs,
        kept: &RetentionArgs,
        store: &Arc<Store>,
    ) -> std::io::Result<(Self, impl Future<Output = ()> + Send + 'static + use<>)> {
        let ((alive, stopped), (opened, next), (over, is_over)) =
            (channel::<()>(), channel::<Store>(), oneshot::channel::<()>());
        // A store in a folder has one process.
        if args.is_in_database() {
            let role = ServerRole::new(args.clone(), kept.clone(), Arc::clone(store));
            let keep = move || {
                if let Some(store) = role.keep(&stopped)
                    && opened.send(store).is_ok()
                {
                    let _ = over.send(());
                }
            };
            std::thread::Builder::new().name("role".into()).spawn(keep)?;
        }
        let ends = async move {
            if is_over.await.is_err() {
                std::future::pending::<()>().await;
            }
        };
        Ok((Self { next, _alive: alive }, ends))
    }

    /// The store for the next role, if there is one.
    pub(super) fn next(&self) -> Option<Store> {
        self.next.try_recv().ok()
    }
}

/// The role of a server in one round.
struct ServerRole {
    args: StoreArgs,
    kept: RetentionArgs,
    store: Arc<Store>,
    /// Whether there was no news at the last look.
    is_silent: bool,
    /// When the next change of roles may be tried.
    not_before: Instant,
}

impl ServerRole {
    fn new(args: StoreArgs, kept: RetentionArgs, store: Arc<Store>) -> Self {
        Self { args, kept, store, is_silent: false, not_before: Instant::now() }
    }

    /// Keeps the role until it is to be another one, and returns the store for that. Returns none if the round ends before.
    fn keep(mut self, stopped: &Receiver<()>) -> Option<Store> {
        let pause = if self.store.followed_writer().is_some() { NEWS } else { RENEWAL };
        while stopped.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
            match catch_unwind(AssertUnwindSafe(|| self.look())) {
                Ok(None) => {}
                Ok(Some(store)) => return Some(store),
                Err(_) => tracing::error!("keeping the role of this server panicked; it is tried again"),
            }
        }
        None
    }

    fn look(&mut self) -> Option<Store> {
        if self.store.stands_in_since().is_some() {
            return self.come_back();
        }
        if self.store.followed_writer().is_some() { self.follow() } else { self.write() }
    }

    fn follow(&mut self) -> Option<Store> {
        let mut taken = self.store.take_news();
        for _ in 0..MOST_PAGES {
            if !matches!(taken, Ok(true)) {
                break;
            }
            taken = self.store.take_news();
        }
        match taken {
            Ok(_) => {
                if std::mem::take(&mut self.is_silent) {
                    tracing::info!("The database answers again.");
                }
                let gone = self.store.followed_writer()?.gone_since?;
                if gone.elapsed() < GONE {
                    return None;
                }
                let store = self.open(|role| role.args.open_to_write(&role.kept).map(Some))?;
                tracing::info!("The server that wrote to the store is gone. This one takes its place.");
                Some(store)
            }
            // What was read until now stays.
            Err(error) if matches!(error.code, Code::StoreUnavailable | Code::StoreFailed) => {
                if !std::mem::replace(&mut self.is_silent, true) {
                    tracing::warn!(code = %error.code, "no news of the store: {error}");
                }
                None
            }
            Err(error) => {
                let store = self.open(|role| role.args.open_to_follow())?;
                tracing::warn!(code = %error.code, "The store is read again: {error}");
                Some(store)
            }
        }
    }

    /// Tries the database again that a local copy stands in for.
    fn come_back(&mut self) -> Option<Store> {
        let store = self.open(|role| match role.args.open_to_serve(&role.kept) {
            Err(failure) if failure.has_code(Code::StoreUnavailable) => Ok(None),
            opened => opened.map(Some),
        })?;
        tracing::info!("The database answers again. This server takes its place among those that use it.");
        Some(store)
    }

    fn write(&mut self) -> Option<Store> {
        if let Err(error) = self.store.renew() {
            if !std::mem::replace(&mut self.is_silent, true) {
                tracing::warn!(code = %error.code, "the database knows nothing of this server: {error}");
            }
        } else if std::mem::take(&mut self.is_silent) {
            tracing::info!("The database answers again.");
        }
        let error = self.store.health().err()?;
        let store = self.open(|role| role.args.open_to_follow())?;
        tracing::warn!(code = %error.code, "This server writes no more: {error}");
        Some(store)
    }

    /// Opens the store for another role, unless that has failed a moment ago.
    fn open(&mut self, open: impl FnOnce(&Self) -> Result<Option<Store>, Failure>) -> Option<Store> {
        if Instant::now() < self.not_before {
            return None;
        }
        let opened = open(self).unwrap_or_else(|failure| {
            // Another server was faster.
            if !failure.has_code(Code::StoreLocked) {
                for diagnostic in &failure.diagnostics {
                    tracing::warn!("cannot change the role of this server: {}", diagnostic.message);
                }
            }
            None
        });
        if opened.is_none() {
            self.not_before = Instant::now() + PAUSE;
        }
        opened
    }
}
