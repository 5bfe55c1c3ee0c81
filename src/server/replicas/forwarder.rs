//! Forwards requests to the server that writes (D115).
//!
//! The body of a request is received whole and within the limits of its endpoint, so a slow client keeps no place here and no
//! connection to the writer. A thread waits for the response. There are few places for that, which owners share: when the writer
//! hangs, this server still has places for reads.
//!
//! A request is sent once. If the writer could not be reached, nothing has happened, and the client is told to try again. If the
//! response does not come, because the connection breaks or another server takes the place of the writer, nobody knows.
//!
//! A thread cannot be stopped when nobody waits for its response any more. So it has a place of its own until it ends, and one that
//! waits for a server which is gone ends, because its connection is closed.

use std::sync::atomic::{AtomicBool, Ordering};

use axum::body::Bytes;
use axum::http::Uri;
use axum::http::request::Parts;
use axum::http::response;
use tokio::sync::oneshot;
use tokio::time::sleep;
use ureq::Agent;

use super::forwarded_client::{FORWARDED, ForwardedClient, ForwardingKey, forged, path_of};
use super::read_your_writes::{AT_LEAST, is_reached, revision_of};
use super::signed_body::SignedBody;
use crate::http_client;
use crate::server::auth::client_certificates::VouchedName;
use crate::server::auth::session_credentials::is_internal;
use crate::server::http::api_error::{ApiError, ApiResult, REQUEST_ID, TAKEOVER};
use crate::server::http::body::{self, Limits};
use crate::server::limits::blocking_task::with_body;
use crate::server::limits::guards::{self, CLIENT};
use crate::server::limits::slots::admissions::FORWARD_THREADS;
use crate::server::limits::slots::{SlotPool, Slots, WorkPlace};
use crate::server::net::tls::PeerCertificate;
use crate::server::prelude::*;
use crate::store::engine::FollowedWriter;

/// How long the writer may take to accept a connection.
const CONNECT: Duration = Duration::from_secs(2);
/// How long it may take to respond: an apply of many resources takes its time.
const RESPONSE: Duration = Duration::from_secs(600);
/// The bytes of a response: it is in memory until its client has it.
const MOST_BYTES: u64 = 256 << 20;
/// The idle connections to it.
const CONNECTIONS: usize = 64;
/// How often this server checks whether it still writes, and how long its lock is free before it counts as gone.
const POLL: Duration = Duration::from_millis(100);
const GONE: Duration = Duration::from_secs(2);
/// How long a server that begins to write may take to say where it is reached.
const ADVERTISED: Duration = Duration::from_secs(10);
/// How long a response waits until this server has taken in the change.
const TAKEN_IN: Duration = Duration::from_secs(2);

/// Where cookies count: everything else gets none.
const DASHBOARD: &str = "/ui/";
/// Headers about a connection, of a request and of a response.
const OF_CONNECTION: [&str; 6] =
    ["connection", "content-length", "keep-alive", "trailer", "transfer-encoding", "upgrade"];
/// Other headers about a connection, or about this server alone. The writer adds the headers of CORS itself, and this server
/// does.
const NOT_SENT: [&str; 11] = [
    AT_LEAST,
    CLIENT,
    FORWARDED,
    "accept-encoding",
    "expect",
    "host",
    "origin",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "x-forwarded-for",
];
const NOT_RETURNED: [&str; 4] = ["access-control-allow-origin", "access-control-expose-headers", "date", "vary"];

/// Forwards requests, and receives those that others forward.
pub(crate) struct Forwarder {
    store: Arc<Store>,
    key: ForwardingKey,
    /// The connections to the server that writes, and its name.
    connected: Lock<Option<(String, Agent)>>,
    /// The threads, also those whose clients are gone.
    pub(super) threads: Slots,
    /// Whether the last request could not be forwarded.
    is_failing: AtomicBool,
}

/// The server that writes, and where it is reached.
struct WriterAddress {
    name: String,
    url: String,
}

