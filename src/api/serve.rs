//! The listening socket, signals and graceful shutdown.

use std::{
    io,
    net::{SocketAddr, TcpListener},
    sync::Arc,
    time::Duration,
};

use axum::Router;
use axum_server::Handle;
use hyper_util::rt::TokioTimer;
use tokio::{
    runtime::Runtime,
    signal::unix::{Signal, SignalKind, signal},
    sync::watch,
};

use crate::reconcile::{
    followed::FollowedList,
    following::{Following, GRACE},
};

/// The grace period for background work after the last connection is closed.
const LEAVE: Duration = Duration::from_secs(1);
/// The timeout for a request's head.
const HEAD_TIMEOUT: Duration = Duration::from_secs(15);
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

/// Binds an address. Port 0 selects a free port.
pub fn bind(address: &str) -> io::Result<Server> {
    let listener = TcpListener::bind(address)?;
    listener.set_nonblocking(true)?;
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
    Ok(Server { runtime, listener, signals, stopping: watch::Sender::new(false) })
}

impl Server {
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
    pub fn run(self, router: Router, following: impl IntoIterator<Item = Arc<Following>>) -> io::Result<()> {
        let following = FollowedList::new(following.into_iter().collect());
        let loops = following.clone();
        self.run_following(router, following, move || {
            if loops.iter().next().is_some() {
                tracing::info!("SIGHUP: reading the manifests");
            }
            loops.iter().for_each(|following| following.look());
        })
    }

    /// Like [`Self::run`], for sources that may change. Calls `hangup` on each SIGHUP.
    pub(crate) fn run_following(
        self,
        router: Router,
        following: FollowedList,
        mut hangup: impl FnMut() + Send + 'static,
    ) -> io::Result<()> {
        let Self { runtime, listener, mut signals, stopping } = self;
        let loops = following.clone();
        let stop = async move {
            signals.stop(&mut hangup).await;
            // The loops stop while the last requests finish.
            loops.stop();
        };
        let stop = tell(stopping, stop);
        serve(runtime, listener, router, following, stop)
    }

    /// Serves until `stop` completes, then finishes running requests.
    pub fn run_until(self, router: Router, stop: impl Future<Output = ()> + Send + 'static) -> io::Result<()> {
        let stop = tell(self.stopping, stop);
        serve(self.runtime, self.listener, router, FollowedList::default(), stop)
    }

    /// Returns a receiver of whether the server stops.
    pub(super) fn stopping(&self) -> watch::Receiver<bool> {
        self.stopping.subscribe()
    }
}

/// Completes with `stop`, and tells the streams of changes: they would not end by themselves.
async fn tell(stopping: watch::Sender<bool>, stop: impl Future<Output = ()>) {
    stop.await;
    stopping.send_replace(true);
}

fn serve(
    runtime: Runtime,
    listener: TcpListener,
    router: Router,
    following: FollowedList,
    stop: impl Future<Output = ()> + Send + 'static,
) -> io::Result<()> {
    let served = runtime.block_on(async move {
        let handle = Handle::new();
        tokio::spawn(super::metrics::keep_up(following));
        let stopping = handle.clone();
        tokio::spawn(async move {
            stop.await;
            stopping.graceful_shutdown(Some(GRACE));
        });
        let mut server = axum_server::from_tcp(listener)?.handle(handle);
        server.http_builder().http1().timer(TokioTimer::new()).header_read_timeout(HEAD_TIMEOUT);
        // The gateway configuration is sent to loopback peers only.
        server.serve(router.into_make_service_with_connect_info::<SocketAddr>()).await
    });
    // A blocked run must not delay the shutdown: commits are atomic.
    runtime.shutdown_timeout(LEAVE);
    served
}
