//! `GET /watch`: the changes of resources as server-sent events (D80).
//!
//! # The problem
//!
//! A consumer wants each change once and in order, also after it was disconnected, and a commit must not wait for any
//! consumer. With a queue for each client that each commit fills, a client that stops reading costs memory until it is
//! noticed, and the change from replaying old revisions to live ones can lose or repeat one.
//!
//! # The idea
//!
//! The store keeps the newest revisions in memory, and each client has a cursor into them. Sending is always the same
//! step: take the revision after the cursor, send it, move on; wait only if there is none. Replay and live changes are
//! therefore one thing. A bounded buffer lies between the step and the connection.
//!
//! For example, a client reconnects with `Last-Event-ID: 40` while revision 43 is current. With the cursor
//! at 40, it gets 41, 42 and 43, and then waits for 44.
//!
//! # What it never does
//!
//! A stream delays no commit: a client that does not make room within seconds, or falls behind the window, gets an
//! error and its stream ends. Nothing is sent to a revoked key: the caller is checked again before each revision and
//! each comment.

mod events;
mod request;
#[cfg(test)]
mod tests;

use std::convert::Infallible;

use tokio::sync::mpsc;

use crate::server::handler_prelude::*;
use crate::server::http::channel_body::event_stream;
use crate::server::replicas::read_your_writes::has_revision;
use crate::server::resources::change::{ChangeFilter, public_kinds};
use crate::store::Revision;
use crate::store::history::change_window::NextRevision;

/// How often an idle client is sent a comment, so that proxies do not close its connection.
const HEARTBEAT: Duration = Duration::from_secs(15);
/// How long a client may take to make room in its buffer.
const LONGEST_WAIT: Duration = Duration::from_secs(5);
/// The chunks in the buffer of a client. Each has some events, or one that is larger than usual.
const CHUNKS: usize = 4;

pub(super) static GET: ApiOperation = ApiOperation::get("/watch", Intent::Watch, |method| on(method, get))
    .query(&[
        QueryParameter("since", || {
            let description = "The last revision that the client knows.";
            json!({"description": description, "schema": {"type": "integer", "minimum": 0}})
        }),
        QueryParameter("kind", || {
            let kinds: Vec<&str> = public_kinds().map(|info| info.name).collect();
            let description = format!("Kinds of resources, separated by commas: {}.", kinds.join(", "));
            json!({"description": description, "schema": {"type": "string"}})
        }),
        QueryParameter("source", || {
            let description = "Names of the sources that own the resources, separated by commas.";
            json!({"description": description, "schema": {"type": "string"}})
        }),
    ])
    .named("Changes", "watchChanges", "Watch changes")
    .described("Streams changes of resources as server-sent events: `created`, `updated` or `deleted` for each resource, and `revision` after the last one of a revision. Only `revision` has an ID. `error` is the last event of a stream that the server ends because of an error. Without `since`, the stream starts after the current revision.")
    .documented("400 401 410 429 500 503", |operation, _| {
        operation
            .parameter("Last-Event-ID", "header", json!({
                "description": "The ID of the last event, to resume a stream. It takes precedence over `since`.",
                "schema": {"type": "string", "pattern": "^[0-9]*$"},
            }))
            .responds_with("200", "A stream of events", "text/event-stream", json!({"type": "string"}))
    });

/// Takes the place of a stream. The role `gateway` has no share: nobody but gateways can keep gateways out.
fn place(admissions: &Admissions, Caller { owner, role, .. }: &Caller) -> Result<WorkPlace, ApiError> {
    match role {
        Role::Gateway => admissions.watchers.enter(None, SlotPool::Reserved),
        _ => admissions.watchers.for_owner(owner),
    }
}

