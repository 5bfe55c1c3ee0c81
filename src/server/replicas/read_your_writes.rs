//! A client reads its own writes, and never less than it has read, whichever server of a store it asks (D115).
//!
//! A successful response has the revision of the store, and a request can name the revision that it needs. A server that follows
//! waits for it without a thread, in a place of its owner, and only for a client with a valid API key that may be used from its
//! address: others could keep its connections. A token that it does not know may be that of a new key, so it waits for that, too, in
//! a few places for each address, and refuses the token only then.
//!
//! A client that follows the store names the revision that it has, which any server may have shown it. No server answers it with
//! an older one only because it is behind.

use crate::server::http::api_error::ApiError;
use crate::server::limits::guards::RequestPlace;
use crate::server::limits::slots::{Slots, WorkPlace};
use crate::server::prelude::*;

/// The header of a successful response: a revision of the store that has what the response shows or has changed.
const REVISION: &str = "edgewright-revision";
/// The header of a request with the revision that it needs.
pub(in crate::server) const AT_LEAST: &str = "if-revision-at-least";
/// How long a request waits for its revision.
const LONGEST_WAIT: Duration = Duration::from_secs(5);
/// After how many seconds a server that is behind may have the revision.
const RETRY: u64 = 1;

/// Names the revision that a request has made, if it has made one. Its client needs no later one, of which it has seen nothing.
pub(in crate::server) fn set_revision(headers: &mut HeaderMap, revision: impl Into<Option<u64>>) {
    if let Some(revision) = revision.into() {
        headers.insert(REVISION, HeaderValue::from(revision));
    }
}

/// Adds the revision to a successful response, or to one that says that a copy is current, unless it has that of its own change.
/// One that comes from another server has it already.
pub(in crate::server) fn add_revision(store: &Store, status: StatusCode, headers: &mut HeaderMap) {
    if status.is_success() || status == StatusCode::NOT_MODIFIED {
        headers.entry(REVISION).or_insert_with(|| HeaderValue::from(store.snapshot().revision));
    }
}

/// The revision in the response of another server.
pub(super) fn revision_of(headers: &HeaderMap) -> Option<u64> {
    headers.get(REVISION)?.to_str().ok()?.parse().ok()
}

/// Waits in a place of the owner until the store has the revision that a request needs. A server that writes has every revision
/// that there is.
pub(in crate::server) async fn catch_up(
    store: &Store,
    headers: &HeaderMap,
    places: &Slots,
    owner: &Id,
) -> Result<(), ApiError> {
    let Some(needed) = needed_revision(headers)? else { return Ok(()) };
    if store.snapshot().revision >= needed {
        return Ok(());
    }
    if store.followed_writer().is_some() && waits_until(store, needed, places.for_owner(owner)?).await? {
        return Ok(());
    }
    Err(behind(store, needed))
}

/// The revision that a request needs, if it names one.
fn needed_revision(headers: &HeaderMap) -> Result<Option<u64>, ApiError> {
    let Some(needed) = headers.get(AT_LEAST) else { return Ok(None) };
    let needed = needed.to_str().ok().and_then(|text| text.trim().parse::<u64>().ok());
    needed
        .map(Some)
        .ok_or_else(|| ApiError::with_code(Code::Parameter, "`If-Revision-At-Least` must be a revision, such as `17`"))
}

/// Waits for the revision that a request with an unknown token needs: its key may be made in that one. The client, an address, waits
/// in one of its places if there is one. What is wrong with the token is said afterwards.
pub(in crate::server) async fn await_key(
    store: &Store,
    headers: &HeaderMap,
    places: &Slots,
    client: &Id,
) -> Result<(), ApiError> {
    let needed = needed_revision(headers).ok().flatten().filter(|needed| store.snapshot().revision < *needed);
    if let Some(needed) = needed
        && store.followed_writer().is_some()
        && let Ok(place) = places.for_owner(client)
    {
        waits_until(store, needed, place).await?;
    }
    Ok(())
}

