//! `policy-condition`: a policy expression that never holds, or is not a boolean.
//!
//! The API specification lists no variables or functions, so an unknown one is reported only if it looks like a misspelt
//! known one. Strings are not quoted in messages, because they may be secrets.

mod scan;

use std::net::Ipv6Addr;

use regex_syntax::ast::{ErrorKind, parse::Parser};

use self::scan::ScannedExpression;
use super::{Findings, Level, Lint, World, empty_policy::placed_policies};
use crate::model::{fault::nearest, module::user_agent_filter::LONGEST_PATTERN};
use crate::text::printable;

/// The lint.
pub(crate) static LINT: Lint = Lint {
    name: "policy-condition",
    needs_whole: false,
    default: Level::Warn,
    summary: "A policy expression is never true or not a boolean, or has a misspelt variable, an invalid regular expression or an impossible CIDR range.",
    why: "The gateway evaluates the expression for each request. If it fails or is never true, the policy never \
          applies: a `deny` lets everything pass.",
    example: "\
apiVersion: edgewright/v1
kind: HttpsEdge
metadata: {name: shop}
spec:
  hostports: ['shop.example.com:443']
  routes:
    - name: all
      match_type: path_prefix
      match: /
      backend: {backend_id: bkd_shop}
      policies:
        inbound:
          - name: refuse-trace
            expressions: [\"rec.Method == 'TRACE'\"]
            actions: [{type: deny}]
",
    cure: "Correct the expression so that it is true for the traffic that the policy is for.",
    check,
};

/// The variables in the examples of the documentation.
const VARIABLES: &[&str] = &["conn", "res", "req"];
/// Their full names, which other gateways use.
const LONG_NAMES: &[(&str, &str)] = &[("connection", "conn"), ("request", "req"), ("response", "res")];

fn check(world: &World<'_>, findings: &mut Findings) {
    for placed in placed_policies(world) {
        for (index, text) in placed.policy.expressions.iter().enumerate() {
            let Some(expression) = ScannedExpression::new(text) else { continue };
            for message in faults(&expression) {
                findings.report(placed.key, placed.path.join("expressions").join(index), message);
            }
        }
    }
}

fn faults(expression: &ScannedExpression<'_>) -> Vec<String> {
    let mut found = Vec::new();
    if let Some(value) = expression.not_boolean() {
        found.push(format!("the expression is {value}, not true or false"));
    }
    if expression.constant() == Some(false) {
        found.push("the expression is never true, so the policy never applies".to_owned());
    }
    for name in expression.variables() {
        if let Some(known) = meant(name) {
            found.push(format!("unknown variable `{}`; did you mean `{known}`?", printable(name)));
        }
    }
    for pattern in expression.patterns() {
        if pattern.len() > LONGEST_PATTERN {
            found.push(format!("the pattern of `matches` is longer than {LONGEST_PATTERN} bytes and is not checked"));
        } else if let Some(reason) = pattern_fault(pattern).or_else(|| unsupported(pattern)) {
            found.push(format!("the pattern of `matches` is not a regular expression: {reason}"));
        }
    }
    found.extend(expression.texts().into_iter().filter_map(cidr_fault).map(str::to_owned));
    found
}

/// Returns the variable that a misspelt one probably means.
fn meant(name: &str) -> Option<&'static str> {
    let long = LONG_NAMES.iter().find_map(|(long, known)| (*long == name).then_some(*known));
    let misspelt =
        || nearest(name, VARIABLES.iter().copied()).filter(|near| strsim::damerau_levenshtein(near, name) == 1);
    long.or_else(misspelt)
}

/// Whether an expression uses a variable.
pub(super) fn uses_variable(text: &str, variable: &str) -> bool {
    ScannedExpression::new(text).is_some_and(|expression| expression.variables().contains(variable))
}

/// Whether an expression is true for every request.
pub(super) fn is_always_true(text: &str) -> bool {
    ScannedExpression::new(text).is_some_and(|expression| expression.constant() == Some(true))
}

/// Returns what `matches` does not support in a pattern that is valid elsewhere: CEL defines its syntax as that of RE2.
fn unsupported(pattern: &str) -> Option<String> {
    let error = Parser::new().parse(pattern).err()?;
    let is_unsupported = matches!(error.kind(), ErrorKind::UnsupportedLookAround | ErrorKind::UnsupportedBackreference);
    // Between `\Q` and `\E`, everything is literal.
    (is_unsupported && !pattern.contains("\\Q")).then(|| error.kind().to_string())
}

