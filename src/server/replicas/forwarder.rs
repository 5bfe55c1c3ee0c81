//! Forwards requests to the server that writes (D115).
//!
//! The body of a request is received whole and within the limits of its endpoint, so a slow client keeps no place here and no
//! connection to the writer. A thread waits for the response. There are few places for that, which owners share: when the writer
//! hangs, this server still has places for reads.
//!
//! A request is sent once. If the writer could not be reached, nothing has happened, and the client is told to try again. If the
//! response does not come, because the connection breaks or another server takes the place of the writer, nobody knows.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::body::Bytes;
use axum::http::request::Parts;
use axum::http::response;
use tokio::sync::oneshot;
use tokio::time::sleep;
use ureq::Agent;

use super::forwarded_client::{FORWARDED, ForwardedClient, ForwardingKey, path_of};
use super::read_your_writes::{AT_LEAST, is_reached, revision_of};
use crate::http_client;
use crate::server::auth::client_certificates::VouchedName;
use crate::server::http::api_error::{ApiError, ApiResult, REQUEST_ID, TAKEOVER};
use crate::server::limits::guards::{self, CLIENT};
use crate::server::limits::slots::{SlotPool, Slots};
use crate::server::net::tls::PeerCertificate;
use crate::server::prelude::*;

/// How long the writer may take to accept a connection.
const CONNECT: Duration = Duration::from_secs(2);
/// How long it may take to respond: an apply of many resources takes its time.
const RESPONSE: Duration = Duration::from_secs(600);
/// The idle connections to it.
const CONNECTIONS: usize = 64;
/// How often it is looked whether it still writes, and how long its lock is free before it counts as gone.
const LOOK: Duration = Duration::from_millis(100);
const GONE: Duration = Duration::from_secs(2);
/// How long a response waits until this server has taken in the change.
const TAKEN_IN: Duration = Duration::from_secs(2);

/// What is about a connection, or about this server alone. The writer adds the headers of CORS itself, and this server does.
const NOT_SENT: [&str; 17] = [
    AT_LEAST,
    CLIENT,
    FORWARDED,
    "accept-encoding",
    "connection",
    "content-length",
    "expect",
    "host",
    "keep-alive",
    "origin",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "x-forwarded-for",
];
const NOT_RETURNED: [&str; 10] = [
    "access-control-allow-origin",
    "access-control-expose-headers",
    "connection",
    "content-length",
    "date",
    "keep-alive",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "vary",
];

/// Forwards requests, and receives those that others forward.
pub(crate) struct Forwarder {
    store: Arc<Store>,
    key: ForwardingKey,
    agent: LazyLock<Agent>,
    /// Whether the last request could not be forwarded.
    is_failing: AtomicBool,
}

/// The server that writes, and where it is reached.
pub(in crate::server) struct WriterAddress {
    name: String,
    url: String,
}

impl Forwarder {
    /// Prepares to forward the requests for a store. Connects to nothing yet.
    pub(in crate::server) fn new(store: Arc<Store>) -> Self {
        let key = ForwardingKey::new(&store);
        Self {
            store,
            key,
            agent: LazyLock::new(|| http_client::server_agent(CONNECT, RESPONSE, CONNECTIONS)),
            is_failing: AtomicBool::new(false),
        }
    }

    /// Whether another server writes to the store.
    pub(in crate::server) fn is_needed(&self) -> bool {
        self.store.followed_writer().is_some()
    }

    /// Reads for whom a server has forwarded a request, and notes it in the request. Returns an error if that is forged.
    pub(in crate::server) fn receive(&self, request: &mut Request) -> Result<(), ApiError> {
        let Some(client) = self.key.take(request, clock::now())? else { return Ok(()) };
        // A certificate of the connection is that of the other server.
        request.extensions_mut().remove::<PeerCertificate>();
        if let Some(name) = &client.certificate {
            request.extensions_mut().insert(PeerCertificate { names: vec![name.clone()].into() });
        }
        request.extensions_mut().insert(client);
        Ok(())
    }

    /// The server to forward a request to. Fails if it has not said where it is reached, or if the request was forwarded already.
    pub(in crate::server) fn writer(&self, parts: &Parts) -> Result<WriterAddress, ApiError> {
        let is_forwarded = parts.extensions.get::<ForwardedClient>().is_some();
        let writer = self.store.followed_writer().filter(|_| !is_forwarded);
        let address = writer.and_then(|writer| Some(WriterAddress { name: writer.name, url: writer.url? }));
        // Why a server that follows cannot write.
        address.ok_or_else(|| self.store.health().err().map_or_else(ApiError::internal, ApiError::from))
    }

