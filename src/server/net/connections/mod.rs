//! The connections of a server: how many there may be, who gives way to others, and how long clients may take (D97).
//!
//! # The problem
//!
//! A fixed limit of connections that refuses whoever comes after is an invitation: 4,096 silent connections lock out
//! everybody. A timeout alone does not help, because the flood comes back sooner than it expires.
//!
//! # The idea
//!
//! Every connection shows what it does ([`Activity`]): it has had no request yet, it waits for the next one, its request is
//! being handled, or its client takes nothing of the response. When there is no place, the table ranks them and closes the
//! one that needs its place least ([`ConnectionTable`]):
//!
//! ```text
//! full, and a new client connects
//!
//!   #7   no request since it connected, 4 s ago     goes first: the oldest that never asked
//!   #3   no request since it connected, 1 s ago     second
//!   #5   waits for its next request since 50 s      third
//!   #1   its client has taken nothing for 2 s       fourth
//!   #2   its request is being handled               stays
//! ```
//!
//! A flood of silent connections thus pushes out itself. A new one has 20 ms for its first request before it can go, so that
//! a client that has just connected is not among them. If all have requests, the new one is refused.
//!
//! An address is limited in the same way among its own connections, so that one client cannot have them all. This machine has
//! no such limit: proxies connect from here.
//!
//! # How it sees what a client takes
//!
//! The stream below HTTP notes whether bytes go in and out ([`WatchedStream`]), and the body of a response is handed over in
//! parts of shared bytes ([`SentBody`]), so a response that nobody reads shows within one part, also on one stream of HTTP/2.
//! The memory for responses is limited in the same place: while a megabyte of them waits for the client of a connection, it
//! gets no further requests handled.
//!
//! # What it never does
//!
//! A connection whose request is being handled is never closed. Requests are not inspected here: their limits apply
//! once they have arrived.

mod activity;
pub(crate) mod connection_metrics;
mod limits;
mod refusal;
mod sent_body;
mod stream;
mod table;

use std::convert::Infallible;
use std::io;
use std::pin::Pin;

use axum::extract::ConnectInfo;
use axum::http::Version;
use hyper::{body::Incoming, service::service_fn};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use rustix::io::Errno;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use super::tls::{OverTls, PeerCertificate, Tls};
use crate::server::prelude::*;
use activity::Activity;
use connection_metrics::RefusalReason;
use sent_body::SentBody;
use stream::WatchedStream;
use table::{ConnectionSlot, ConnectionTable};

pub(crate) use limits::{ConnectionLimits, raise_descriptors};

/// The pause after a failure to accept a connection, such as too many open files.
const PAUSE: Duration = Duration::from_millis(20);
/// The largest head of a request, and the most bytes of a response that wait to be written.
const BUFFER: usize = 64 << 10;
/// The largest head of HTTP/2.
const MOST_HEADERS: u32 = 16 << 10;
/// The most requests of an HTTP/2 connection at a time.
const MOST_STREAMS: u32 = 64;
/// How much of its bodies a client may send before they are read.
const STREAM_WINDOW: u32 = 256 << 10;
const CONNECTION_WINDOW: u32 = 512 << 10;
/// The most streams that a client may reset before they are handled, and that the server may reset because of its errors.
const MOST_PENDING_RESETS: usize = 20;
const MOST_RESETS: usize = 128;
/// How often an HTTP/2 client is asked for a sign of life, and how long it may take.
const PING: Duration = Duration::from_secs(20);
/// How long a client with a certificate has for the responses that are on their way when its authorities are replaced.
const LAST_RESPONSES: Duration = Duration::from_secs(5);
/// The first byte of a TLS handshake.
const HANDSHAKE: u8 = 22;

/// A response on its way.
pub(crate) type ResponseFuture = Pin<Box<dyn Future<Output = Response> + Send>>;
/// Answers requests.
pub(super) type Handler = dyn Fn(Request) -> ResponseFuture + Send + Sync;

/// State shared by the connections of a server.
struct Acceptor {
    answer: Box<Handler>,
    builder: Builder<TokioExecutor>,
    table: Arc<ConnectionTable>,
    limits: ConnectionLimits,
    tls: Option<Arc<Tls>>,
}

