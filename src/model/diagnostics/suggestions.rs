//! Suggestions for misspelt words.

use std::cell::Cell;

use crate::syntax::text::printable;

/// Longer words are not compared: they are not typing errors, and comparing them takes time and memory.
const LONGEST_WORD: usize = 100;

/// Shorter names are a slip away from too many others.
const SHORTEST_NAME: usize = 3;

/// The most comparisons for suggestions in one run: a list of misspelt words can be as long as a file.
const MOST_COMPARISONS: usize = 100_000;

/// Known words with their synonyms, which are not similar in spelling.
const SYNONYMS: &[(&str, &[&str])] = &[
    ("ip_policy_ids", &["addresses", "allow", "cidrs", "ips", "networks"]),
    ("hostports", &["domain", "domains", "host", "hostname", "hostnames", "hosts"]),
    ("mutual_tls", &["mtls"]),
    ("match", &["path", "prefix"]),
    ("tls_termination", &["ssl"]),
    ("backend", &["service", "upstream"]),
    ("backend_id", &["service", "target", "upstream"]),
    ("certificate_pem", &["tls.crt"]),
    ("private_key_pem", &["tls.key"]),
    ("provider", &["amazon", "facebook", "github", "gitlab", "google", "linkedin", "microsoft", "twitch"]),
    ("organizations", &["org", "orgs"]),
    ("add", &["set"]),
    ("inbound", &["in", "ingress"]),
    ("outbound", &["egress", "out"]),
    ("type", &["action"]),
    ("name", &["generatename"]),
    ("spec", &["data"]),
];

/// The similarity of a known word, part by part; the greatest is the best suggestion. A part of a known word counts
/// less than a misspelling, and a misspelling less than a synonym.
type Nearness = (u8, i64, f64);

fn nearness(word: &str, candidate: &str) -> Option<Nearness> {
    let candidate = folded(candidate);
    if SYNONYMS.iter().any(|(known, words)| *known == candidate && words.contains(&word)) {
        return Some((2, 0, 0.0));
    }
    misspelling(word, &candidate).or_else(|| part(word, &candidate))
}

/// The edit distance and the Jaro-Winkler similarity.
fn misspelling(word: &str, candidate: &str) -> Option<Nearness> {
    let (shorter, longer) = (word.len().min(candidate.len()), word.len().max(candidate.len()));
    // The distance is at least the difference in length, and computing it takes time.
    if (longer - shorter) * 2 > longer {
        return None;
    }
    let similarity = strsim::jaro_winkler(word, candidate);
    // The edit distance catches long words with a missing or repeated part, which Jaro-Winkler rates low. A common
    // start alone makes Jaro-Winkler high.
    let distance = strsim::damerau_levenshtein(word, candidate);
    let is_near = distance <= 1 + shorter / 5 || (similarity > 0.85 && distance * 2 <= longer);
    is_near.then_some((1, -(distance as i64), similarity))
}

/// Looks for the word, or its words, among those of the candidate: `window` is part of `rolling_window`, and `cert_pem`
/// short for `certificate_pem`. A start is better than an end, an end better than the middle, and then few missing words.
fn part(word: &str, candidate: &str) -> Option<Nearness> {
    let parts: Vec<&str> = word.split('_').filter(|part| !part.is_empty()).collect();
    let whole: Vec<&str> = candidate.split('_').collect();
    if parts.is_empty() || word.len() < 2 {
        return None;
    }
    let missing = whole.len().checked_sub(parts.len())?;
    let is_short = |part: &str, whole: &str| part == whole || (part.len() >= 3 && whole.starts_with(part));
    let fits = |at: &usize| parts.iter().zip(whole.iter().skip(*at)).all(|(part, whole)| is_short(part, whole));
    let rank = |at: usize| match at {
        0 => 0,
        _ if at == missing => 1,
        _ => 2,
    };
    let rank: i64 = (0..=missing).filter(fits).map(rank).min()?;
    Some((0, -rank, -(missing as f64)))
}

fn folded(word: &str) -> String {
    word.to_lowercase().replace('-', "_")
}

/// Returns the known word most similar to a misspelt one, if it is similar enough to suggest.
pub(crate) fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if word.len() > LONGEST_WORD {
        return None;
    }
    let word = folded(word);
    known
        .into_iter()
        .filter_map(|candidate| Some((candidate, nearness(&word, candidate)?)))
        .max_by(|(_, a), (_, b)| (a.0, a.1).cmp(&(b.0, b.1)).then(a.2.total_cmp(&b.2)))
        .map(|(candidate, _)| candidate)
}

/// Returns the known name that a slip of the fingers made another one: a letter is missing, was added, or changed places with
/// the next one. For names that may as well be meant: `team-a` is not a misspelt `team-b`, nor `eu` a misspelt `eu1`.
pub(crate) fn misspelt<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    known.into_iter().find(|known| is_slip(name, known))
}

fn is_slip(name: &str, known: &str) -> bool {
    let longest = name.len().max(known.len());
    if name.len().min(known.len()) < SHORTEST_NAME || longest > LONGEST_WORD {
        return false;
    }
    let sorted = |text: &str, is_counted: fn(&char) -> bool| {
        let mut counted: Vec<char> = text.chars().filter(is_counted).collect();
        counted.sort_unstable();
        counted
    };
    let has_same = |is_counted: fn(&char) -> bool| sorted(name, is_counted) == sorted(known, is_counted);
    let is_replaced = name.len() == known.len() && !has_same(|_| true);
    !is_replaced && has_same(char::is_ascii_digit) && strsim::damerau_levenshtein(name, known) == 1
}

