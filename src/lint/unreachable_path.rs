//! `unreachable-path`: a match with a path that no request has.

use super::{Findings, Level, Lint, World, unserved_host::is_regex};
use crate::{
    model::kind::https_edge_route::{HttpsEdgeRoute, MatchType},
    text::printable,
};

/// The lint.
pub(crate) static LINT: Lint = Lint {
    name: "unreachable-path",
    needs_whole: false,
    default: Level::Warn,
    summary: "The path of a match contains a query, a wildcard, a placeholder or a character that is percent-encoded in a URL.",
    why: "A match is compared byte by byte with the path as it is in the URL, without the query. There are no wildcards: \
          `/api/*` matches only a path with an asterisk, so the route receives no requests.",
    example: "\
apiVersion: edgewright/v1
kind: HttpsEdge
metadata: {name: shop}
spec:
  hostports: ['shop.example.com:443']
  routes:
    - name: api
      match_type: path_prefix
      match: /api/*
      backend: {backend_id: bkd_shop}
",
    cure: "Write the path as it is in the URL, without a query. To match everything below a path, use `path_prefix` and \
           end the match with `/`.",
    check,
};

fn check(world: &World<'_>, findings: &mut Findings) {
    // `unserved-host` reports regular expressions.
    for (key, route) in world.all::<HttpsEdgeRoute>().filter(|(_, route)| !is_regex(&route.r#match)) {
        let path = route.r#match.find('/').and_then(|slash| route.r#match.get(slash..)).unwrap_or_default();
        let is_prefix = route.match_type == Some(MatchType::PathPrefix);
        if let Some(message) = fault(path, is_prefix) {
            findings.report(key, ["match"], message);
        }
    }
}

/// Returns why no request has a path.
fn fault(path: &str, is_prefix: bool) -> Option<String> {
    path.chars().find_map(character_fault).or_else(|| {
        let segments: Vec<&str> = path.split('/').collect();
        // `/.` as a prefix matches `/.well-known`.
        let whole = segments.len().saturating_sub(usize::from(is_prefix));
        if let Some(dots) = segments.iter().take(whole).find(|segment| matches!(**segment, "." | "..")) {
            return Some(format!("clients resolve `{dots}` before they send a request"));
        }
        let is_placeholder = |segment: &&&str| {
            segment.strip_prefix(':').is_some_and(|name| name.starts_with(|c: char| c.is_ascii_alphabetic()))
        };
        let placeholder = segments.iter().find(is_placeholder)?;
        Some(format!("`{}` is not a placeholder, but literal text", printable(placeholder)))
    })
}

fn character_fault(c: char) -> Option<String> {
    match c {
        '?' => Some("`?` starts the query, which is not compared".to_owned()),
        '#' => Some("`#` starts the fragment, which clients do not send".to_owned()),
        '*' => Some("`*` is not a wildcard, but literal text".to_owned()),
        '{' | '}' => Some(format!("`{c}` is not part of a placeholder, but literal text")),
        _ if c.is_whitespace() || c.is_control() || !c.is_ascii() => {
            let encoded: String = c.encode_utf8(&mut [0; 4]).bytes().map(|byte| format!("%{byte:02X}")).collect();
            Some(format!("`{}` is percent-encoded in a URL, as `{encoded}`", printable(&c.to_string())))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_urls_are_reachable() {
        for good in ["", "/", "/a/b.c", "/.well-known/x", "/a%20b", "/~jo/@a:b;c=d,e+f!$&'()", "/v1/jobs:run", "/..a/"]
        {
            assert_eq!(fault(good, true), None, "{good}");
            assert_eq!(fault(good, false), None, "{good}");
        }
        assert_eq!((fault("/.", true), fault("/.", false).is_some()), (None, true));
    }

    #[test]
    fn other_texts_are_not() {
        for bad in ["/a?b=c", "/a#b", "/a/*", "/a b", "/a/{id}", "/a/:id", "/a/../b", "/é", "/a\t"] {
            assert!(fault(bad, true).is_some(), "{bad}");
        }
        let encoded = fault("/caf\u{e9}", true).unwrap_or_default();
        assert!(encoded.ends_with("as `%C3%A9`"), "{encoded}");
    }
}