/// Serves connections until `stop` completes, and then gives those that have requests some more time.
pub(super) async fn serve(
    listener: std::net::TcpListener,
    answer: Box<Handler>,
    limits: ConnectionLimits,
    tls: Option<Arc<Tls>>,
    stop: impl Future<Output = Duration>,
) -> io::Result<()> {
    let listener = TcpListener::from_std(listener)?;
    let table = ConnectionTable::new(limits);
    let shared = Arc::new(Acceptor { answer, builder: builder(), table, limits, tls });
    let (stopping, stopped) = watch::channel(false);
    tokio::pin!(stop);
    let grace = loop {
        tokio::select! {
            biased;
            grace = &mut stop => break grace,
            () = accept(&listener, &shared, &stopped) => {}
        }
    };
    // New clients are turned away at once, rather than left waiting. If a service manager has the socket open too, they wait
    // for the next process.
    drop(listener);
    drop(stopped);
    stopping.send_replace(true);
    // Each connection has a receiver until it ends.
    let _ = timeout(grace, stopping.closed()).await;
    Ok(())
}

/// The settings of the HTTP parser.
fn builder() -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    // The activity of the connection has the timeouts, also before the protocol is known.
    builder.http1().header_read_timeout(None::<Duration>).max_buf_size(BUFFER);
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(PING)
        .keep_alive_timeout(PING)
        .max_concurrent_streams(MOST_STREAMS)
        .max_header_list_size(MOST_HEADERS)
        .max_send_buf_size(BUFFER)
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_pending_accept_reset_streams(MOST_PENDING_RESETS)
        .max_local_error_reset_streams(MOST_RESETS);
    builder
}

/// Accepts a connection, finds a place for it, and serves it in a task of its own.
async fn accept(listener: &TcpListener, shared: &Arc<Acceptor>, stopped: &watch::Receiver<bool>) {
    let (stream, peer) = match listener.accept().await {
        Ok(accepted) => accepted,
        Err(error) => {
            metrics::counter!(connection_metrics::ACCEPT_FAILURES).increment(1);
            let errors = [Errno::MFILE, Errno::NFILE].map(|it| it.raw_os_error());
            if error.raw_os_error().is_some_and(|it| errors.contains(&it)) {
                shared.table.shed();
            }
            sleep(PAUSE).await;
            return;
        }
    };
    if let Some(slot) = shared.table.slot(peer.ip()) {
        drop(tokio::spawn(serve_connection(Arc::clone(shared), stream, peer, slot, stopped.clone())));
        return;
    }
    // Whoever waits for a place must not keep others from coming in.
    let Some(waiting) = shared.table.queue(peer.ip()).await else {
        return refuse(shared, &stream, RefusalReason::Address);
    };
    let (shared, stopped) = (Arc::clone(shared), stopped.clone());
    drop(tokio::spawn(async move {
        match waiting.slot().await {
            Ok(slot) => serve_connection(shared, stream, peer, slot, stopped).await,
            Err(reason) => refuse(&shared, &stream, reason),
        }
    }));
}

/// Refuses a connection that has no place.
fn refuse(shared: &Acceptor, stream: &TcpStream, reason: RefusalReason) {
    metrics::counter!(connection_metrics::REFUSED, "reason" => reason.as_str()).increment(1);
    if shared.tls.is_none() {
        send_refusal(stream, &refusal::too_many_connections());
    }
}

/// Sends a response that fits into the socket's buffer, without waiting for anything.
fn send_refusal(stream: &TcpStream, response: &[u8]) {
    // A socket that is closed with bytes that nobody has read takes its own last bytes back. The runtime does not know yet
    // that the new socket is ready.
    let mut request = [0_u8; 4096];
    let _ = rustix::io::read(stream, &mut request[..]);
    let _ = rustix::io::write(stream, response);
}

/// Serves a connection until it ends or is closed.
async fn serve_connection(
    shared: Arc<Acceptor>,
    stream: TcpStream,
    peer: SocketAddr,
    slot: ConnectionSlot,
    stopped: watch::Receiver<bool>,
) {
    let activity = Arc::clone(slot.activity());
    let closed = tokio::select! {
        biased;
        () = activity.closed() => activity.close_reason(),
        () = serve_stream(&shared, stream, peer, &activity, stopped) => None,
        reason = overdue(&activity, &shared.limits) => Some(reason),
    };
    if let Some(reason) = closed {
        metrics::counter!(connection_metrics::CLOSED, "reason" => reason.as_str()).increment(1);
        tracing::debug!(%peer, reason = reason.as_str(), "the connection is closed");
    }
    // The socket is closed by now.
    drop(slot);
}

/// Completes when a client has taken too long.
async fn overdue(activity: &Activity, limits: &ConnectionLimits) -> activity::CloseReason {
    loop {
        sleep(limits.interval()).await;
        if let Some(reason) = activity.overdue(limits, Instant::now()) {
            return reason;
        }
    }
}

