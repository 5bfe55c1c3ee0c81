//! `partial-segment-prefix`: a prefix that ends inside a path segment and also matches the path of another route.
//!
//! `/check` matches `/checkout`. That alone can be intended, so another route of the edge must show that such a path
//! exists. Only letters and digits continue a word: `/app` and `/app-assets` or `/app.js` can belong together.

use std::{collections::BTreeMap, ops::Bound};

use foldhash::{HashMap, HashMapExt as _};

use super::prelude::*;
use crate::model::{MatchType, rules};
use crate::routing::selector::Selector;

pub(crate) static LINT: Lint = Lint {
    name: "partial-segment-prefix",
    default: Level::Warn,
    summary: "A `path_prefix` ends inside a path segment and also matches the path of another route.",
    why: "A prefix is plain text and can end anywhere: `/check` matches `/checkout` and every other path that starts \
          with it. The longer match wins only as long as its route exists and has the same host.",
    cure: "End the prefix with `/`. If the path without the slash is also used, add an `exact_path` route for it.",
    check: LintCheck::Edge(check),
};

/// The paths of the routes with one host and port, each with its first route.
type Paths<'w> = BTreeMap<&'w str, &'w Key>;

fn check(view: &EdgeView<'_>, findings: &mut Findings) {
    let mut edges: HashMap<&Id, HashMap<(String, Option<u16>), Paths<'_>>> = HashMap::new();
    for (key, route) in view.in_order::<HttpsEdgeRoute>() {
        if let (Some(edge), Some(selector)) = (&key.parent, Selector::from_route(route)) {
            let paths = edges.entry(edge).or_default().entry((selector.host, selector.port)).or_default();
            paths.entry(selector.path).or_insert(key);
        }
    }
    for (key, route) in view.all::<HttpsEdgeRoute>().filter(|(_, it)| it.match_type == Some(MatchType::PathPrefix)) {
        let Some(edge) = &key.parent else { continue };
        if view.edge_of(key).is_some_and(rules::passes_through) {
            continue;
        }
        let (Some(hosts), Some(selector)) = (edges.get(edge), Selector::from_route(route)) else { continue };
        let path = selector.path;
        if path.ends_with('/') {
            continue;
        }
        let host = (selector.host, selector.port);
        let own = hosts.get(&host);
        let shown = || printable(&route.r#match);
        if let Some((longer, other)) = own.and_then(|paths| longer_word(paths, path)) {
            let message =
                format!("`{}` ends inside a path segment, so it also matches `{}`", shown(), printable(longer));
            findings.report(key, ["match"], message).relate(other, ["match"], "the other route");
            continue;
        }
        // A host in the match wins over a longer path without one. A route that could not be read may have both.
        let is_known = view.is_whole() && !host.0.is_empty();
        let general = hosts.get(&(String::new(), None::<u16>)).filter(|_| is_known);
        if let Some((longer, other)) = general.and_then(|paths| longer_segment(paths, path))
            && own.is_none_or(|paths| !paths.contains_key(longer))
        {
            let message =
                format!("`{}` takes the requests of the route for `{}` on this host", shown(), printable(longer));
            findings.report(key, ["match"], message).relate(other, ["match"], "the other route");
        }
    }
}

/// A path that continues another with a character that fits. `starts` are the lowest of the characters that do.
fn longer<'w>(
    paths: &Paths<'w>,
    path: &str,
    starts: &[char],
    fits: impl Fn(char) -> bool,
) -> Option<(&'w str, &'w Key)> {
    let from = |start: Bound<&str>| paths.range::<str, _>((start, Bound::Unbounded)).next();
    let is_continued = from(Bound::Excluded(path)).is_some_and(|(found, _)| found.starts_with(path));
    // Most paths are continued by none.
    if !is_continued {
        return None;
    }
    starts.iter().find_map(|first| {
        let start = format!("{path}{first}");
        let (&found, &key) = from(Bound::Included(start.as_str()))?;
        let next = found.strip_prefix(path)?.chars().next()?;
        fits(next).then_some((found, key))
    })
}

/// A path that continues the last word of another with a letter or digit. A digit after a digit does not count: `/v1`
/// and `/v10` are members of one series.
fn longer_word<'w>(paths: &Paths<'w>, path: &str) -> Option<(&'w str, &'w Key)> {
    let is_numbered = path.ends_with(|c: char| c.is_ascii_digit());
    let starts: &[char] = if is_numbered { &['A', 'a'] } else { &['0', 'A', 'a'] };
    longer(paths, path, starts, |next| next.is_ascii_alphanumeric())
}

/// A path that continues the last segment of another.
fn longer_segment<'w>(paths: &Paths<'w>, path: &str) -> Option<(&'w str, &'w Key)> {
    // The characters before and after the slash.
    longer(paths, path, &['\0', '0'], |next| next != '/')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Kind;

    fn paths<'w>(texts: &[&'w str], key: &'w Key) -> Paths<'w> {
        texts.iter().map(|text| (*text, key)).collect()
    }

    #[test]
    fn a_longer_path_continues_the_last_word_or_segment() {
        let key = Key::new(Kind::HttpsEdgeRoute, Id::new("edghtsrt_1"));
        let word = |texts: &[&'static str]| longer_word(&paths(texts, &key), "/check").map(|(found, _)| found);
        assert_eq!(word(&["/check", "/check/out", "/checkout", "/other"]), Some("/checkout"));
        assert_eq!(word(&["/check", "/check2"]), Some("/check2"));
        assert_eq!(word(&["/", "/che", "/check", "/check/out", "/check-out", "/check.js", "/cheese"]), None);
        assert!(longer_word(&paths(&["/v1", "/v10"], &key), "/v1").is_none());
        assert!(longer_word(&paths(&["/v1", "/v10", "/v1beta"], &key), "/v1").is_some());
        let segment = |texts: &[&'static str]| longer_segment(&paths(texts, &key), "/check").map(|(found, _)| found);
        assert_eq!(segment(&["/check", "/check/out", "/check-out"]), Some("/check-out"));
        assert_eq!(segment(&["/check/out", "/checks"]), Some("/checks"));
        assert_eq!(segment(&["/", "/check", "/check/out", "/cheese"]), None);
    }
}