/// Responds with a stream of changes, which ends with the client, its key or the server.
async fn get(State(app): State<AppState>, RawQuery(query): RawQuery, caller: Caller, headers: HeaderMap) -> ApiResult {
    let (known, filter) = request::read(query.as_deref(), &headers)?;
    let store = &app.served.store;
    let has_known = match known {
        // Another server may have sent it.
        Some(known) => has_revision(store, known, &app.admissions.catch_ups, &caller.owner).await?,
        None => true,
    };
    let known = known.unwrap_or_else(|| store.snapshot().revision);
    if !has_known || matches!(store.change_window.next(known), NextRevision::Gone) {
        return Err(ApiError::revision_gone(known, store.snapshot().revision));
    }
    let place = place(&app.admissions, &caller)?;
    let (chunks, received) = mpsc::channel(CHUNKS + 1);
    // The last event has room even if its client has taken none of the others.
    let last = chunks.clone().try_reserve_owned().map_err(|_| ApiError::internal())?;
    let server = app.clone();
    let mut watcher = Watcher { app, headers, filter, known, chunks };
    tokio::spawn(async move {
        let _held = place;
        let end = tokio::select! {
            end = watcher.send_all() => end.err().flatten(),
            () = server.stops() => None,
        };
        if let Some(error) = end {
            drop(last.send(Ok(events::error(&error))));
        }
    });
    Ok(event_stream(received))
}

/// The error that ends a stream, which the client gets as the last event; none if the client or the server closed it.
type StreamEnd = Option<ApiError>;

/// A client.
struct Watcher {
    app: AppState,
    /// The headers of the request, which identify the caller.
    headers: HeaderMap,
    filter: ChangeFilter,
    /// The last revision that the client was sent.
    known: u64,
    chunks: mpsc::Sender<Result<Bytes, axum::Error>>,
}

impl Watcher {
    /// Sends changes until the stream ends.
    async fn send_all(&mut self) -> Result<Infallible, StreamEnd> {
        let mut newest = self.app.served.store.change_window.newest();
        self.send(events::start(self.known)).await?;
        loop {
            newest.mark_unchanged();
            // The key may have been revoked, and the role of its owner may have changed.
            let caller = self.admit()?;
            match self.app.served.store.change_window.next(self.known) {
                NextRevision::Here(revision) => self.send_revision(&caller, revision).await?,
                NextRevision::Gone => return Err(too_slow().into()),
                NextRevision::NotYet => tokio::select! {
                    changed = newest.changed() => changed.map_err(|_| StreamEnd::None)?,
                    () = self.chunks.closed() => return Err(None),
                    () = tokio::time::sleep(HEARTBEAT) => self.send(events::heartbeat()).await?,
                },
            }
        }
    }

    fn admit(&self) -> Result<Caller, ApiError> {
        self.app.access.admit_again(&self.app.served.store.snapshot(), &Intent::Watch, &self.headers)
    }

    async fn send_revision(&mut self, caller: &Caller, revision: Revision) -> Result<(), StreamEnd> {
        let number = revision.snapshot.revision;
        // A client that resumes gets earlier states.
        let visibility =
            SecretVisibility::from_caller(caller).for_revision(number, self.app.served.store.snapshot().revision);
        let mut from = Some(0);
        while let Some(start) = from {
            let (served, revision, filter) = (Arc::clone(&self.app.served), revision.clone(), self.filter.clone());
            let visibility = visibility.clone();
            // A resource with many children takes long, and other requests of this thread would wait.
            let place = self.app.admissions.renderings.for_owner(&caller.owner)?;
            let portion = place
                .render(move || events::portion(&served.base_urls, &visibility, &filter, &revision, start))
                .await?;
            from = portion.next;
            self.send(portion.text).await?;
        }
        self.known = number;
        Ok(())
    }

    async fn send(&self, chunk: Bytes) -> Result<(), StreamEnd> {
        use mpsc::error::SendTimeoutError::{Closed, Timeout};
        match self.chunks.send_timeout(Ok(chunk), LONGEST_WAIT).await {
            Ok(()) => Ok(()),
            Err(Closed(_)) => Err(None),
            Err(Timeout(_)) => Err(too_slow().into()),
        }
    }
}

/// The error for a client that does not keep up.
fn too_slow() -> ApiError {
    ApiError::with_code(Code::SlowReader, "the client reads more slowly than resources change")
}
