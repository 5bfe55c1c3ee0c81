//! `unmanaged-route`: a route that no source owns and that takes requests from a declared one.

use foldhash::HashMap;

use super::prelude::*;
use crate::routing::rivals::Rivals;
use crate::routing::table::KnownRoute;

/// The name of the lint. Pages list its findings among what was changed by hand.
pub(crate) const NAME: &str = "unmanaged-route";

pub(crate) static LINT: Lint = Lint {
    name: NAME,
    default: Level::Warn,
    summary: "A route of the store that no source owns takes requests from a declared route.",
    why: "Somebody made the route with a single request. No plan changes it, so the gateway does not do what the manifests say: \
          for these requests, the backend and the login of the declared route have no effect.",
    cure: "Delete the route, or declare it with its ID (`metadata.id`), and plan again. If it is meant, set the annotation \
           `edgewright/lint.unmanaged-route: allow (REASON)` in the manifest of the declared route.",
    check: LintCheck::Host(check),
};

/// The routes of edges, by their keys.
type RoutesOfEdges<'v> = HashMap<&'v Id, Vec<KnownRoute<'v>>>;

fn check(view: &HostView<'_>, findings: &mut Findings) {
    let mut unmanaged = RoutesOfEdges::default();
    for (key, route) in view.unmanaged_routes() {
        if let Some(edge) = &key.parent {
            unmanaged.entry(edge).or_default().push((key, route));
        }
    }
    if unmanaged.is_empty() {
        return;
    }
    let mut of_others = RoutesOfEdges::default();
    for (key, route, _) in view.of_others::<HttpsEdgeRoute>() {
        if let Some(edge) = key.parent.as_ref().filter(|edge| unmanaged.contains_key(edge)) {
            of_others.entry(edge).or_default().push((key, route));
        }
    }
    let edges = view.all::<HttpsEdge>().chain(view.of_others::<HttpsEdge>().map(|(key, edge, _)| (key, edge)));
    for (key, edge) in edges {
        let Some(unmanaged) = unmanaged.get(&key.id) else { continue };
        let own: Vec<KnownRoute<'_>> = view.routes_of(&key.id).collect();
        let mut declared = of_others.remove(&key.id).unwrap_or_default();
        declared.extend_from_slice(&own);
        declared.sort_unstable_by_key(|(key, _)| *key);
        // The routes of another source are told to that one.
        let is_own = |rivals: &Rivals<'_>| own.binary_search_by_key(&rivals.losing.0, |(key, _)| *key).is_ok();
        let (found, is_whole) = Rivals::find(edge, unmanaged, &declared);
        if let Some((first, _)) = own.first().filter(|_| !is_whole) {
            // The edge of another source is told with a route of this one.
            let (subject, field) = if view.edge_of(first).is_some() { (key, "hostports") } else { (*first, "match") };
            let message =
                format!("{key} has so many routes and hosts that those without a source were not compared with all");
            findings.report(subject, [field], message);
        }
        let found: Vec<Rivals<'_>> = found.into_iter().filter(is_own).collect();
        // One route is one finding, however many it takes requests from.
        for of_one in found.chunk_by(|one, other| one.taking.0 == other.taking.0) {
            let Some(rivals) = of_one.first() else { continue };
            let (taking, verb) = (rivals.taking.0, rivals.verb());
            let others = Rivals::and_others(of_one.len() - 1);
            let message = format!("{taking}, which no source owns, {verb} this route{others}");
            findings.report(rivals.losing.0, ["match"], message);
        }
    }
}
