//! Which paths of an edge its delegations leave to which source (D103).
//!
//! A match is inside a prefix if all paths that it matches are, compared as plain text; so a prefix ends with `/`, and a
//! path that an upstream may read as another one is inside no prefix but `/`.
//!
//! Prefixes can be inside each other. Paths below the longer one belong to its source, so that a route of the other source
//! takes no requests for them from its routes: with a longer path, or with a host, which precedes all matches without one.
//! The edge can delegate the longer prefix to both.
//!
//! For example, `docs` has `/docs/`, and `guides` has `/docs/guides/`. Of the routes of `docs`, `/docs/` and
//! `shop.example.com/docs/api/` are admitted, `/docs/guides/new/` and `shop.example.com/docs/` are not.

use crate::model::kind::https_edge::Delegation;
use crate::model::{HttpsEdge, HttpsEdgeRoute};
use crate::routing::selector::Selector;
use crate::syntax::text::printable;

/// The path prefix that stands for all paths of an edge, and for hosts beside its hostports.
pub(super) const WHOLE: &str = "/";

/// The prefixes that an edge delegates to a source.
pub(super) fn prefixes_of<'a>(edge: &'a HttpsEdge, source: &str) -> Vec<&'a str> {
    let granted = edge.delegates_to.iter().filter(|it| it.source == source);
    granted.map(|it| it.path_prefix.as_str()).collect()
}

/// Whether an edge's delegations admit a route of a source.
pub(super) fn admits(edge: &HttpsEdge, source: &str, route: &HttpsEdgeRoute) -> bool {
    let prefixes = prefixes_of(edge, source);
    // A match that is empty has a fault of its own.
    let Some(selector) = Selector::from_route(route) else { return !prefixes.is_empty() };
    prefixes.into_iter().any(|prefix| is_within(&selector, prefix))
}

/// Whether an edge consents to a route of a source.
pub(super) fn consents(edge: &HttpsEdge, source: &str, route: &HttpsEdgeRoute) -> bool {
    admits(edge, source, route) && closer_delegation(edge, source, route).is_none()
}

/// The delegation of a longer prefix to another source, of whose requests a route would take some. None if the edge delegates
/// as long a prefix to the source.
pub(super) fn closer_delegation<'e>(
    edge: &'e HttpsEdge,
    source: &str,
    route: &HttpsEdgeRoute,
) -> Option<&'e Delegation> {
    let selector = Selector::from_route(route)?;
    let own = prefixes_of(edge, source);
    let has = |prefix: &str| own.iter().any(|it| *it == prefix || (it.starts_with(prefix) && is_within(&selector, it)));
    let others = edge.delegates_to.iter().filter(|it| it.source != source);
    let mut others = others.filter(|it| is_below(&selector, &it.path_prefix) || precedes(&selector, &it.path_prefix));
    others.find(|it| !has(&it.path_prefix))
}

/// Whether all texts that a selector matches begin with a prefix, whatever paths an upstream reads in them.
fn is_below(selector: &Selector<'_>, prefix: &str) -> bool {
    selector.path.starts_with(prefix) || is_page(selector, prefix)
}

/// Whether a selector takes requests from matches below a longer prefix because it has a host, which precedes every path.
pub(super) fn precedes(selector: &Selector<'_>, prefix: &str) -> bool {
    !selector.host.is_empty()
        && !selector.is_exact
        && prefix.len() > selector.path.len()
        && prefix.starts_with(selector.path)
}

/// Whether a selector is the page above a prefix, such as `/docs` above `/docs/`.
fn is_page(selector: &Selector<'_>, prefix: &str) -> bool {
    selector.is_exact && prefix.strip_suffix('/') == Some(selector.path)
}

/// Whether all paths that a selector matches begin with a prefix.
fn is_within(selector: &Selector<'_>, prefix: &str) -> bool {
    prefix == WHOLE || (is_normal(selector.path) && is_below(selector, prefix))
}

/// The parts that a path in [`is_normal`] form does not have.
pub(super) const ODD: &str = "`.` and `..`, empty segments, and the characters `%`, `\\`, `?`, `#` and `;`";

/// Whether no server could read another path in a path: matches are plain texts, and an upstream may resolve `..`.
pub(super) fn is_normal(path: &str) -> bool {
    let inner = path.strip_prefix('/').unwrap_or(path);
    let inner = inner.strip_suffix('/').unwrap_or(inner);
    let is_plain = |segment: &str| !matches!(segment, "" | "." | "..");
    !path.contains(['%', '\\', '?', '#', ';']) && (inner.is_empty() || inner.split('/').all(is_plain))
}

