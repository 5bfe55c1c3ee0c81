//! The listening socket, the signals of the process, and a graceful end.

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
};

use crate::reconcile::watch::{Following, GRACE};

/// How long what nobody waits for may still take after the last connection is closed.
const LEAVE: Duration = Duration::from_secs(1);
/// How long a client may take for its request's head.
const HEAD_TIMEOUT: Duration = Duration::from_secs(15);
/// The most threads for work that blocks, such as commits.
const BLOCKING_THREADS: usize = 64;

/// A bound socket, with the signals of the process caught.
pub struct Server {
    runtime: Runtime,
    listener: TcpListener,
    signals: Signals,
}

/// What a service manager may send.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hangup: Signal,
}

impl Signals {
    /// Is done when the process is asked to end. A SIGHUP asks for a look at the manifests, where they are followed, and
    /// for nothing elsewhere.
    async fn stop(&mut self, following: Option<&Following>) {
        loop {
            tokio::select! {
                _ = self.terminate.recv() => return,
                _ = self.interrupt.recv() => return,
                _ = self.hangup.recv() => if let Some(following) = following {
                    tracing::info!("SIGHUP: looking at the manifests");
                    following.look();
                },
            }
        }
    }
}

/// Binds the address. Port 0 takes a free one.
pub fn bind(address: &str) -> io::Result<Server> {
    let listener = TcpListener::bind(address)?;
    listener.set_nonblocking(true)?;
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let runtime = builder.enable_all().max_blocking_threads(BLOCKING_THREADS).build()?;
    let signals = {
        let _inside = runtime.enter();
        Signals {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hangup: signal(SignalKind::hangup())?,
        }
    };
    Ok(Server { runtime, listener, signals })
}

impl Server {
    /// The address that was bound.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Waits for something that has to come before the first request. False when the process is asked to end before.
    pub fn wait(&mut self, ready: impl Future<Output = ()>) -> bool {
        let signals = &mut self.signals;
        self.runtime.block_on(async move {
            tokio::select! {
                () = signals.stop(None) => false,
                () = ready => true,
            }
        })
    }

    /// Serves until SIGINT or SIGTERM, then finishes what is under way.
    pub fn run(self, router: Router, following: Option<Arc<Following>>) -> io::Result<()> {
        let Self { runtime, listener, mut signals } = self;
        let loop_too = following.clone();
        let stop = async move {
            signals.stop(loop_too.as_deref()).await;
            // The loop ends while the last requests are answered.
            if let Some(following) = loop_too {
                following.stop();
            }
        };
        serve(runtime, listener, router, following, stop)
    }

    /// Serves until `stop` is done, then finishes what is under way.
    pub fn run_until(self, router: Router, stop: impl Future<Output = ()> + Send + 'static) -> io::Result<()> {
        serve(self.runtime, self.listener, router, None, stop)
    }
}

fn serve(
    runtime: Runtime,
    listener: TcpListener,
    router: Router,
    following: Option<Arc<Following>>,
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
        server.serve(router.into_make_service()).await
    });
    // A run that blocks a thread must not hold up the end: a commit is whole or does not happen.
    runtime.shutdown_timeout(LEAVE);
    served
}
