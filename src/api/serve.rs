//! The listening socket, and its graceful end.

use std::{
    io,
    net::{SocketAddr, TcpListener},
    time::Duration,
};

use axum::Router;
use axum_server::Handle;
use hyper_util::rt::TokioTimer;

/// How long requests that are under way may take when the server stops.
const GRACE: Duration = Duration::from_secs(10);
/// How long a client may take for its request's head.
const HEAD_TIMEOUT: Duration = Duration::from_secs(15);

/// A bound socket.
pub struct Server {
    listener: TcpListener,
    handle: Handle<SocketAddr>,
}

/// Binds the address. Port 0 takes a free one.
pub fn bind(address: &str) -> io::Result<Server> {
    let listener = TcpListener::bind(address)?;
    listener.set_nonblocking(true)?;
    Ok(Server { listener, handle: Handle::new() })
}

impl Server {
    /// The address that was bound.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Serves until SIGINT or SIGTERM, then finishes what is under way.
    pub async fn run(self, router: Router) -> io::Result<()> {
        let handle = self.handle.clone();
        tokio::spawn(async move {
            stop_signal().await;
            handle.graceful_shutdown(Some(GRACE));
        });
        let mut server = axum_server::from_tcp(self.listener)?.handle(self.handle);
        server.http_builder().http1().timer(TokioTimer::new()).header_read_timeout(HEAD_TIMEOUT);
        server.serve(router.into_make_service()).await
    }
}

async fn stop_signal() {
    use tokio::signal::unix::{SignalKind, signal};
    let mut terminate = match signal(SignalKind::terminate()) {
        Ok(signal) => signal,
        Err(_) => return std::future::pending().await,
    };
    tokio::select! {
        _ = terminate.recv() => {}
        _ = tokio::signal::ctrl_c() => {}
    }
}
