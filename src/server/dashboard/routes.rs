//! The routes of all edges: a table that is searched and sorted, and that shows what is protected and what was changed by hand.

use maud::{Markup, html};

use super::access::{lock_badges, locks};
use super::elements::{self, Tone, badge, choice, field, filters, first_texts, resource_link, source_cell};
use super::page::{DashboardPage, PageContent, PageRequest};
use super::scan::{SearchWords, TableScan};
use crate::model::{Entry, HttpsEdge, HttpsEdgeRoute};
use crate::routing::rivals::Rivals;
use crate::server::http::api_error::ApiError;
use crate::server::operations::sources::views;
use crate::server::prelude::*;

pub(super) static PAGE: DashboardPage =
    DashboardPage::new("/ui/routes", render).taking(&["search", "source", "access", "sort", "after"]).of_writer();

/// The most hostports in a row.
const MOST_HOSTPORTS: usize = 2;
/// The orders of the table.
const BY_HOST: (&str, &str) = ("host", "By host");
const BY_EDGE: (&str, &str) = ("edge", "By edge");
/// The most routes that are sorted by host unless somebody asks for another order: all of them are looked at for each page.
const MOST_SORTED: usize = 5000;

/// The choices of the filter by access.
const ACCESS: [(&str, &str); 3] = [("", "Any access"), ("open", "Open to everybody"), ("protected", "Protected")];

fn render(request: &PageRequest) -> Result<PageContent, ApiError> {
    let (words, source) = (SearchWords::new(&request.value("search")), request.value("source"));
    let (access, after) = (request.value("access"), request.value("after"));
    let keep = |entry: &Entry| {
        (source.is_empty() || entry.is_owned_by(&source))
            && matches_words(request, entry, &words)
            && match access.as_str() {
                "open" => locks_of(request, entry).is_empty(),
                "protected" => !locks_of(request, entry).is_empty(),
                _ => true,
            }
    };
    let count = request.app.telemetry.inventories.count(&request.snapshot).kinds.get(&Kind::HttpsEdgeRoute).copied();
    let count = count.unwrap_or_default();
    let orders = if count <= MOST_SORTED { [BY_HOST, BY_EDGE] } else { [BY_EDGE, BY_HOST] };
    let sort = request.value("sort");
    let [usual, _] = orders;
    let is_by_host = *orders.iter().find(|(order, _)| *order == sort).unwrap_or(&usual) == BY_HOST;
    // Routes have their order by key: those of an edge are together.
    let from = |edge: &str, id: &str| {
        request.snapshot.entries_after(Key::child(Kind::HttpsEdgeRoute, Id::new(edge), Id::new(id)))
    };
    let (scan, next) = if is_by_host {
        TableScan::sorted(from("", ""), |entry| sorted_host(request, entry), &after, keep)
    } else {
        let (edge, id) = after.split_once('/').unwrap_or_default();
        let scan = TableScan::new(from(edge, id), keep);
        let next = scan.last.as_ref().and_then(|last| Some(format!("{}/{}", last.key.parent.as_ref()?, last.key.id)));
        (scan, next)
    };
    let body = html! {
        (filters("Routes", &html! {
            (field(request, "Search", "search", "host, match, name or description"))
            (field(request, "Source", "source", ""))
            (choice(request, "Access", "access", &ACCESS))
            (choice(request, "Order", "sort", &orders))
        }))
        @if words.is_empty() && source.is_empty() && access.is_empty() && count > 0 { p { (number_of(count, "route")) } }
        (scan.shown(request, &words, ("route", "No routes yet. Declare routes with their edge."), next, |rows| table(request, rows)))
    };
    Ok(PageContent { title: "Routes".to_owned(), section: "Routes", body })
}

/// Whether each word is in a text of the route, or in the name or a host of its edge.
fn matches_words(request: &PageRequest, entry: &Entry, words: &SearchWords) -> bool {
    if words.is_empty() {
        return true;
    }
    let spec = entry.spec_as::<HttpsEdgeRoute>();
    let texts = spec.map(|spec| [spec.r#match.as_str(), spec.description.as_str()]).unwrap_or_default();
    let names = [entry.name().unwrap_or_default(), entry.source().unwrap_or_default(), entry.key.id.as_str()];
    let edge = entry.key.parent_key().and_then(|edge| request.snapshot.get(&edge));
    let name = edge.and_then(|edge| edge.name()).unwrap_or_default();
    let hosts = hostports(request, entry).iter().map(String::as_str);
    words.are_in(names.into_iter().chain(texts).chain([name]).chain(hosts))
}

/// The protections of a route.
fn locks_of(request: &PageRequest, route: &Entry) -> Vec<&'static str> {
    let edge = route.key.parent_key().and_then(|edge| request.snapshot.get(&edge));
    locks(edge.map(|edge| &**edge), route)
}

/// The hosts and ports at which a route is served: those of its edge.
fn hostports<'r>(request: &'r PageRequest, route: &Entry) -> &'r [String] {
    let edge = route.key.parent_key().and_then(|edge| request.snapshot.get(&edge));
    edge.and_then(|edge| edge.spec_as::<HttpsEdge>()).map(|edge| edge.hostports.as_slice()).unwrap_or_default()
}

/// The text by which a route is sorted by host: its first one, and its key. Routes without a host are the last ones.
fn sorted_host(request: &PageRequest, route: &Entry) -> String {
    let host = hostports(request, route).first().map_or_else(|| "~".to_owned(), |host| host.to_lowercase());
    format!("{host} {}", route.key.path())
}

/// The paths of the routes of followed sources that others have changed, as far as the status of a source lists them.
fn changed_by_hand(request: &PageRequest) -> BTreeSet<String> {
    let views = views(&request.app, &request.snapshot, None);
    views.into_iter().flat_map(|view| view.drifted).map(|drifted| drifted.path).collect()
}

/// A table of routes, in which those that others have changed are marked, which only the server that writes knows, and those without
/// a source that take requests from declared ones.
pub(super) fn table(request: &PageRequest, rows: &[Arc<Entry>]) -> Markup {
    let by_hand = changed_by_hand(request);
    let edges: BTreeSet<Key> = rows.iter().filter_map(|entry| entry.key.parent_key()).collect();
    let rivals = Rivals::of_stored(&request.snapshot, &edges);
    let taking: BTreeSet<&Key> = rivals.iter().map(|it| it.taking.0).collect();
    let losing: BTreeSet<&Key> = rivals.iter().map(|it| it.losing.0).collect();
    let row = |entry: &Arc<Entry>| {
        vec![
            html! {
                (resource_link(request, &entry.key, &request.snapshot.full_name(entry)))
                @if by_hand.contains(&entry.key.path()) { " " (badge(Tone::Bad, "changed by hand")) }
                @if taking.contains(&entry.key) { " " (badge(Tone::Bad, "takes requests from a declared route")) }
                @if losing.contains(&entry.key) { " " (badge(Tone::Bad, "loses requests to a route without a source")) }
            },
            lock_badges(&locks_of(request, entry)),
            first_texts(hostports(request, entry), MOST_HOSTPORTS),
            html! { @if let Some(route) = entry.spec_as::<HttpsEdgeRoute>() {
                code { (route.r#match) } " " small { (route.match_type.map(|it| it.as_str()).unwrap_or_default()) }
            } },
            source_cell(request, entry.source()),
        ]
    };
    html! {
        @if request.lacks_writer { p { "What was changed by hand is not marked: the server that writes does not answer." } }
        (elements::table("Routes", &["Route", "Access", "Host", "Match", "Source"], rows.iter().map(row)))
    }
}