/// Returns whether the store has a revision that a client has seen. It has not if it was restored from an older copy; a server that
/// may only be behind waits for it in a place of the owner, and fails. It knows that it is not behind if the database has told it
/// meanwhile that there is no more.
pub(in crate::server) async fn has_revision(
    store: &Store,
    seen: u64,
    places: &Slots,
    owner: &Id,
) -> Result<bool, ApiError> {
    let asked = Instant::now();
    if store.snapshot().revision >= seen {
        return Ok(true);
    }
    // Nobody else writes to it.
    if !store.is_shared() {
        return Ok(false);
    }
    if waits_until(store, seen, places.for_owner(owner)?).await? {
        return Ok(true);
    }
    if store.has_all_of(asked) { Ok(false) } else { Err(behind(store, seen)) }
}

/// Waits in a place until the store has a revision. Returns whether it has.
async fn waits_until(store: &Store, revision: u64, _place: WorkPlace) -> Result<bool, ApiError> {
    // Others have the place of the request meanwhile.
    RequestPlace::leave();
    let reached = is_reached(store, revision, LONGEST_WAIT).await;
    RequestPlace::come_back()?;
    Ok(reached)
}

/// The error of a server that does not have a revision.
fn behind(store: &Store, needed: u64) -> ApiError {
    let current = store.snapshot().revision;
    let message = format!("this server is at revision {current} of the store, and the request needs revision {needed}");
    ApiError::with_code(Code::NotCaughtUp, message).retry_after(RETRY)
}

/// Waits until the store has a revision. Returns whether it has.
pub(super) async fn is_reached(store: &Store, revision: u64, timeout: Duration) -> bool {
    let mut newest = store.change_window.newest();
    let reached = tokio::time::timeout(timeout, newest.wait_for(|newest| *newest >= revision)).await;
    matches!(reached, Ok(Ok(_)))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::server::limits::slots::admissions::Admissions;
    use crate::store::MEMORY;

    #[tokio::test(start_paused = true)]
    async fn a_server_that_writes_waits_for_no_revision() {
        let (store, places, owner) = (Store::open(MEMORY).unwrap(), Admissions::default().catch_ups, Id::new("usr_a"));
        let began = tokio::time::Instant::now();
        for (needed, code) in [
            ("0", None),
            (" 0", None),
            ("1", Some(Code::NotCaughtUp)),
            ("99999999999999999999", Some(Code::Parameter)),
            ("x", Some(Code::Parameter)),
            ("", Some(Code::Parameter)),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(AT_LEAST, HeaderValue::from_str(needed).unwrap());
            let refused = catch_up(&store, &headers, &places, &owner).await.err().map(|error| error.code());
            assert_eq!(refused, code, "{needed:?}");
        }
        assert!(catch_up(&store, &HeaderMap::new(), &places, &owner).await.is_ok());
        assert_eq!(began.elapsed(), Duration::ZERO);
    }

    #[test]
    fn a_successful_response_has_a_revision_and_no_other_has() {
        let store = Store::open(MEMORY).unwrap();
        let revision = |status: StatusCode| {
            let mut headers = HeaderMap::new();
            add_revision(&store, status, &mut headers);
            revision_of(&headers)
        };
        assert_eq!(revision(StatusCode::OK), Some(0));
        assert_eq!(revision(StatusCode::CREATED), Some(0));
        assert_eq!(revision(StatusCode::NOT_MODIFIED), Some(0));
        assert_eq!(revision(StatusCode::SEE_OTHER), None);
        assert_eq!(revision(StatusCode::UNAUTHORIZED), None);
        let mut headers = HeaderMap::new();
        set_revision(&mut headers, 43_u64);
        add_revision(&store, StatusCode::OK, &mut headers);
        assert_eq!(revision_of(&headers), Some(43));
    }
}
