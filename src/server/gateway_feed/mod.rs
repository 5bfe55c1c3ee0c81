//! `GET /gateway/configuration`: the resolved configuration of one revision, for the gateway itself (D94). It has private
//! keys and secrets, so it has a role of its own, goes to other machines only with TLS, and each read is in the audit log.

pub(super) mod cache;
mod certificates;
pub(super) mod document;
mod edges;
#[cfg(test)]
mod tests;
mod view;

use std::{net::SocketAddr, sync::Arc};

use axum::{
    body::Body,
    http::{HeaderMap, HeaderValue, Request, StatusCode, header},
    response::Response,
};

use super::{
    auth::{caller::Caller, permission::Intent},
    http::{
        query,
        response::{self, ApiError},
    },
    net::peer::safe_peer,
    resources::at_revision,
    state::AppState,
    telemetry::security::{event::SecurityEvent, note::SecurityNote},
};
use crate::model::{
    json,
    secrets::secret::Secrets,
    snapshot::{Rendered, Snapshot},
};

/// The query parameter with the revision that the gateway has.
const SINCE: &str = "since";
/// The log target of reads of secrets.
const AUDIT: &str = "audit";

/// A gateway that reads its configuration.
struct FeedReader {
    caller: Caller,
    peer: SocketAddr,
    headers: HeaderMap,
    /// The revision that it has.
    since: Option<u64>,
}

/// Returns the configuration, or what has changed since the revision that the gateway has.
pub(super) async fn get(app: AppState, request: Request<Body>) -> Result<Response, ApiError> {
    let (parts, _) = request.into_parts();
    let snapshot = app.served.store.snapshot();
    let caller = app.access.admit(&snapshot, &Intent::ReadFeed, &parts.headers)?;
    let peer = safe_peer(&parts.extensions, &caller, "the gateway configuration has private keys")?;
    query::check(parts.uri.query(), &[SINCE])?;
    let reader = FeedReader { caller, peer, headers: parts.headers, since: since(parts.uri.query())? };
    let place = app.admissions.renderings.of_owner(&reader.caller.owner)?;
    place.render(move || answer(&app, &snapshot, &reader)).await
}

fn answer(app: &AppState, snapshot: &Snapshot, reader: &FeedReader) -> Result<Response, ApiError> {
    let feed = app.caches.feeds.get(&app.served.store, &app.served.site, snapshot)?;
    let mut response = match response::not_modified(&reader.headers, &feed.etag) {
        Some(response) => response,
        None => {
            let former = match reader.since.filter(|since| *since <= feed.revision) {
                Some(since) => app.caches.feeds.earlier(&app.served.store, &app.served.site, since)?,
                None => None,
            };
            let configuration = match &former {
                Some(former) => feed.since(former),
                None => feed.whole(),
            };
            let body = json::bytes(&configuration, Secrets::Revealed)?.into();
            tracing::info!(
                target: AUDIT,
                actor = reader.caller.key.as_str(),
                owner = reader.caller.owner.as_str(),
                peer = %reader.peer,
                revision = feed.revision,
                since = reader.since,
                full = configuration.full,
                edges = configuration.edges.len() + configuration.changed.len(),
                "a gateway reads its configuration, with private keys and secrets"
            );
            let mut response = response::resource(StatusCode::OK, &Rendered { body, etag: Arc::clone(&feed.etag) });
            let actor = (&reader.caller.key, &reader.caller.owner);
            response.extensions_mut().insert(SecurityNote::of(SecurityEvent::GatewayRead, "", Some(actor)));
            response
        }
    };
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}

fn since(text: Option<&str>) -> Result<Option<u64>, ApiError> {
    let mut parameters = form_urlencoded::parse(text.unwrap_or_default().as_bytes());
    let Some((_, value)) = parameters.find(|(name, _)| name == SINCE) else { return Ok(None) };
    let revision = at_revision::number(&value).ok_or_else(|| {
        let message = format!("`{SINCE}` must be the number of a revision, such as `17`");
        ApiError::new(query::at(SINCE, message))
    })?;
    Ok(Some(revision))
}