/// Returns the help for a misspelt word: the most similar known one, or `otherwise`.
pub(crate) fn suggest<'a>(
    word: &str,
    known: impl IntoIterator<Item = &'a str>,
    otherwise: impl Into<String>,
) -> String {
    nearest(word, known).map_or_else(|| otherwise.into(), |near| format!("did you mean `{}`?", printable(near)))
}

/// The comparisons for suggestions in a run: a run that has made its share suggests nothing more.
#[derive(Debug, Default)]
pub(crate) struct Suggestions {
    made: Cell<usize>,
}

impl Suggestions {
    /// Returns the most similar word like [`nearest`], but `None` when there are not enough comparisons left.
    pub(crate) fn nearest<'a>(&self, word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
        let left = MOST_COMPARISONS - self.made.get();
        if left == 0 {
            return None;
        }
        let known: Vec<&str> = known.into_iter().take(left + 1).collect();
        self.made.set((self.made.get() + known.len()).min(MOST_COMPARISONS));
        if known.len() > left { None } else { nearest(word, known) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_told_from_another_name() {
        for (name, known, expected) in [
            ("shp", "shop", true),
            ("shpo", "shop", true),
            ("shoop", "shop", true),
            ("team-a", "team-b", false),
            ("eu-1", "eu-2", false),
            ("shop2", "shop", false),
            ("shop-api", "shop", false),
            ("eu", "e", false),
            ("shop", "shop", false),
        ] {
            assert_eq!(misspelt(name, [known]), expected.then_some(known), "{name} {known}");
        }
    }

    const ROUTE: &[&str] = &[
        "match_type",
        "match",
        "description",
        "metadata",
        "backend",
        "ip_restriction",
        "circuit_breaker",
        "compression",
        "request_headers",
        "response_headers",
        "webhook_verification",
        "oauth",
        "saml",
        "oidc",
        "websocket_tcp_converter",
        "user_agent_filter",
        "jwt_validation",
        "policies",
    ];
    const EDGE: &[&str] = &["description", "metadata", "hostports", "mutual_tls", "tls_termination", "routes"];
    const BREAKER: &[&str] = &[
        "enabled",
        "tripped_duration",
        "rolling_window",
        "num_buckets",
        "volume_threshold",
        "error_threshold_percentage",
    ];
    const OIDC: &[&str] = &["enabled", "issuer", "client_id", "client_secret", "scopes"];
    const MUTUAL_TLS: &[&str] = &["enabled", "certificate_authority_ids"];
    const RESTRICTION: &[&str] = &["type", "enforced", "ip_policy_ids"];
    const METADATA: &[&str] = &["name", "labels", "annotations", "id", "renamed_from", "prevent_destroy"];
    const CERTIFICATE: &[&str] = &["description", "metadata", "certificate_pem", "private_key_pem"];

    #[test]
    fn misspelt_and_shortened_words_are_near() {
        for (word, known, near) in [
            ("ouath", ROUTE, "oauth"),
            ("path", ROUTE, "match"),
            ("service", ROUTE, "backend"),
            ("jwt", ROUTE, "jwt_validation"),
            ("Circuit-Braker", ROUTE, "circuit_breaker"),
            ("hostport", EDGE, "hostports"),
            ("mtls", EDGE, "mutual_tls"),
            ("tls", EDGE, "tls_termination"),
            ("window", BREAKER, "rolling_window"),
            ("buckets", BREAKER, "num_buckets"),
            ("threshold", BREAKER, "volume_threshold"),
            ("duration", BREAKER, "tripped_duration"),
            ("key", CERTIFICATE, "private_key_pem"),
            ("key_pem", CERTIFICATE, "private_key_pem"),
            ("cert_pem", CERTIFICATE, "certificate_pem"),
            ("tls.crt", CERTIFICATE, "certificate_pem"),
            ("generateName", METADATA, "name"),
            ("secret", OIDC, "client_secret"),
            ("ip_policies", RESTRICTION, "ip_policy_ids"),
            ("certificate_authorities", MUTUAL_TLS, "certificate_authority_ids"),
        ] {
            assert_eq!(nearest(word, known.iter().copied()), Some(near), "{word}");
        }
    }

    #[test]
    fn other_words_are_not() {
        for (word, known) in [("namespace", METADATA), ("color", METADATA), ("", ROUTE), ("_", ROUTE), ("x", EDGE)] {
            assert_eq!(nearest(word, known.iter().copied()), None, "{word}");
        }
        assert_eq!(nearest("path", ["oauth", "saml"]), None);
    }

    #[test]
    fn comparisons_are_limited() {
        let suggestions = Suggestions::default();
        assert_eq!(suggestions.nearest("ouath", ROUTE.iter().copied()), Some("oauth"));
        assert_eq!(suggestions.nearest("ouath", std::iter::repeat_n("saml", MOST_COMPARISONS)), None);
        assert_eq!(suggestions.nearest("ouath", ROUTE.iter().copied()), None, "too many comparisons before");
    }
}