/// A request that is forwarded, with its whole body.
pub(in crate::server) struct OutgoingRequest<'r> {
    /// The owner of its API key, if it is known.
    pub(in crate::server) owner: Option<&'r Id>,
    pub(in crate::server) parts: &'r Parts,
    pub(in crate::server) body: Bytes,
    /// The place of a large body.
    pub(in crate::server) upload: Option<Arc<WorkPlace>>,
    /// How long the response may take, if that is less than usual.
    pub(in crate::server) timeout: Option<Duration>,
}

impl<'r> OutgoingRequest<'r> {
    /// A request whose response may take its time.
    pub(in crate::server) fn new(owner: Option<&'r Id>, parts: &'r Parts, body: Bytes) -> Self {
        Self { owner, parts, body, upload: None, timeout: None }
    }
}

impl Forwarder {
    /// Prepares to forward the requests for a store. Connects to nothing yet.
    pub(in crate::server) fn new(store: Arc<Store>) -> Self {
        let key = ForwardingKey::new(Arc::clone(&store));
        Self {
            store,
            key,
            connected: Lock::default(),
            threads: Slots::new(FORWARD_THREADS),
            is_failing: AtomicBool::new(false),
        }
    }

    /// Whether another server writes to the store.
    pub(in crate::server) fn is_needed(&self) -> bool {
        self.store.followed_writer().is_some()
    }

    /// Reads for whom a server has forwarded a request, and notes it in the request. Returns an error if that is forged, as it is
    /// wherever no other server can be.
    pub(in crate::server) fn receive(&self, request: &mut Request) -> Result<(), ApiError> {
        let Some((client, digest)) = self.key.take(request, clock::now())? else { return Ok(()) };
        if !self.store.is_shared() {
            return Err(forged());
        }
        let body = std::mem::take(request.body_mut());
        *request.body_mut() = Body::new(SignedBody::new(body, digest));
        // A certificate of the connection is that of the other server.
        request.extensions_mut().remove::<PeerCertificate>();
        if let Some(name) = &client.certificate {
            request.extensions_mut().insert(PeerCertificate { names: vec![name.clone()].into() });
        }
        request.extensions_mut().insert(client);
        Ok(())
    }

    /// Fails if a request cannot be forwarded now, before its body is received.
    pub(in crate::server) fn check(&self, parts: &Parts) -> Result<(), ApiError> {
        self.writer(parts).map(drop)
    }

    /// The server to forward a request to. Fails if it is gone, has not said where it is reached, or if the request was forwarded
    /// already.
    fn writer(&self, parts: &Parts) -> Result<WriterAddress, ApiError> {
        let is_forwarded = parts.extensions.get::<ForwardedClient>().is_some();
        let writer = self.store.followed_writer().filter(|_| !is_forwarded);
        if writer.as_ref().is_some_and(is_gone) {
            return Err(unreached("it is gone"));
        }
        let name = match writer {
            Some(FollowedWriter { name, url: Some(url), .. }) => return Ok(WriterAddress { name, url }),
            Some(FollowedWriter { began: Some(began), .. }) if began.elapsed() < ADVERTISED => {
                return Err(unreached("it begins, and has not said yet where it is reached"));
            }
            other => other.map(|writer| writer.name),
        };
        // Why a server that follows cannot write.
        Err(match (self.store.health().err(), name) {
            (Some(error), Some(name)) if error.code == Code::NotTheWriter => unadvertised(&name),
            (error, _) => error.map_or_else(ApiError::internal, ApiError::from),
        })
    }

    /// The server to forward a request to, and the connections to it. Those to the one before are closed.
    fn connect(&self, parts: &Parts) -> Result<(WriterAddress, Agent), ApiError> {
        let mut connected = self.connected.lock();
        let writer = self.writer(parts)?;
        if let Some((_, agent)) = connected.as_ref().filter(|(name, _)| *name == writer.name) {
            return Ok((writer, agent.clone()));
        }
        let agent = http_client::server_agent(CONNECT, RESPONSE, CONNECTIONS);
        let former = connected.replace((writer.name.clone(), agent.clone()));
        drop(connected);
        if let Some((_, former)) = former {
            former.shutdown();
        }
        Ok((writer, agent))
    }