async fn serve_stream(
    shared: &Arc<Acceptor>,
    stream: TcpStream,
    peer: SocketAddr,
    activity: &Arc<Activity>,
    mut stopped: watch::Receiver<bool>,
) {
    // A response is written as a whole, and the last part of it must not wait for an acknowledgement.
    let _ = stream.set_nodelay(true);
    let mut client = Peer { address: peer, is_secured: false, certificate: None, authorities: None };
    let Some(tls) = &shared.tls else { return serve_http(shared, stream, client, activity, stopped).await };
    let first = tokio::select! {
        biased;
        () = stop_begins(&mut stopped) => return,
        first = first_byte(&stream) => first,
    };
    match first {
        Some(HANDSHAKE) => {}
        None => return,
        Some(_) => {
            send_refusal(&stream, &refusal::tls_required());
            return metrics::counter!(connection_metrics::HANDSHAKE_FAILURES).increment(1);
        }
    }
    // Before the handshake, so that no change is missed.
    let authorities = tls.authorities();
    let secured = tokio::select! {
        biased;
        () = stop_begins(&mut stopped) => return,
        secured = tls.acceptor().accept(stream) => secured,
    };
    let Ok(secured) = secured else { return metrics::counter!(connection_metrics::HANDSHAKE_FAILURES).increment(1) };
    activity.note_secured(Instant::now());
    let certificate = PeerCertificate::from_connection(secured.get_ref().1);
    let authorities = certificate.is_some().then_some(authorities);
    client = Peer { is_secured: true, certificate, authorities, ..client };
    serve_http(shared, secured, client, activity, stopped).await;
}

/// The first byte from a client, which stays to be read; none if the client leaves.
async fn first_byte(stream: &TcpStream) -> Option<u8> {
    let mut first = [0_u8];
    let length = stream.peek(&mut first).await.ok()?;
    first.into_iter().take(length).next()
}

/// Completes when the server stops.
async fn stop_begins(stopped: &mut watch::Receiver<bool>) {
    // An error means that the server is gone.
    let _ = stopped.wait_for(|stops| *stops).await;
}

/// Handles the requests of a connection.
async fn serve_http<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
    shared: &Arc<Acceptor>,
    stream: S,
    mut peer: Peer,
    activity: &Arc<Activity>,
    mut stopped: watch::Receiver<bool>,
) {
    let mut authorities = peer.authorities.take();
    let io = TokioIo::new(WatchedStream::new(stream, Arc::clone(activity)));
    let (acceptor, activity) = (Arc::clone(shared), Arc::clone(activity));
    let service = service_fn(move |request| respond(&acceptor, &peer, &activity, request));
    let connection = shared.builder.serve_connection(io, service);
    tokio::pin!(connection);
    let longest = tokio::select! {
        biased;
        ended = connection.as_mut() => return log_end(ended),
        // Whoever stops the server says for how long.
        () = stop_begins(&mut stopped) => Duration::MAX,
        // Its certificate may no longer be worth anything. Streams of events would never end by themselves.
        () = authorities_replaced(&mut authorities) => LAST_RESPONSES,
    };
    connection.as_mut().graceful_shutdown();
    if let Ok(ended) = timeout(longest, connection).await {
        log_end(ended);
    }
}

/// Completes when the authorities of a client's certificate are replaced, if it has one.
async fn authorities_replaced(authorities: &mut Option<watch::Receiver<blake3::Hash>>) {
    // Without a sender, the server is gone.
    if let Some(authorities) = authorities
        && authorities.changed().await.is_ok()
    {
        return;
    }
    std::future::pending().await
}

fn log_end(ended: Result<(), Box<dyn std::error::Error + Send + Sync>>) {
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection has failed");
    }
}

/// The other end of a connection.
#[derive(Debug, Clone)]
struct Peer {
    address: SocketAddr,
    is_secured: bool,
    certificate: Option<PeerCertificate>,
    /// Tells when the authorities of the certificate are replaced.
    authorities: Option<watch::Receiver<blake3::Hash>>,
}

/// Passes on a request of a connection.
fn respond(
    shared: &Acceptor,
    peer: &Peer,
    activity: &Arc<Activity>,
    request: Request<Incoming>,
) -> impl Future<Output = Result<Response<SentBody>, Infallible>> + use<> {
    let is_http2 = request.version() == Version::HTTP_2;
    let in_large_parts = !is_http2 && !peer.is_secured;
    let mut flight = activity.begin(is_http2);
    let mut request = request.map(Body::new);
    let extensions = request.extensions_mut();
    extensions.insert(ConnectInfo(peer.address));
    if peer.is_secured {
        extensions.insert(OverTls);
    }
    if let Some(certificate) = &peer.certificate {
        extensions.insert(certificate.clone());
    }
    let answering = (shared.answer)(request);
    async move {
        flight.wait_for_turn().await;
        let response = answering.await;
        Ok(response.map(|body| SentBody::new(body, flight, in_large_parts)))
    }
}
