//! The listening socket, signals and graceful shutdown.
//!
//! Whoever replaces a server wants three things of the old one: to take no more clients, to finish what it has begun, and to
//! be gone in time. On SIGTERM or SIGINT, the loops of the sources are told to stop, streams of changes end (they would not
//! by themselves), and the socket is closed. Connections end after their current responses, for which they have ten seconds.
//! Then the runtime is left, with a second for work that no client waits for. A run that is still going is abandoned, which
//! costs nothing: a commit is complete or does not happen.
//!
//! A server that changes its role serves in *rounds*: what has begun gets a second, the socket stays open, and clients that come
//! meanwhile wait for the next round.
//!
//! The socket has a long queue, because many clients may wait while others are closed to make room, and a send buffer that is
//! chosen for telling a slow reader from one that takes nothing.

use std::io;
use std::net::TcpListener;

use axum::Router;
use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;

use tower::ServiceExt;

use super::connections::{self, ConnectionLimits, Handler};
use super::tls::Tls;
use crate::reconcile::sources::handle::GRACE;
use crate::server::app::App;
use crate::server::prelude::*;
use crate::server::telemetry::metrics;

/// The grace period for background work after the last connection is closed.
const LEAVE: Duration = Duration::from_secs(1);
/// The time for what has begun before the next round.
const CHANGE: Duration = Duration::from_secs(1);
/// The pause after a next round that could not begin.
const AGAIN: Duration = Duration::from_secs(1);
/// The connections that may wait until they are accepted, unless the system allows fewer. While others are closed to make
/// room, many may wait.
const BACKLOG: i32 = 4096;
/// The memory of the system for bytes that a client has not acknowledged. It is doubled by Linux, which tells that there is
/// room only when a third is free: a slow reader must get there within the time for a stall (D97). Long responses take longer
/// with less, and with much more, which does not stay in the caches of the cores.
const SEND_BUFFER: usize = 172 << 10;
/// The signal for a file over the limit of `ulimit -f`.
const SIGXFSZ: i32 = 25;
/// The most threads for blocking work, such as commits.
const BLOCKING_THREADS: usize = 64;

/// A bound socket and the process's signals.
pub struct Server {
    runtime: Runtime,
    listener: TcpListener,
    signals: Signals,
    /// Tells the streams of changes that the server stops.
    stopping: watch::Sender<bool>,
    /// The limits of connections.
    pub(crate) limits: ConnectionLimits,
    /// None to speak HTTP without TLS.
    pub(crate) tls: Option<Arc<Tls>>,
}

/// Signals from a service manager.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hangup: Signal,
}

impl Signals {
    /// Completes on SIGINT or SIGTERM. Calls `hangup` on each SIGHUP before.
    async fn stop(&mut self, hangup: &mut (dyn FnMut() + Send)) {
        loop {
            tokio::select! {
                _ = self.terminate.recv() => return,
                _ = self.interrupt.recv() => return,
                _ = self.hangup.recv() => hangup(),
            }
        }
    }
}

/// Binds an address. Port 0 selects a free port. The process's limit of open files is raised as far as it may be.
pub fn bind(address: &str) -> io::Result<Server> {
    Server::listening_on(TcpListener::bind(address)?)
}

impl App {
    /// Ends the streams of changes when a server stops. Without it, the server waits for them until its grace period
    /// ends.
    #[must_use]
    pub fn stopped_by(mut self, server: &Server) -> Self {
        self.0.stopping = Some(server.stopping.subscribe());
        self
    }
}

impl Server {
    /// Takes a socket that listens already, such as one of a service manager. Raises the limit of open files like [`bind`].
    pub(crate) fn listening_on(listener: TcpListener) -> io::Result<Self> {
        connections::raise_descriptors();
        listener.set_nonblocking(true)?;
        // Both are only improvements.
        let _ = rustix::net::listen(&listener, BACKLOG);
        let _ = rustix::net::sockopt::set_socket_send_buffer_size(&listener, SEND_BUFFER);
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        let runtime = builder.enable_all().max_blocking_threads(BLOCKING_THREADS).build()?;
        let signals = {
            let _inside = runtime.enter();
            // With a handler, a write over the limit of the file size fails like one to a full disk.
            let _ = signal(SignalKind::from_raw(SIGXFSZ));
            Signals {
                terminate: signal(SignalKind::terminate())?,
                interrupt: signal(SignalKind::interrupt())?,
                hangup: signal(SignalKind::hangup())?,
            }
        };
        let limits = ConnectionLimits::default();
        Ok(Self { runtime, listener, signals, stopping: watch::Sender::new(false), limits, tls: None })
    }

    /// The bound address.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Waits for a future before the first request. Returns false if the process is asked to stop.
    pub fn wait(&mut self, ready: impl Future<Output = ()>) -> bool {
        let signals = &mut self.signals;
        self.runtime.block_on(async move {
            let mut ignored = || {};
            tokio::select! {
                () = signals.stop(&mut ignored) => false,
                () = ready => true,
            }
        })
    }