    /// Closes the connections to a server that no longer writes: nothing that comes from it counts.
    pub(super) fn hang_up(&self, name: &str) {
        let gone = self.connected.lock().take_if(|(connected, _)| connected.as_str() == name);
        if let Some((_, agent)) = gone {
            agent.shutdown();
        }
    }

    /// Receives the body of a change, if it can be forwarded now, and forwards it like [`Self::forward`].
    pub(in crate::server) async fn forward_change(
        &self,
        places: &Slots,
        owner: Option<&Id>,
        parts: &Parts,
        body: Body,
    ) -> ApiResult {
        self.check(parts)?;
        let bytes = match parts.method {
            Method::DELETE => Bytes::new(),
            _ => body::take(&parts.headers, body, Limits::RESOURCE).await?,
        };
        self.forward(places, OutgoingRequest::new(owner, parts, bytes)).await
    }

    /// Forwards a request in a place of its owner, and returns the response. Completes once this server has taken in what the
    /// request has changed, or soon after if that takes long.
    pub(in crate::server) async fn forward(&self, places: &Slots, request: OutgoingRequest<'_>) -> ApiResult {
        let OutgoingRequest { owner, parts, body, upload, timeout } = request;
        let bytes = body.clone();
        let digest = with_body(body.len(), move || blake3::hash(&bytes)).await?;
        let mut place = places.enter(owner, SlotPool::Shared)?;
        place.wait_for_turn().await;
        // Nothing waits from here on: the signature is as old as the request, and the writer is the one of now.
        let thread_place = self.threads.enter(owner, SlotPool::Shared)?;
        let (writer, agent) = self.connect(parts)?;
        let request = self.signed(&writer, parts, &digest)?;
        let (sender, answer) = oneshot::channel();
        let thread = std::thread::Builder::new().name("forward".into()).spawn(move || {
            let sent = send(&agent, request, &body, timeout);
            drop((body, upload, thread_place));
            let _ = sender.send(sent);
        });
        thread.map_err(|_| ApiError::internal())?;
        let sent = tokio::select! {
            biased;
            sent = answer => sent.unwrap_or_else(|_| Err(lost("it cannot be read"))),
            () = self.replaced(&writer.name) => {
                self.hang_up(&writer.name);
                Err(lost("another server takes its place"))
            }
        };
        drop(place);
        self.note(&writer, sent.as_ref().err());
        let response = sent?;
        if let Some(revision) = revision_of(response.headers()) {
            is_reached(&self.store, revision, TAKEN_IN).await;
        }
        Ok(response)
    }

    /// The request as it is sent.
    fn signed(&self, writer: &WriterAddress, parts: &Parts, body: &blake3::Hash) -> Result<Request<()>, ApiError> {
        let mut request = Request::new(());
        *request.method_mut() = parts.method.clone();
        let url = format!("{}{}", writer.url, path_of(&parts.uri));
        *request.uri_mut() = url.parse().map_err(|_| ApiError::internal())?;
        let certificate = parts.extensions.get::<VouchedName>().map(|VouchedName(name)| name.clone());
        let has_session = parts.uri.path().starts_with(DASHBOARD) && parts.headers.contains_key(header::COOKIE);
        if (certificate.is_some() || has_session) && !is_private(request.uri()) {
            return Err(match has_session {
                true => unprotected("session", "open the dashboard at that server"),
                false => unprotected("client certificate", "use an API key"),
            });
        }
        // What stands for the form of a session is for this process alone: another server has begun to write meanwhile.
        if is_internal(&parts.headers) {
            return Err(unreached("another server took its place"));
        }
        *request.headers_mut() = parts.headers.clone();
        let headers = request.headers_mut();
        if !has_session {
            headers.remove(header::COOKIE);
        }
        for name in OF_CONNECTION.into_iter().chain(NOT_SENT) {
            headers.remove(name);
        }
        if certificate.is_some() {
            // What this process has written in place of a token.
            headers.remove(header::AUTHORIZATION);
        }
        let client = ForwardedClient { address: guards::client_of(&parts.headers), certificate };
        // The path that the writer sees: a proxy before it may remove that of its URL.
        let said = self.key.sign((&parts.method, &parts.uri), headers, body, &client, clock::now());
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
            sleep(POLL).await;
            if self.store.followed_writer().is_none_or(|writer| writer.name != name || is_gone(&writer)) {
                return;
            }
        }
    }
}

