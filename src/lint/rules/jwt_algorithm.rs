//! `jwt-algorithm`: a signature algorithm that lets anybody forge tokens, or that does not exist.

use std::collections::HashSet;

use super::prelude::*;
use crate::model::Suggestions;

pub(crate) static LINT: Lint = Lint {
    name: "jwt-algorithm",
    default: Level::Warn,
    summary: "`allowed_algorithms` includes `none`, an unknown algorithm, or an HMAC algorithm together with public keys.",
    why: "A token with the algorithm `none` is unsigned. HMAC signs and verifies with the same key, so anyone can sign \
          tokens with a key from a public key set. No token has an unknown algorithm; names are case-sensitive.",
    cure: "Allow only algorithms with a public key, such as `RS256` or `ES256`.",
    check: LintCheck::Edge(check),
};

/// The signature algorithms for tokens: RFC 7518, RFC 8037, RFC 8812 and RFC 9864.
const ALGORITHMS: &[&str] = &[
    "ES256", "ES256K", "ES384", "ES512", "Ed25519", "Ed448", "EdDSA", "HS256", "HS384", "HS512", "PS256", "PS384",
    "PS512", "RS256", "RS384", "RS512",
];

fn check(view: &EdgeView<'_>, findings: &mut Findings) {
    for (key, jwt) in view.route_modules(|route| route.jwt_validation.as_deref()) {
        let jws = Path::from(["jwt_validation", "jws"]);
        let has_key_set = !jwt.jws.keys.sources.additional_jkus.is_empty();
        // `jwt-list-entry` reports duplicates.
        let mut seen = HashSet::new();
        for (index, algorithm) in jwt.jws.allowed_algorithms.iter().enumerate() {
            let is_usual = ALGORITHMS.contains(&algorithm.as_str()) && !is_hmac(algorithm);
            if is_usual || !seen.insert(algorithm.as_str()) {
                continue;
            }
            let at = jws.join("allowed_algorithms").join(index);
            if algorithm.eq_ignore_ascii_case("none") {
                findings.report(key, at, format!("`{algorithm}` accepts unsigned tokens"));
            } else if has_key_set && is_hmac(algorithm) {
                let name = printable(algorithm);
                let message = format!("`{name}` requires a shared secret, but the keys are public");
                let finding = findings.report(key, at, message);
                let key_set = jws.join("keys").join("sources").join("additional_jkus");
                finding.relate(key, key_set, "the public keys");
            } else if let Some(message) = algorithm_fault(algorithm, &findings.suggestions) {
                findings.report(key, at, message);
            }
        }
    }
}

/// Whether an algorithm is `HS256`, `HS384` or `HS512` (RFC 7518, section 3.2), or starts like them.
fn is_hmac(algorithm: &str) -> bool {
    algorithm.get(..2).is_some_and(|start| start.eq_ignore_ascii_case("HS"))
}

/// Returns a message about an unknown algorithm. `jwt-list-entry` reports empty names and white space.
fn algorithm_fault(algorithm: &str, suggestions: &Suggestions) -> Option<String> {
    if ALGORITHMS.contains(&algorithm) || algorithm.is_empty() || algorithm.contains(char::is_whitespace) {
        return None;
    }
    Some(unknown_word("algorithm", algorithm, suggestions.nearest(algorithm, ALGORITHMS.iter().copied())))
}
