//! The listening socket, and its graceful end.

use std::{
    io,
    net::{SocketAddr, TcpListener},
    time::Duration,
};

use axum::Router;
use axum_server::Handle;
use hyper_util::rt::TokioTimer;
use tokio::{
    runtime::Runtime,
    signal::unix::{Signal, SignalKind, signal},
};

/// How long requests that are under way may take when the server stops.
const GRACE: Duration = Duration::from_secs(10);
/// How long a client may take for its request's head.
const HEAD_TIMEOUT: Duration = Duration::from_secs(15);

/// A bound socket, with the signals that end it caught.
pub struct Server {
    runtime: Runtime,
    listener: TcpListener,
    terminate: Option<Signal>,
    interrupt: Option<Signal>,
}

/// Binds the address. Port 0 takes a free one.
pub fn bind(address: &str) -> io::Result<Server> {
    let listener = TcpListener::bind(address)?;
    listener.set_nonblocking(true)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let (terminate, interrupt) = {
        let _inside = runtime.enter();
        (Some(signal(SignalKind::terminate())?), Some(signal(SignalKind::interrupt())?))
    };
    Ok(Server { runtime, listener, terminate, interrupt })
}

impl Server {
    /// The address that was bound.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Serves until SIGINT or SIGTERM, then finishes what is under way.
    pub fn run(mut self, router: Router) -> io::Result<()> {
        let (terminate, interrupt) = (self.terminate.take(), self.interrupt.take());
        let received = |signal: Option<Signal>| async move {
            match signal {
                Some(mut signal) => signal.recv().await,
                None => std::future::pending().await,
            }
        };
        self.run_until(router, async move {
            tokio::select! {
                _ = received(terminate) => {}
                _ = received(interrupt) => {}
            }
        })
    }

    /// Serves until `stop` is done, then finishes what is under way.
    pub fn run_until(self, router: Router, stop: impl Future<Output = ()> + Send + 'static) -> io::Result<()> {
        let Server { runtime, listener, .. } = self;
        runtime.block_on(async move {
            let handle = Handle::new();
            tokio::spawn(super::metrics::keep_up());
            let stopping = handle.clone();
            tokio::spawn(async move {
                stop.await;
                stopping.graceful_shutdown(Some(GRACE));
            });
            let mut server = axum_server::from_tcp(listener)?.handle(handle);
            server.http_builder().http1().timer(TokioTimer::new()).header_read_timeout(HEAD_TIMEOUT);
            server.serve(router.into_make_service()).await
        })
    }
}
