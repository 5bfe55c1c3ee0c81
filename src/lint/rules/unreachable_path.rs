//! `unreachable-path`: a match with a path that no request has.

use super::prelude::*;
use crate::model::MatchType;

pub(crate) static LINT: Lint = Lint {
    name: "unreachable-path",
    default: Level::Warn,
    summary: "The path of a match contains a query, a wildcard, a placeholder, a regular expression, a character that is percent-encoded in a URL, or a broken percent-encoding.",
    why: "A match is compared byte by byte with the path as it is in the URL, without the query. There are no wildcards: \
          `/api/*` matches only a path with an asterisk, so the route receives no requests.",
    cure: "Use the path as it is in the URL, without a query. To match everything below a path, use `path_prefix` and \
           end the match with `/`.",
    check: LintCheck::Edge(check),
};

fn check(view: &EdgeView<'_>, findings: &mut Findings) {
    // `unserved-host` reports regular expressions.
    for (key, route) in view.all::<HttpsEdgeRoute>().filter(|(_, route)| !is_regex(&route.r#match)) {
        let path = route.r#match.find('/').and_then(|slash| route.r#match.get(slash..)).unwrap_or_default();
        let is_prefix = route.match_type == Some(MatchType::PathPrefix);
        if let Some(message) = fault(path, is_prefix) {
            findings.report(key, ["match"], message);
        }
    }
}

/// Whether a match is written as a regular expression. No host or path starts with `^`.
pub(super) fn is_regex(text: &str) -> bool {
    text.starts_with('^')
}

/// Returns why no request has a path.
fn fault(path: &str, is_prefix: bool) -> Option<String> {
    if path.bytes().all(is_harmless) {
        return None;
    }
    if is_pattern(path) {
        return Some(format!("`{}` is not a regular expression, but literal text", printable(path)));
    }
    let special = || path.chars().find_map(character_fault).or_else(|| encoding_fault(path));
    special().or_else(|| {
        // `/.` as a prefix matches `/.well-known`.
        let last = path.split('/').count() - 1;
        let mut whole = path.split('/').enumerate().filter(|(index, _)| !is_prefix || *index < last);
        if let Some((_, dots)) = whole.find(|(_, segment)| matches!(*segment, "." | "..")) {
            return Some(format!("clients resolve `{dots}` before they send a request"));
        }
        let is_placeholder = |segment: &&str| {
            segment.strip_prefix(':').is_some_and(|name| name.starts_with(|c: char| c.is_ascii_alphabetic()))
        };
        let placeholder = path.split('/').find(is_placeholder)?;
        Some(format!("`{}` is not a placeholder, but literal text", printable(placeholder)))
    })
}

/// Whether a byte has one meaning wherever it is in a path. Most paths have no other bytes.
fn is_harmless(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"/-_~,;=@!&'()".contains(&byte)
}

/// Whether a path was meant as a regular expression: it has something that paths of URLs do not have.
fn is_pattern(path: &str) -> bool {
    // `/Products(1)` and `/$metadata` are usual paths.
    path.contains('[')
        || path.contains("/^")
        || (path.ends_with('$') && !path.ends_with("/$"))
        || (path.contains('(') && path.contains('|'))
        || ["\\d", "\\w", "\\s", "\\.", "\\/"].iter().any(|escape| path.contains(escape))
        || path.split('/').any(|segment| segment == ".+")
}

fn character_fault(c: char) -> Option<String> {
    match c {
        '?' => Some("`?` starts the query, which is not compared".to_owned()),
        '#' => Some("`#` starts the fragment, which clients do not send".to_owned()),
        '*' => Some("`*` is not a wildcard, but literal text".to_owned()),
        '{' | '}' | '<' | '>' => Some(format!("`{c}` is not part of a placeholder, but literal text")),
        '`' => Some("a backquote is percent-encoded in a URL, as `%60`".to_owned()),
        '"' | '|' | '\\' | '^' | ']' => Some(encoded(c)),
        _ if c.is_whitespace() || c.is_control() || !c.is_ascii() => Some(encoded(c)),
        _ => None,
    }
}

fn encoded(c: char) -> String {
    let encoded: String = c.encode_utf8(&mut [0; 4]).bytes().map(|byte| format!("%{byte:02X}")).collect();
    format!("`{}` is percent-encoded in a URL, as `{encoded}`", printable(&c.to_string()))
}

/// Reports a `%` that two hexadecimal digits do not follow.
fn encoding_fault(path: &str) -> Option<String> {
    let is_digit = |byte: &u8| byte.is_ascii_hexdigit();
    let is_broken = |rest: &&str| !matches!(rest.as_bytes(), [one, two, ..] if is_digit(one) && is_digit(two));
    let rest = path.split('%').skip(1).find(is_broken)?;
    let shown: String = rest.chars().take(2).collect();
    Some(format!("`%{}` is not a percent-encoded byte, which has two hexadecimal digits", printable(&shown)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_urls_are_reachable() {
        for good in [
            "",
            "/",
            "/a/b.c",
            "/.well-known/x",
            "/a%20b",
            "/~jo/@a:b;c=d,e+f!$&'()",
            "/v1/jobs:run",
            "/..a/",
            "/$metadata",
            "/Products(1)",
            "/a!b",
            "/c++",
            "/a%2Fb%c3",
        ] {
            assert_eq!(fault(good, true), None, "{good}");
            assert_eq!(fault(good, false), None, "{good}");
        }
        assert_eq!((fault("/.", true), fault("/.", false).is_some()), (None, true));
    }

    #[test]
    fn other_texts_are_not() {
        for bad in ["/a?b=c", "/a#b", "/a/*", "/a b", "/a/{id}", "/x/<id>", "/a/:id", "/a/../b", "/é", "/a\t"] {
            assert!(fault(bad, true).is_some(), "{bad}");
        }
        for bad in ["/a\"b", "/a`b", "/a|b", "/a\\b", "/a^b", "/%zz", "/v1/%", "/api%2", "/a%2Fb%zz"] {
            assert!(fault(bad, false).is_some_and(|message| message.contains("percent-encoded")), "{bad}");
        }
        for bad in ["/^orders$", "/users/[0-9]+", "/(a|b)/c", "/a$", "/^x", "/users/\\d+", "/api/.+"] {
            assert!(fault(bad, true).is_some_and(|message| message.contains("regular expression")), "{bad}");
        }
        let encoded = fault("/caf\u{e9}", true).unwrap_or_default();
        assert!(encoded.ends_with("as `%C3%A9`"), "{encoded}");
    }
}
