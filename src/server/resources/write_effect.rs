//! What a write did to declared routes that its client may not have meant: it opened access, or took requests from one.

use crate::model::HttpsEdgeRoute;
use crate::routing::behaviour::{missing_protections, protections};
use crate::routing::rivals::Rivals;
use crate::server::handler_prelude::*;

/// The warnings about a write to a resource, which was `before` the write.
pub(super) async fn effect_warnings(key: &Key, before: Option<&Entry>, state: &Arc<Snapshot>) -> Vec<String> {
    let after = state.get(key).map(|entry| &**entry);
    let mut warnings: Vec<String> = opened_access(before, after, state).into_iter().collect();
    if after.is_some_and(|after| can_take(before, after, state)) {
        let (key, state) = (key.clone(), Arc::clone(state));
        // An edge may have many routes. The write is durable, so it does not fail here.
        let taken = blocking(move || Ok(taken_requests(&key, &state))).await;
        warnings.extend(taken.ok().flatten());
    }
    warnings
}

/// The access that a change of a declared resource opens. Who deletes a route serves nothing there.
fn opened_access(before: Option<&Entry>, after: Option<&Entry>, state: &Snapshot) -> Option<String> {
    let of = |entry: &Entry| protections(entry.spec().modules());
    // Of what no source declares, the request itself says what it removes.
    let (before, after) = (before.filter(|entry| entry.claim.is_some())?, after?);
    let lost = missing_protections(&of(before), &of(after));
    (!lost.is_empty())
        .then(|| format!("this opens access: {} is without {}", state.name_of(&after.key), lost.join(", ")))
}

/// Whether a route without a source is new or has another match, on an edge of a source.
fn can_take(before: Option<&Entry>, after: &Entry, state: &Snapshot) -> bool {
    let matched = |entry: &Entry| entry.spec_as::<HttpsEdgeRoute>().map(|it| (it.match_type, it.r#match.clone()));
    let edge = after.key.parent_key().and_then(|edge| state.get(&edge));
    after.claim.is_none()
        && edge.is_some_and(|edge| edge.claim.is_some())
        && before.is_none_or(|before| matched(before) != matched(after))
}

/// The declared routes from which a route without a source takes requests.
fn taken_requests(key: &Key, state: &Snapshot) -> Option<String> {
    let taken = Rivals::of_route(state, key);
    let (first, rest) = taken.split_first()?;
    let (losing, others) = (state.name_of(first.losing.0), Rivals::and_others(rest.len()));
    Some(format!("{key} {} {losing}{others}, and no sync changes that", first.verb()))
}