/// The prefix to ask for so that a route can be added. Also the match, if it has to end with `/` for that: otherwise it matches
/// paths outside of the prefix.
pub(super) fn wanted_prefix(route: &HttpsEdgeRoute) -> (String, Option<&str>) {
    let Some(Selector { path, is_exact, .. }) = Selector::from_route(route) else { return (WHOLE.to_owned(), None) };
    if path.ends_with('/') {
        return (path.to_owned(), None);
    }
    (format!("{path}/"), (!is_exact).then_some(route.r#match.as_str()))
}

/// Returns the request to the owner of an edge: an entry of its list of delegations, or the list if there is none yet.
/// A list with entries must keep them.
pub(super) fn consent_to_ask_for(edge: &HttpsEdge, name: &str, source: &str, prefix: &str) -> String {
    let (name, prefix) = (printable(name), printable(prefix));
    // In braces, some characters need quotes.
    let prefix = match prefix.contains([',', '[', ']', '{', '}', '\'', ':']) {
        true => format!("'{}'", prefix.replace('\'', "''")),
        false => prefix,
    };
    let entry = format!("{{source: {source}, path_prefix: {prefix}}}");
    match edge.delegates_to.is_empty() {
        true => format!("ask for `delegates_to: [{entry}]` in the manifest of `{name}`"),
        false => format!("ask for `{entry}` in `delegates_to` of `{name}`"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::kind::https_edge_route::MatchType::{self, ExactPath, PathPrefix};

    fn is_admitted(prefix: &str, match_type: MatchType, text: &str) -> bool {
        let delegation = Delegation { source: "docs".into(), path_prefix: prefix.into() };
        let edge = HttpsEdge { delegates_to: vec![delegation], ..HttpsEdge::default() };
        let route = HttpsEdgeRoute { match_type: Some(match_type), r#match: text.into(), ..HttpsEdgeRoute::default() };
        assert!(!consents(&edge, "team", &route), "{text}: another source");
        consents(&edge, "docs", &route)
    }

    #[test]
    fn a_route_is_within_a_prefix_if_all_its_paths_are() {
        for (match_type, text) in [
            (PathPrefix, "/docs/"),
            (PathPrefix, "/docs/a"),
            (ExactPath, "/docs/a"),
            (ExactPath, "/docs"),
            (PathPrefix, "shop.example.com/docs/a"),
        ] {
            assert!(is_admitted("/docs/", match_type, text) && is_admitted("/", match_type, text), "{text}");
        }
        for (match_type, text) in [
            (PathPrefix, "/docs"),
            (PathPrefix, "/docsecret/"),
            (ExactPath, "/docs/../admin"),
            (PathPrefix, "/docs/./a"),
            (PathPrefix, "/docs//a"),
            (ExactPath, "/docs/%2e%2e/admin"),
            (ExactPath, "/docs/..\\admin"),
            (PathPrefix, "/Docs/"),
            (PathPrefix, "/"),
            (ExactPath, "shop.example.com"),
            (PathPrefix, "shop.example.com"),
            (PathPrefix, "*"),
        ] {
            assert!(!is_admitted("/docs/", match_type, text) && is_admitted("/", match_type, text), "{text}");
        }
    }

    #[test]
    fn a_route_takes_nothing_below_a_longer_prefix_of_another_source() {
        let consents_to = |own: &[&str], match_type: MatchType, text: &str| {
            let own = own.iter().map(|prefix| ("docs", *prefix));
            let delegations = own.chain([("guides", "/docs/guides/")]);
            let delegates_to = delegations
                .map(|(source, path_prefix)| Delegation { source: source.into(), path_prefix: path_prefix.into() })
                .collect();
            let edge = HttpsEdge { delegates_to, ..HttpsEdge::default() };
            let route =
                HttpsEdgeRoute { match_type: Some(match_type), r#match: text.into(), ..HttpsEdgeRoute::default() };
            consents(&edge, "docs", &route)
        };
        for (match_type, text) in [
            (PathPrefix, "/docs/"),
            (PathPrefix, "/docs/guides"),
            (PathPrefix, "/docs/guides-old/"),
            (ExactPath, "shop.example.com/docs/"),
            (PathPrefix, "shop.example.com/docs/api/"),
        ] {
            assert!(consents_to(&["/docs/"], match_type, text), "{text}");
        }
        for (match_type, text) in [
            (PathPrefix, "/docs/guides/"),
            (PathPrefix, "/docs/guides/new/"),
            (ExactPath, "/docs/guides/new"),
            (ExactPath, "/docs/guides"),
            (PathPrefix, "shop.example.com/docs/"),
            (PathPrefix, "*.example.com/docs/gui"),
            (PathPrefix, "shop.example.com/docs/guides/"),
        ] {
            assert!(!consents_to(&["/docs/"], match_type, text), "{text}");
            assert!(consents_to(&["/docs/", "/docs/guides/"], match_type, text), "{text}: both have it");
        }
        assert!(consents_to(&["/docs/", "/docs/guides/api/"], PathPrefix, "shop.example.com/docs/guides/api/v1"));
        assert!(!consents_to(&["/"], PathPrefix, "shop.example.com") && consents_to(&["/"], PathPrefix, "/"));
        assert!(!consents_to(&["/"], PathPrefix, "/docs/guides/../x"), "the gateway compares plain texts");
    }
}
