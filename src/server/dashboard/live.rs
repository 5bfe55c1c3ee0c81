//! The stream that tells an open page to fetch itself again: after a revision, a refused attempt, or a change of a source's
//! state. It says nothing of what has changed, so it needs no more than to be signed in.

use std::hash::{DefaultHasher, Hash, Hasher};

use axum::http::request::Parts;
use tokio::sync::mpsc;

use super::page::session_of;
use crate::server::auth::session::DashboardSession;
use crate::server::handler_prelude::*;
use crate::server::http::channel_body::event_stream;

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
    let session = session_of(&app.access, &parts).ok_or_else(ended)?;
    let snapshot = app.served.store.snapshot();
    let caller = app.access.admit_session(&snapshot, &Intent::Watch, &parts.headers, &session)?;
    let place = app.admissions.watchers.for_owner(&caller.owner)?;
    let (chunks, received) = mpsc::channel(CHUNKS);
    tokio::spawn(async move {
        let _held = place;
        tokio::select! {
            () = send_changes(&app, &parts, &session, &chunks) => {}
            () = app.stops() => {}
        }
    });
    Ok(event_stream(received))
}

/// Sends an event after each change, until the session or its key ends, or the client goes.
async fn send_changes(
    app: &AppState,
    parts: &Parts,
    session: &DashboardSession,
    chunks: &mpsc::Sender<Result<Bytes, axum::Error>>,
) {
    let (mut newest, mut last, mut polls) = (app.served.store.change_window.newest(), state_of(app), 0_u32);
    if chunks.send(Ok(Bytes::from_static(b": open\n\n"))).await.is_err() {
        return;
    }
    loop {
        tokio::select! {
            changed = newest.changed() => if changed.is_err() { return },
            () = chunks.closed() => return,
            () = tokio::time::sleep(INTERVAL) => {}
        }
        let snapshot = app.served.store.snapshot();
        let is_open = session_of(&app.access, parts).is_some()
            && app.access.admit_session_again(&snapshot, &Intent::Watch, &parts.headers, session).is_ok();
        if !is_open {
            let _ = chunks.try_send(Ok(Bytes::from_static(b"event: ended\ndata: \n\n")));
            return;
        }
        let state = state_of(app);
        let has_changed = std::mem::replace(&mut last, state) != state;
        polls += 1;
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
        if has_changed {
            tokio::time::sleep(PAUSE).await;
        }
    }
}

/// A digest of what pages show, which is found without waiting for a writer or reading from disk.
fn state_of(app: &AppState) -> u64 {
    let mut hasher = DefaultHasher::new();
    let store = &app.served.store;
    (store.snapshot().revision, store.position()).hash(&mut hasher);
    for handle in app.sources.registry.now().iter() {
        let condition = handle.shown_condition();
        let suspension = handle.suspension().map(|it| (it.reason, it.since));
        (&handle.source, condition.message, condition.last_transition_time, suspension).hash(&mut hasher);
    }
    hasher.finish()
}
