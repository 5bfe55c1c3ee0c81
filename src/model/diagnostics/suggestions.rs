//! Suggestions for misspelt words.

use std::cell::Cell;

/// Longer words are not compared: they are not typing errors, and comparing them takes time and memory.
const LONGEST_WORD: usize = 100;

/// The most comparisons for suggestions in one run: a list of misspelt words can be as long as a file.
const MOST_COMPARISONS: usize = 100_000;

/// Words that people use for a known one, although they are spelt differently.
const SYNONYMS: &[(&str, &str)] = &[
    ("addresses", "ip_policy_ids"),
    ("allow", "ip_policy_ids"),
    ("cidrs", "ip_policy_ids"),
    ("ips", "ip_policy_ids"),
    ("networks", "ip_policy_ids"),
    ("domain", "hostports"),
    ("domains", "hostports"),
    ("host", "hostports"),
    ("hosts", "hostports"),
    ("mtls", "mutual_tls"),
    ("path", "match"),
    ("ssl", "tls_termination"),
    ("upstream", "backend"),
];

/// How near a known word is; the greatest is the best suggestion.
enum Nearness {
    /// A part of the known word: where (a start is better than an end, an end better than the middle), and how many
    /// words are missing.
    Part { rank: usize, missing: usize },
    /// A misspelling: the edit distance and the Jaro-Winkler similarity.
    Misspelt { distance: usize, similarity: f64 },
    /// Another word for it.
    Synonym,
}

impl Nearness {
    fn of(word: &str, candidate: &str) -> Option<Self> {
        let candidate = folded(candidate);
        if SYNONYMS.contains(&(word, candidate.as_str())) {
            return Some(Nearness::Synonym);
        }
        Self::misspelt(word, &candidate).or_else(|| Self::part(word, &candidate))
    }

    fn misspelt(word: &str, candidate: &str) -> Option<Self> {
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
        is_near.then_some(Nearness::Misspelt { distance, similarity })
    }

    /// Looks for the word, or its words, among those of the candidate: `window` is part of `rolling_window`, and
    /// `cert_pem` short for `certificate_pem`.
    fn part(word: &str, candidate: &str) -> Option<Self> {
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
        let rank = (0..=missing).filter(fits).map(rank).min()?;
        Some(Nearness::Part { rank, missing })
    }

    fn compare(&self, other: &Self) -> std::cmp::Ordering {
        match (self, other) {
            (Nearness::Part { rank, missing }, Nearness::Part { rank: other_rank, missing: other_missing }) => {
                (other_rank, other_missing).cmp(&(rank, missing))
            }
            (
                Nearness::Misspelt { distance, similarity },
                Nearness::Misspelt { distance: other_distance, similarity: other_similarity },
            ) => other_distance.cmp(distance).then(similarity.total_cmp(other_similarity)),
            _ => self.class().cmp(&other.class()),
        }
    }

    fn class(&self) -> usize {
        match self {
            Nearness::Part { .. } => 0,
            Nearness::Misspelt { .. } => 1,
            Nearness::Synonym => 2,
        }
    }
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
        .filter_map(|candidate| Some((candidate, Nearness::of(&word, candidate)?)))
        .max_by(|(_, a), (_, b)| a.compare(b))
        .map(|(candidate, _)| candidate)
}

/// The comparisons left for suggestions: a run that has made its share suggests nothing more.
#[derive(Debug)]
pub(crate) struct Suggestions {
    left: Cell<usize>,
}

impl Default for Suggestions {
    fn default() -> Self {
        Self { left: Cell::new(MOST_COMPARISONS) }
    }
}

impl Suggestions {
    /// Like [`nearest`], but returns `None` when there are not enough comparisons left.
    pub(crate) fn nearest<'a>(&self, word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
        if self.left.get() == 0 {
            return None;
        }
        let known: Vec<&str> = known.into_iter().take(self.left.get() + 1).collect();
        let left = self.left.get().checked_sub(known.len());
        self.left.set(left.unwrap_or(0));
        left.and_then(|_| nearest(word, known))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