/// Whether nobody has written for so long that a server which follows takes the place.
fn is_gone(writer: &FollowedWriter) -> bool {
    writer.gone_since.is_some_and(|since| since.elapsed() > GONE)
}

/// Whether nobody on the way to a URL can read a request.
fn is_private(url: &Uri) -> bool {
    url.scheme_str() == Some("https") || http_client::is_this_machine(url.host().unwrap_or_default())
}

/// Sends a request, and waits for the whole response.
fn send(agent: &Agent, request: Request<()>, body: &[u8], timeout: Option<Duration>) -> Result<Response, ApiError> {
    let request = agent.configure_request(request).timeout_global(Some(timeout.unwrap_or(RESPONSE))).build();
    let has_body = matches!(*request.method(), Method::POST | Method::PATCH | Method::PUT);
    let answered = if has_body { agent.run(request.map(|()| body)) } else { agent.run(request) };
    let answered = answered.and_then(|answered| {
        let (head, body) = answered.into_parts();
        Ok((head, body.into_with_config().limit(MOST_BYTES).read_to_vec()?))
    });
    match answered {
        // Every response of a server has an ID. A proxy does not know what the server has done.
        Ok((head, _)) if !head.headers.contains_key(REQUEST_ID) => Err(lost(&format!("status {}", head.status))),
        // Only what reads the header writes it: nothing was done for this request.
        Ok((head, _)) if head.status == StatusCode::UNAUTHORIZED && head.headers.contains_key(FORWARDED) => {
            Err(unreached("it does not believe this server; their clocks may differ"))
        }
        Ok((head, body)) => Ok(returned(head, body)),
        Err(ureq::Error::BodyExceedsLimit(most)) => Err(lost(&format!("it has more than {} MiB", most >> 20))),
        Err(error) => {
            let reason = http_client::reason_without_url(&error);
            Err(if http_client::was_not_sent(&error) { unreached(&reason) } else { lost(&reason) })
        }
    }
}

fn returned(mut head: response::Parts, body: Vec<u8>) -> Response {
    for name in OF_CONNECTION.into_iter().chain(NOT_RETURNED) {
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

/// The error of a request that no server can forward, also later.
fn unadvertised(name: &str) -> ApiError {
    let message = format!("this server only follows the one that writes: {name}, which has no `--advertise-url`");
    let help = "send the request to that server, or start every server with `--advertise-url`, so that others reach it";
    ApiError::new(Fault::new(Code::NotTheWriter, message).help(help))
}

/// The error of a request that proves who sends it with something that anybody on the way could use.
fn unprotected(proof: &str, instead: &str) -> ApiError {
    let message =
        format!("the server that writes to the store is reached without TLS, so no {proof} is forwarded to it");
    let help = format!("{instead}, or give `--advertise-url` an https URL on every server");
    ApiError::new(Fault::new(Code::InsecureTransport, message).help(help))
}

/// The error of a request that may have been carried out.
fn lost(reason: &str) -> ApiError {
    let message =
        format!("no usable response from the server that writes to the store: {reason}; the change may have been made");
    let help = "check whether it was made before you send the request again";
    ApiError::new(Fault::new(Code::WriterLost, message).help(help)).retry_after(TAKEOVER)
}
