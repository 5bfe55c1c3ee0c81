//! The activity of a connection, and whether its client takes too long.
//!
//! The tasks of a connection share one [`Activity`]. They note what happens: bytes that arrive, requests that begin and
//! end, and bytes that the socket takes. Two questions are answered from that: whether the connection could give its
//! place to another ([`Activity::eviction`]), and whether its time is over ([`Activity::overdue`]). Whoever closes it
//! gives the reason, which metrics count.
//!
//! HTTP/2 lets a client ask for much without taking anything. After a few requests or one megabyte that the client has
//! not taken, its next requests wait for their turn ([`RequestInProgress::wait_for_turn`]), so that responses do not
//! fill memory.

use tokio::sync::Notify;

use super::limits::ConnectionLimits;
use crate::model::names::names;
use crate::server::prelude::*;

/// The requests of a connection that are handled whatever its client has read.
const FREE: usize = 8;
/// The most bytes of responses that wait for a client before more requests of its connection are handled.
const MOST_UNSENT: usize = 1 << 20;
/// The size that a request counts for until its response is known.
const EXPECTED: usize = 64 << 10;
/// The bytes of a response that a client must take within the stall timeout.
pub(super) const LEAST_TAKEN: usize = 32 << 10;
/// How long a refused client has to read why.
const LINGER: Duration = Duration::from_secs(2);

/// Why a connection is closed by the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CloseReason {
    /// Others need its place: no request has arrived.
    EvictedSilent,
    /// Others need its place: it has no request.
    EvictedIdle,
    /// Others need its place: its client does not take the response.
    EvictedStalled,
    /// A request's head, or the TLS handshake, takes too long.
    HeadTimeout,
    /// There was no request for too long.
    IdleTimeout,
    /// The client does not take the response.
    Stalled,
}

names! {
    CloseReason: EvictedSilent "evicted_silent", EvictedIdle "evicted_idle", EvictedStalled "evicted_stalled",
    HeadTimeout "head_timeout", IdleTimeout "idle_timeout", Stalled "stalled"
}

/// The state of a connection, which its tasks share.
#[derive(Debug)]
pub(super) struct Activity {
    accepted: Instant,
    state: Lock<ActivityState>,
    /// Set when the connection is to be closed.
    closing: Notify,
    /// Tells requests that wait for their turn.
    room: Notify,
}

#[derive(Debug, Default)]
struct ActivityState {
    /// Whether a request's head has arrived.
    had_request: bool,
    /// Whether the connection has several requests at a time.
    is_http2: bool,
    /// The requests whose responses are not complete.
    in_flight: usize,
    /// The requests in flight that are not waiting for their turn.
    admitted: usize,
    /// The admitted requests without a response yet.
    running: usize,
    /// Since when there is no request, or the handshake is over; none before that.
    since: Option<Instant>,
    /// When the first byte of a later head came.
    head_began: Option<Instant>,
    /// Since when the socket takes no more bytes.
    blocked: Option<Instant>,
    /// The responses whose next part is the client's to take, with the time since which it is.
    offered: BTreeMap<u64, Instant>,
    next: u64,
    /// The bytes that the client has taken of the part that is offered.
    taken: usize,
    /// The bytes of responses that are not handed to the connection.
    unsent: usize,
    /// When the client was told that it is not understood.
    refused: Option<Instant>,
    close: Option<CloseReason>,
}

impl ActivityState {
    /// Since when the client takes nothing.
    fn stalled_since(&self) -> Option<Instant> {
        self.blocked.into_iter().chain(self.offered.values().copied()).min()
    }
}

impl Activity {
    /// The state of a new connection.
    pub(super) fn new(now: Instant) -> Self {
        Self { accepted: now, state: Lock::default(), closing: Notify::new(), room: Notify::new() }
    }

    /// Notes the end of the TLS handshake.
    pub(super) fn note_secured(&self, now: Instant) {
        self.state.lock().since = Some(now);
    }

    /// Notes bytes from the client.
    pub(super) fn note_read(&self, now: Instant) {
        let mut state = self.state.lock();
        // Other bytes of HTTP/2 than requests come at any time.
        if state.had_request && state.in_flight == 0 && !state.is_http2 {
            state.head_began.get_or_insert(now);
        }
    }

    /// Notes how many bytes the socket has taken; none if it takes no more.
    pub(super) fn note_written(&self, taken: Option<usize>, now: Instant) {
        let mut state = self.state.lock();
        let Some(taken) = taken else {
            state.blocked.get_or_insert(now);
            return;
        };
        state.blocked = None;
        // Over HTTP/1 these bytes are of the part that is offered, which can be larger than what is asked of a client.
        if !state.is_http2 {
            state.taken = state.taken.saturating_add(taken);
            if state.taken >= LEAST_TAKEN {
                state.taken = 0;
                state.offered.values_mut().for_each(|since| *since = now);
            }
        }
    }

    /// Notes that the client gets the reason why it is not understood.
    pub(super) fn note_refused(&self, now: Instant) {
        self.state.lock().refused = Some(now);
    }

    /// Closes the connection.
    pub(super) fn close(&self, reason: CloseReason) {
        self.state.lock().close = Some(reason);
        self.closing.notify_one();
    }