    /// Serves until SIGINT or SIGTERM, then finishes running requests.
    pub fn run(self, router: Router, handles: impl IntoIterator<Item = Arc<SourceHandle>>) -> io::Result<()> {
        let registry = SourceRegistry::new(handles.into_iter().collect());
        let loops = registry.clone();
        let hangup = move || {
            if loops.iter().next().is_some() {
                tracing::info!("SIGHUP: reading the manifests");
            }
            loops.iter().for_each(|handle| handle.request_sync());
        };
        self.run_round(answer_with(router), registry, hangup, || {}, std::future::pending()).map(drop)
    }

    /// Calls `alive` at each interval, from a task among those that serve requests: not if these get no turn.
    pub(crate) fn every(&self, interval: Duration, alive: impl Fn() + Send + 'static) {
        self.runtime.spawn(async move {
            let mut interval = tokio::time::interval(interval);
            loop {
                interval.tick().await;
                alive();
            }
        });
    }

    /// Answers requests with `answer`. Otherwise like [`Self::run`], for sources that may change: calls `hangup` on each
    /// SIGHUP, and `stopping_begins` when it has to stop. If `ends` completes before that, only the round ends: returns the
    /// server of the next one, with the same socket.
    pub(crate) fn run_round(
        self,
        answer: Box<Handler>,
        registry: SourceRegistry,
        mut hangup: impl FnMut() + Send + 'static,
        stopping_begins: impl FnOnce() + Send + 'static,
        ends: impl Future<Output = ()> + Send + 'static,
    ) -> io::Result<Option<Self>> {
        let (loops, limits, tls, socket) =
            (registry.clone(), self.limits, self.tls.clone(), self.listener.try_clone()?);
        let left = self.serve(answer, registry, |mut signals| async move {
            let has_to_stop = tokio::select! {
                () = signals.stop(&mut hangup) => true,
                () = ends => false,
            };
            if has_to_stop {
                stopping_begins();
            }
            // The loops stop while the last requests finish.
            loops.stop();
            // Signals that arrive between two rounds are not lost.
            if has_to_stop { (GRACE, None) } else { (CHANGE, Some((signals, socket))) }
        })?;
        let Some((signals, socket)) = left else { return Ok(None) };
        // Clients wait, so a lack of threads or files only delays the next round.
        loop {
            match socket.try_clone().and_then(Self::listening_on) {
                Ok(next) => return Ok(Some(Self { signals, limits, tls, ..next })),
                Err(error) => tracing::error!("cannot go on listening, trying again: {error}"),
            }
            std::thread::sleep(AGAIN);
        }
    }

    /// Serves until `stop` completes, then finishes running requests.
    pub fn run_until(self, router: Router, stop: impl Future<Output = ()> + Send + 'static) -> io::Result<()> {
        let stop = async move {
            stop.await;
            (GRACE, None::<()>)
        };
        self.serve(answer_with(router), SourceRegistry::default(), |_| stop).map(drop)
    }

    /// Serves until `stop` completes, with the time for running requests and what is left for the next round.
    fn serve<T, S: Future<Output = (Duration, Option<T>)> + Send + 'static>(
        self,
        answer: Box<Handler>,
        registry: SourceRegistry,
        stop: impl FnOnce(Signals) -> S,
    ) -> io::Result<Option<T>> {
        let Self { runtime, listener, signals, stopping, limits, tls } = self;
        let stop = stop(signals);
        let served = runtime.block_on(async move {
            tokio::spawn(metrics::keep_up(registry));
            if let Some(tls) = &tls {
                tokio::spawn(Arc::clone(tls).keep_up());
            }
            let mut left = None;
            let stop = async {
                let (grace, rest) = stop.await;
                left = rest;
                // The streams of changes would not end by themselves.
                stopping.send_replace(true);
                grace
            };
            let served = connections::serve(listener, answer, limits, tls, stop).await;
            served.map(|()| left)
        });
        // A blocked run must not delay the shutdown: commits are atomic.
        runtime.shutdown_timeout(LEAVE);
        served
    }
}

/// Answers requests with a router.
fn answer_with(router: Router) -> Box<Handler> {
    Box::new(move |request: Request| {
        let answering = router.clone().oneshot(request);
        Box::pin(async move { answering.await.unwrap_or_else(|never| match never {}) })
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_reader_makes_room_before_it_counts_as_stalled() {
        let server = bind("127.0.0.1:0").unwrap();
        let _client = std::net::TcpStream::connect(server.address().unwrap()).unwrap();
        server.listener.set_nonblocking(false).unwrap();
        let (accepted, _) = server.listener.accept().unwrap();
        let third = rustix::net::sockopt::socket_send_buffer_size(&accepted).unwrap() / 3;
        let taken = 4000 * server.limits.stall.as_secs();
        assert!(u64::try_from(third).unwrap() < taken, "{third} {taken}");
    }
}
