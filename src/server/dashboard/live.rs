//! The stream that tells an open page to fetch itself again: after a revision, a refused attempt, or a change of a source's
//! state. It says nothing of what has changed, so it needs no more than to be signed in.

use std::hash::{DefaultHasher, Hash, Hasher};

use axum::http::request::Parts;
use tokio::sync::{mpsc, watch};

use super::page::session_of;
use crate::server::auth::session::DashboardSession;
use crate::server::handler_prelude::*;
use crate::server::http::channel_body::ChannelBody;

/// How often the state is polled without a new revision.
const INTERVAL: Duration = Duration::from_secs(2);
/// The time between two events: a page is fetched no more often.
const PAUSE: Duration = Duration::from_secs(1);
/// After how many polls without a change a comment is sent, so that proxies do not close the connection.
const POLLS: u32 = 8;
/// The chunks in the buffer of a client. One that does not read them gets no more.
const CHUNKS: usize = 4;

/// Responds with the stream.
pub(super) async fn stream(State(app): State<AppState>, request: Request) -> ApiResult {
    let (parts, _) = request.into_parts();
    let ended = || ApiError::with_code(Code::Unauthenticated, "the session has ended; sign in again");
    let session = session_of(&app, &parts).ok_or_else(ended)?;
    let snapshot = app.served.store.snapshot();
    let caller = app.access.admit_session(&snapshot, &Intent::Watch, &parts.headers, &session)?;
    let place = app.admissions.watchers.for_owner(&caller.owner)?;
    let (chunks, received) = mpsc::channel(CHUNKS);
    let digests = app.dashboard.digest.subscribe(
        || state_of(&app),
        || {
            tokio::spawn(poll_state(app.clone()));
        },
    );
    tokio::spawn(async move {
        let _held = place;
        tokio::select! {
            () = send_changes(&app, &parts, &session, &chunks, digests) => {}
            () = stopped(&app) => {}
        }
    });
    let mut response = Response::new(Body::new(ChannelBody(received)));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    Ok(response)
}

/// Waits until the server stops.
async fn stopped(app: &AppState) {
    match app.stopping.clone() {
        Some(mut stopping) => drop(stopping.wait_for(|stop| *stop).await),
        None => std::future::pending::<()>().await,
    }
}

/// Polls the state after each revision and from time to time, for all streams, until there are none.
async fn poll_state(app: AppState) {
    let mut newest = app.served.store.change_window.newest();
    let polling = async {
        loop {
            tokio::select! {
                changed = newest.changed() => if changed.is_err() { return },
                () = tokio::time::sleep(INTERVAL) => {}
            }
            match app.dashboard.digest.send(state_of(&app)) {
                None => return,
                Some(true) => tokio::time::sleep(PAUSE).await,
                Some(false) => {}
            }
        }
    };
    tokio::select! {
        () = polling => {}
        () = stopped(&app) => {}
    }
}

/// Sends an event after each change, until the session or its key ends, or the client goes.
async fn send_changes(
    app: &AppState,
    parts: &Parts,
    session: &DashboardSession,
    chunks: &mpsc::Sender<Result<Bytes, axum::Error>>,
    mut digests: watch::Receiver<u64>,
) {
    let mut polls = 0_u32;
    if chunks.send(Ok(Bytes::from_static(b": open\n\n"))).await.is_err() {
        return;
    }
    loop {
        let has_changed = tokio::select! {
            changed = digests.changed() => if changed.is_ok() { true } else { return },
            () = chunks.closed() => return,
            () = tokio::time::sleep(INTERVAL) => false,
        };
        let snapshot = app.served.store.snapshot();
        let is_open = session_of(app, parts).is_some()
            && app.access.admit_session_again(&snapshot, &Intent::Watch, &parts.headers, session).is_ok();
        if !is_open {
            let _ = chunks.try_send(Ok(Bytes::from_static(b"event: ended\ndata: \n\n")));
            return;
        }
        polls = if has_changed { 0 } else { polls + 1 };
        let chunk = match (has_changed, polls >= POLLS) {
            (true, _) => Bytes::from_static(b"data: changed\n\n"),
            (false, true) => Bytes::from_static(b":\n\n"),
            (false, false) => continue,
        };
        polls = 0;
        // A client whose buffer is full has events to read, and they are all the same.
        if let Err(mpsc::error::TrySendError::Closed(_)) = chunks.try_send(Ok(chunk)) {
            return;
        }
    }
}

/// A digest of what pages show, which is found without waiting for a writer or reading from disk.
fn state_of(app: &AppState) -> u64 {
    let mut hasher = DefaultHasher::new();
    let store = &app.served.store;
    (store.snapshot().revision, store.position()).hash(&mut hasher);
    for handle in app.sources.registry.now().iter() {
        let condition = handle.health.condition();
        let suspension = handle.suspension().map(|it| (it.reason, it.since));
        (&handle.source, condition.message, condition.last_transition_time, suspension).hash(&mut hasher);
    }
    hasher.finish()
}
