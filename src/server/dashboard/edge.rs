//! One edge, drawn as the way of a request: from its hosts over TLS and the modules of the edge to the routes.

use maud::{Markup, html};

use super::certificates::presented;
use super::elements::{Tone, badge, facts, json, locked, more, nothing, pager, source_link, time};
use super::layout::prose;
use super::page::{DashboardPage, PageContent, PageRequest, ROWS};
use super::scan::TableScan;
use super::{drift, revisions, routes};
use crate::model::{AnyResource, Entry, HttpsEdge, HttpsEdgeRoute};
use crate::routing::behaviour::Fate;
use crate::routing::order::{in_match_order, in_traffic_order};
use crate::routing::{TracedRequest, passes_tls_through};
use crate::server::gateway_feed::presented::TlsHostport;
use crate::server::http::api_error::ApiError;
use crate::server::prelude::*;

pub(super) static PAGE: DashboardPage =
    DashboardPage::new("/ui/edges/{p0}", render).taking(&["after", "before"]).of_history().of_writer();

/// The most routes that are shown in the order in which they are tried, and whose changes the history of the edge has. Those of a
/// larger edge are shown by ID, in pages.
const MOST_ORDERED: usize = 500;
/// The most hostports whose certificates are shown.
const MOST_CERTIFIED: usize = 5;
/// A port with TLS: all but one have it.
const HTTPS: u16 = 443;

fn render(request: &PageRequest) -> Result<PageContent, ApiError> {
    let key = Key::new(Kind::HttpsEdge, Id::new(request.parameter(0)));
    let missing = || ApiError::not_found(&key.to_string());
    let entry = request.snapshot.get(&key).ok_or_else(missing)?;
    let edge = entry.spec_as::<HttpsEdge>().ok_or_else(missing)?;
    let created = entry.created_at.to_string();
    let by_hand = entry.source().and_then(|source| drift::of_resource(request, source, &key.path()));
    let body = html! {
        @if let Some(by_hand) = &by_hand { h2 { "Changed by hand" } (by_hand) }
        (facts(&[
            ("Source", html! { @if let Some(source) = entry.source() { (source_link(request, source)) } @else { "none: it was made over the API" } }),
            ("Name", html! { (entry.name().unwrap_or_default()) }),
            ("ID", html! { code { (entry.key.id.as_str()) } }),
            ("Description", html! { (edge.description) }),
            ("Created", time(&created, request.now)),
        ]))
        h2 id="way" { "Request path" }
        ol.way aria-labelledby="way" {
            li { h3 { "Host" }
                @for hostport in &edge.hostports { p { code { (hostport) } } }
                @if edge.hostports.is_empty() { (nothing("It serves no host, and so takes no request.")) }
            }
            (tls(request, entry))
            (modules(edge))
            @if passes_tls_through(edge) {
                li { h3 { "TLS is passed through" } p { "The edge cannot see paths and protects nothing: only a route for every path takes requests." } }
            }
            li { h3 { "Routes" } p { "The first one that matches takes the request." } }
        }
        (tried_routes(request, entry, edge))
        h2 { "History" }
        (history(request, &key)?)
        details { summary { "As JSON" } (json(&Value::Object(entry.spec().to_json(Secrets::Masked)?))) }
    };
    Ok(PageContent { title: format!("Edge {}", request.snapshot.full_name(entry)), section: "Edges", body })
}

/// The certificates that gateways present at the host:ports of an edge, and the oldest version of TLS. Nothing without TLS.
fn tls(request: &PageRequest, edge: &Arc<Entry>) -> Markup {
    let hostports = request.app.dashboard.hostports.at(&request.snapshot);
    let terminating: Vec<&TlsHostport> = hostports.of_edge(&edge.key).collect();
    let oldest = Fate::new(&request.snapshot, Some(edge), None).oldest_tls(HTTPS);
    html! {
        @if !terminating.is_empty() {
            li { h3 { "TLS " @if let Some(oldest) = oldest { (oldest.as_str()) " or newer" } }
                @for it in terminating.iter().take(MOST_CERTIFIED) {
                    p { @if terminating.len() > 1 { code { (it.hostport) } " " } (presented(request, it)) }
                }
                (more(terminating.len(), MOST_CERTIFIED))
            }
        }
    }
}