/// Returns why a pattern is invalid. Only errors in every dialect count, because the gateway's is unknown.
pub(super) fn pattern_fault(pattern: &str) -> Option<String> {
    if pattern.len() > LONGEST_PATTERN || pattern.contains("\\Q") {
        return None;
    }
    let error = Parser::new().parse(pattern).err()?;
    // Dialects differ in what a bracket in a class means.
    let classes = pattern.matches('[').count();
    let is_common = match error.kind() {
        ErrorKind::ClassUnclosed | ErrorKind::ClassRangeInvalid => classes == 1,
        ErrorKind::EscapeUnexpectedEof
        | ErrorKind::GroupUnclosed
        | ErrorKind::GroupUnopened
        | ErrorKind::RepetitionCountInvalid
        | ErrorKind::RepetitionMissing => classes == 0,
        _ => false,
    };
    is_common.then(|| error.kind().to_string())
}

/// Returns what is wrong with a text that looks like a CIDR range. Any other text is fine.
pub(super) fn cidr_fault(text: &str) -> Option<&'static str> {
    let (address, length) = text.trim().split_once('/')?;
    let length = small_number(length)?;
    let bytes: Option<Vec<u32>> = address.split('.').map(small_number).collect();
    match bytes {
        Some(bytes) if bytes.len() == 4 => {
            if bytes.iter().any(|byte| *byte > 255) {
                Some("the IPv4 address of the CIDR range has a number above 255")
            } else {
                (length > 32).then_some("the prefix of an IPv4 CIDR range is longer than 32 bits")
            }
        }
        _ if address.parse::<Ipv6Addr>().is_ok() => {
            (length > 128).then_some("the prefix of an IPv6 CIDR range is longer than 128 bits")
        }
        _ => None,
    }
}

fn small_number(text: &str) -> Option<u32> {
    let is_number = text.len() <= 4 && text.bytes().all(|byte| byte.is_ascii_digit());
    if is_number { text.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults_of(text: &str) -> Vec<String> {
        ScannedExpression::new(text).map(|it| faults(&it)).unwrap_or_default()
    }

    #[test]
    fn an_expression_that_never_holds_is_reported_once() {
        for bad in [
            "req.Method",
            "reqs.Method == 'GET'",
            "request.Method == 'GET'",
            "req.URL.matches('(a')",
            "req.URL.matches('^/(?!api)')",
            r"req.URL.matches(r'(a)\1')",
            "false",
            "1 == 2",
            "req.Method == 'GET' ? 'a' : 'b'",
            "inCidrRange(conn.ClientIP, '10.0.0.0/33')",
            "inCidrRange(conn.ClientIP, '10.0.300.0/8')",
            "inCidrRange(conn.ClientIP, '2001:db8::/129')",
        ] {
            assert_eq!(faults_of(bad).len(), 1, "{bad}: {:?}", faults_of(bad));
        }
        for good in [
            "!(req.Method in ['GET', 'HEAD'])",
            "res.StatusCode >= 500",
            "conn.Geo.CountryCode in ['KP', 'SY']",
            "vars.tenant == 'a' && result.ok && req.URL.matches(r'^/[\\w-]+/\\d{1,3}$')",
            "inCidrRange(conn.ClientIP, '10.0.0.0/8') || conn.ClientIP.startsWith('198.51.100.')",
            "req.URL.contains('/2026/01') && req.Headers.exists(rec, rec.startsWith('x-'))",
        ] {
            assert!(faults_of(good).is_empty(), "{good}: {:?}", faults_of(good));
        }
    }

    #[test]
    fn a_pattern_that_is_too_long_is_not_checked() {
        let matching = |pattern: &str| faults_of(&format!("req.URL.matches('{pattern}')"));
        assert!(matching(&"(".repeat(LONGEST_PATTERN + 1)).concat().contains("not checked"));
        assert!(matching(&"a".repeat(LONGEST_PATTERN)).is_empty());
    }

    #[test]
    fn a_pattern_is_invalid_only_if_every_dialect_says_so() {
        for bad in ["(a", "a)", "*a", "a{2,1}", "a\\", "[z-a]", "[a"] {
            assert!(pattern_fault(bad).is_some(), "{bad}");
        }
        for good in ["", "^/a(b|c)*$", "a{", "[[]", "[a[]", "\\Qa(b\\E", "(?=a)", "\\p{Greek}", "[(]"] {
            assert!(pattern_fault(good).is_none(), "{good}");
        }
    }
}
