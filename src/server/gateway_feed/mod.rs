//! `GET /gateway/configuration`: the resolved configuration of one revision, for the gateway itself (D94).
//!
//! # The problem
//!
//! A gateway needs certificates with their keys, authorities and login secrets, in the order in which they take effect,
//! all of the same moment. The resources of the API have references and masks, and reading them one by one mixes
//! revisions.
//!
//! # The idea
//!
//! One response has one revision with every reference resolved ([`edges`]): routes in match order, modules in the order
//! of the stages, for each host the certificates that may be presented ([`certificates`]). A response is made once per
//! revision, outside the threads that serve requests, and kept for the newest revisions ([`cache`]). Each edge has a
//! version, so the difference between two revisions is a comparison of versions, and a digest of all versions lets a
//! client check what it has built from differences. People see the same choice of certificates ([`presented`]).
//!
//! For example, a gateway with revision 7 asks `since=7` at revision 9, and gets the two edges that differ, whole, and
//! the digest of all edges at 9. If it asks a server of the same database that is still at revision 6, it waits for that one.
//!
//! # What it never does
//!
//! The configuration is never sent to a role other than `gateway`, nor without TLS to another machine. Nothing in it
//! depends on the clock: the gateway decides which of several certificates is valid now. The types of the configuration
//! have no `Debug`, so no log can print them.

pub(super) mod cache;
mod certificates;
mod edges;
pub(super) mod presented;
pub(super) mod readers;
#[cfg(test)]
mod tests;
mod view;

use axum::extract::ConnectInfo;

use super::resources::at_revision;
use crate::model::Rendered;
use crate::server::handler_prelude::*;
use crate::server::replicas::read_your_writes::has_revision;
use view::GatewayConfiguration;

/// The query parameter with the revision that the gateway has.
const SINCE: &str = "since";
/// The log target of reads of secrets.
const AUDIT: &str = "audit";

pub(super) static GET: ApiOperation = ApiOperation::get("/gateway/configuration", Intent::ReadFeed, |method| on(method, get))
    .with_secrets("the gateway configuration contains private keys")
    .query(&[QueryParameter(SINCE, || {
        json!({
            "description": "The revision that the client has.",
            "schema": {"type": "string", "pattern": "^[0-9]{1,19}$"},
            "x-extension": true,
        })
    })])
    .named("Gateway", "getGatewayConfiguration", "Get the configuration for a gateway")
    .described("Returns one revision for the gateway to serve, with private keys and secrets. Only keys with the role `gateway` can read it, and only over TLS or from the server's own machine. With `since`, the response has only the differences from that revision, or everything if that revision is no longer known. Each read is recorded in the audit log.")
    .documented("400 401 403 429 500 503", |operation, schemas| {
        operation
            .ok(schemas.response::<GatewayConfiguration>())
            .conditional()
            .header("200", "Cache-Control", "`no-store`.")
    });

/// Returns the configuration, or what has changed since the revision that the gateway has.
async fn get(
    State(AppState { access, served, admissions, caches, telemetry, .. }): State<AppState>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    RawQuery(query): RawQuery,
    mut caller: Caller,
    headers: HeaderMap,
) -> ApiResult {
    let message = |_: &str| format!("`{SINCE}` must be the number of a revision, such as `17`");
    let since = query::parsed(query.as_deref(), SINCE, at_revision::number, message)?;
    if let Some(since) = since.filter(|since| served.store.snapshot().revision < *since) {
        // A server that is behind must not send a gateway back.
        has_revision(&served.store, since, &admissions.catch_ups, &caller.owner).await?;
        // The key may have been revoked during the wait.
        caller = access.admit_again(&served.store.snapshot(), &Intent::ReadFeed, &headers)?;
    }
    let snapshot = served.store.snapshot();
    let place = admissions.gateway_reads.for_owner(&caller.owner)?;
    let run = move || {
        let (ServedStore { store, base_urls }, feeds) = (&*served, &caches.feeds);
        let feed = feeds.get(store, base_urls, &snapshot)?;
        telemetry.gateways.note(&caller.key, peer.ip().to_canonical(), feed.revision);
        if let Some(response) = conditional::not_modified(&headers, &feed.etag) {
            return Ok(response);
        }
        let former = match since.filter(|since| *since <= feed.revision) {
            Some(since) => feeds.earlier(store, base_urls, since)?,
            None => None,
        };
        let configuration = feed.configuration(former.as_deref());
        let body = json::bytes(&configuration, Secrets::Revealed)?.into();
        tracing::info!(
            target: AUDIT,
            actor = caller.key.as_str(),
            owner = caller.owner.as_str(),
            %peer,
            revision = feed.revision,
            since,
            full = configuration.full,
            edges = configuration.edges.len() + configuration.changed.len(),
            "a gateway reads its configuration, with private keys and secrets"
        );
        let response = response::resource(StatusCode::OK, &Rendered { body, etag: Arc::clone(&feed.etag) });
        Ok(response::noted(response, caller.note(SecurityEvent::GatewayRead, "")))
    };
    place.render(run).await
}