    /// Forwards a request with its whole body in a place of its owner, and returns the response. Completes once this server has
    /// taken in what the request has changed.
    pub(in crate::server) async fn forward(
        &self,
        places: &Slots,
        owner: Option<&Id>,
        writer: WriterAddress,
        parts: &Parts,
        body: Bytes,
    ) -> ApiResult {
        let request = self.signed(&writer, parts)?;
        let mut place = places.enter(owner, SlotPool::Shared)?;
        place.wait_for_turn().await;
        // A thread that waits for a server that is gone keeps no place.
        let place = Arc::new(Lock::new(Some(place)));
        let (agent, held, (sender, answer)) = (self.agent.clone(), Arc::clone(&place), oneshot::channel());
        let thread = std::thread::Builder::new().name("forward".into()).spawn(move || {
            let sent = send(&agent, request, &body);
            drop(held.lock().take());
            let _ = sender.send(sent);
        });
        thread.map_err(|_| ApiError::internal())?;
        let sent = tokio::select! {
            biased;
            sent = answer => sent.unwrap_or_else(|_| Err(lost("it cannot be read"))),
            () = self.replaced(&writer.name) => {
                drop(place.lock().take());
                Err(lost("another server takes its place"))
            }
        };
        self.note(&writer, sent.as_ref().err());
        let response = sent?;
        if let Some(revision) = revision_of(response.headers()) {
            is_reached(&self.store, revision, TAKEN_IN).await;
        }
        Ok(response)
    }

    /// The request as it is sent.
    fn signed(&self, writer: &WriterAddress, parts: &Parts) -> Result<Request<()>, ApiError> {
        let mut request = Request::new(());
        *request.method_mut() = parts.method.clone();
        let url = format!("{}{}", writer.url, path_of(&parts.uri));
        *request.uri_mut() = url.parse().map_err(|_| ApiError::internal())?;
        *request.headers_mut() = parts.headers.clone();
        let headers = request.headers_mut();
        for name in NOT_SENT {
            headers.remove(name);
        }
        let certificate = parts.extensions.get::<VouchedName>().map(|VouchedName(name)| name.clone());
        if certificate.is_some() {
            // What this process has written in place of a token.
            headers.remove(header::AUTHORIZATION);
        }
        let client = ForwardedClient { address: guards::client_of(&parts.headers), certificate };
        // The path that the writer sees: a proxy before it may remove that of its URL.
        let said = self.key.sign((&parts.method, &parts.uri), headers, &client, clock::now());
        headers.insert(FORWARDED, said.ok_or_else(ApiError::internal)?);
        Ok(request)
    }

    /// Logs the first of several requests that cannot be forwarded.
    fn note(&self, writer: &WriterAddress, error: Option<&ApiError>) {
        let was_failing = self.is_failing.swap(error.is_some(), Ordering::Relaxed);
        if let Some(error) = error.filter(|_| !was_failing) {
            let WriterAddress { name, url } = writer;
            tracing::warn!(writer = name, url, "cannot forward requests: {}", error.message());
        }
    }

    /// Completes when a server no longer writes.
    async fn replaced(&self, name: &str) {
        loop {
            sleep(LOOK).await;
            let is_gone = self.store.followed_writer().is_none_or(|writer| {
                writer.name != name || writer.gone_since.is_some_and(|since| since.elapsed() > GONE)
            });
            if is_gone {
                return;
            }
        }
    }
}

/// Sends a request, and waits for the whole response.
fn send(agent: &Agent, request: Request<()>, body: &[u8]) -> Result<Response, ApiError> {
    let has_body = matches!(*request.method(), Method::POST | Method::PATCH | Method::PUT);
    let answered = if has_body { agent.run(request.map(|()| body)) } else { agent.run(request) };
    let answered = answered.and_then(|answered| {
        let (head, body) = answered.into_parts();
        Ok((head, body.into_with_config().limit(u64::MAX).read_to_vec()?))
    });
    match answered {
        // Every response of a server has an ID. A proxy does not know what the server has done.
        Ok((head, _)) if !head.headers.contains_key(REQUEST_ID) => Err(lost(&format!("status {}", head.status))),
        Ok((head, body)) => Ok(returned(head, body)),
        Err(error) => {
            let reason = http_client::reason_without_url(&error);
            Err(if http_client::was_not_sent(&error) { unreached(&reason) } else { lost(&reason) })
        }
    }
}

fn returned(mut head: response::Parts, body: Vec<u8>) -> Response {
    for name in NOT_RETURNED {
        head.headers.remove(name);
    }
    let mut response = Response::new(Body::from(body));
    (*response.status_mut(), *response.headers_mut()) = (head.status, head.headers);
    response
}

/// The error of a request that had no effect.
fn unreached(reason: &str) -> ApiError {
    let message = format!("the server that writes to the store cannot be reached: {reason}");
    let help = "send the request again: when that server is gone, one of those that follow takes its place";
    ApiError::new(Fault::new(Code::NotTheWriter, message).help(help)).retry_after(TAKEOVER)
}

/// The error of a request that may have been carried out.
fn lost(reason: &str) -> ApiError {
    let message =
        format!("no usable response from the server that writes to the store: {reason}; the change may have been made");
    let help = "check whether it was made before you send the request again";
    ApiError::new(Fault::new(Code::WriterLost, message).help(help)).retry_after(TAKEOVER)
}