    /// Completes when the connection is to be closed.
    pub(super) async fn closed(&self) {
        self.closing.notified().await;
    }

    /// Why the connection is closed, if others need its place.
    pub(super) fn close_reason(&self) -> Option<CloseReason> {
        self.state.lock().close
    }

    /// Why the connection can give its place to another, and since when: it has no request, or its client takes nothing.
    pub(super) fn eviction(&self) -> Option<(CloseReason, Instant)> {
        let state = self.state.lock();
        if state.close.is_some() {
            return None;
        }
        if !state.had_request {
            return Some((CloseReason::EvictedSilent, self.accepted));
        }
        match state.stalled_since() {
            Some(since) => Some((CloseReason::EvictedStalled, since)),
            None if state.in_flight == 0 => Some((CloseReason::EvictedIdle, state.since.unwrap_or(self.accepted))),
            _ => None,
        }
    }

    /// Why the connection has had enough time.
    pub(super) fn overdue(&self, limits: &ConnectionLimits, now: Instant) -> Option<CloseReason> {
        let state = self.state.lock();
        let is_over = |since: Instant, limit: Duration| now.saturating_duration_since(since) > limit;
        if state.refused.is_some_and(|at| is_over(at, LINGER)) {
            return Some(CloseReason::HeadTimeout);
        }
        if let Some(since) = state.stalled_since() {
            return is_over(since, limits.stall).then_some(CloseReason::Stalled);
        }
        if state.in_flight > 0 {
            return None;
        }
        let since = state.since.unwrap_or(self.accepted);
        if !state.had_request {
            return is_over(since, limits.head).then_some(CloseReason::HeadTimeout);
        }
        if state.head_began.is_some_and(|at| is_over(at, limits.head)) {
            return Some(CloseReason::HeadTimeout);
        }
        is_over(since, limits.idle).then_some(CloseReason::IdleTimeout)
    }

    /// Notes a request, until the returned value is dropped.
    pub(super) fn begin(self: &Arc<Self>, is_http2: bool) -> RequestInProgress {
        let mut state = self.state.lock();
        state.had_request = true;
        state.is_http2 = is_http2;
        state.in_flight += 1;
        state.head_began = None;
        let number = state.next;
        state.next += 1;
        drop(state);
        RequestInProgress { activity: Arc::clone(self), number, stage: FlightStage::Waiting, unsent: 0 }
    }
}

/// How far a request is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FlightStage {
    Waiting,
    Running,
    Answered,
}

/// A request until its response is complete.
#[derive(Debug)]
pub(crate) struct RequestInProgress {
    activity: Arc<Activity>,
    number: u64,
    stage: FlightStage,
    unsent: usize,
}

impl RequestInProgress {
    /// Waits until the client has taken enough of the responses before this one. A few requests never wait: a client may
    /// make them while it reads another response.
    pub(super) async fn wait_for_turn(&mut self) {
        let activity = Arc::clone(&self.activity);
        loop {
            let notified = activity.room.notified();
            tokio::pin!(notified);
            notified.as_mut().enable();
            if self.enter() {
                return;
            }
            notified.await;
        }
    }

    fn enter(&mut self) -> bool {
        let mut state = self.activity.state.lock();
        let expected = state.unsent.saturating_add(state.running.saturating_mul(EXPECTED));
        if state.admitted >= FREE && expected >= MOST_UNSENT {
            return false;
        }
        state.admitted += 1;
        state.running += 1;
        drop(state);
        self.stage = FlightStage::Running;
        true
    }

    /// Notes a response, and how many bytes of it are known.
    pub(super) fn answered(&mut self, bytes: usize, now: Instant) {
        let mut state = self.activity.state.lock();
        if self.stage == FlightStage::Running {
            state.running = state.running.saturating_sub(1);
        }
        state.unsent = state.unsent.saturating_add(bytes);
        state.offered.insert(self.number, now);
        drop(state);
        self.stage = FlightStage::Answered;
        self.unsent = bytes;
        self.activity.room.notify_waiters();
    }

    /// Notes a part of the response that is handed to the connection.
    pub(super) fn handed(&mut self, bytes: usize, now: Instant) {
        let bytes = bytes.min(self.unsent);
        self.unsent -= bytes;
        let mut state = self.activity.state.lock();
        state.unsent = state.unsent.saturating_sub(bytes);
        state.offered.insert(self.number, now);
        drop(state);
        self.activity.room.notify_waiters();
    }

    /// Notes that the client has taken everything there is so far, such as all events of a stream.
    pub(super) fn caught_up(&self) {
        self.activity.state.lock().offered.remove(&self.number);
    }
}

impl Drop for RequestInProgress {
    fn drop(&mut self) {
        let mut state = self.activity.state.lock();
        state.offered.remove(&self.number);
        state.unsent = state.unsent.saturating_sub(self.unsent);
        if self.stage == FlightStage::Running {
            state.running = state.running.saturating_sub(1);
        }
        if self.stage != FlightStage::Waiting {
            state.admitted = state.admitted.saturating_sub(1);
        }
        state.in_flight = state.in_flight.saturating_sub(1);
        if state.in_flight == 0 {
            state.since = Some(Instant::now());
        }
        drop(state);
        self.activity.room.notify_waiters();
    }
}

#[cfg(test)]
mod tests;