/// The modules of a resource, in the order in which they take effect.
pub(super) fn modules(resource: &dyn AnyResource) -> Markup {
    let request = TracedRequest::default();
    html! {
        @for ordered in in_traffic_order(resource) {
            li {
                h3 { (ordered.slot.name)
                    @if ordered.module.restricts_access() { " " (locked("restricts access")) }
                }
                @for step in ordered.module.steps(&request) { p { (prose(&step.note)) } }
            }
        }
        @for (slot, module) in resource.modules() {
            @if !module.enabled() { li.off { h3 { (slot.name) " " (badge(Tone::Neutral, "disabled")) } } }
        }
    }
}

/// The changes of an edge and of its routes, also of those that were deleted lately.
fn history(request: &PageRequest, edge: &Key) -> Result<Markup, ApiError> {
    let routes = request.snapshot.children_after(edge, None).map(|route| route.key.clone());
    let routes: Vec<Key> = routes.take(MOST_ORDERED + 1).collect();
    let is_whole = routes.len() <= MOST_ORDERED;
    let deleted = request.store().change_window.deleted_children(edge).into_iter().take(MOST_ORDERED);
    let routes = if is_whole { routes } else { Vec::new() };
    let paths: BTreeSet<String> =
        routes.into_iter().chain(deleted).chain([edge.clone()]).map(|key| key.path()).collect();
    let paths: Vec<String> = paths.into_iter().collect();
    Ok(html! {
        @if !is_whole { p { "The page of a route has what changed it: these are too many for one history." } }
        (revisions::changes_of(request, &paths, "edge")?)
    })
}

fn tried_routes(request: &PageRequest, entry: &Entry, edge: &HttpsEdge) -> Markup {
    let snapshot = &request.snapshot;
    let few: Vec<&Arc<Entry>> = snapshot.children_after(&entry.key, None).take(MOST_ORDERED + 1).collect();
    if few.is_empty() {
        return nothing(
            "The edge has no routes, and so answers no request. Declare routes with the edge, or over the API.",
        );
    }
    let after = request.value("after");
    let is_ordered = few.len() <= MOST_ORDERED;
    let (rows, next, text) = if is_ordered {
        let known = few.iter().filter_map(|entry| Some((&entry.key, entry.spec_as::<HttpsEdgeRoute>()?)));
        let ordered = in_match_order(passes_tls_through(edge), known);
        let mut keys: Vec<&Key> = ordered.iter().map(|((key, _), _)| *key).collect();
        // Those that match no request come last.
        let matching: BTreeSet<&Key> = keys.iter().copied().collect();
        keys.extend(few.iter().map(|entry| &entry.key).filter(|key| !matching.contains(key)));
        let from: usize = after.parse().unwrap_or_default();
        let rows: Vec<Arc<Entry>> =
            keys.iter().skip(from).take(ROWS).filter_map(|key| snapshot.get(key).cloned()).collect();
        let next = Some(from.saturating_add(ROWS)).filter(|next| *next < keys.len()).map(|next| next.to_string());
        (rows, next, "Next page")
    } else {
        let from = (!after.is_empty()).then(|| Id::new(&after));
        let scan = TableScan::new(snapshot.children_after(&entry.key, from.as_ref()), |_| true);
        let next = scan.last.as_ref().map(|last| last.key.id.to_string());
        let text = scan.next_text();
        (scan.rows, next, text)
    };
    html! {
        @if !is_ordered {
            p { "The edge has over " (MOST_ORDERED) " routes: they are listed by ID. "
                a href=(request.to("trace")) { "Trace a request" } " to find the one that takes it." }
        }
        (routes::table(request, &rows))
        (pager(request, "after", after.is_empty(), next, text))
    }
}
