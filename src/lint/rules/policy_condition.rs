//! `policy-condition`: a policy expression that never holds, or is not a boolean.
//!
//! The API specification lists no variables or functions, so an unknown one is reported only if it looks like a misspelt
//! known one. Strings are not quoted in messages, because they may be secrets.

mod compare;
mod infer;
mod inferred_type;
mod names;

use std::collections::HashMap;

use super::prelude::*;
use crate::syntax::cel;
use infer::{ConditionFault, ConditionJudge};

pub(crate) static LINT: Lint = Lint {
    name: "policy-condition",
    default: Level::Warn,
    summary: "A policy expression is never true or not a boolean, or has a misspelt variable or function, an operand of the wrong type, an invalid regular expression or an impossible CIDR range.",
    why: "The gateway evaluates the expression for each request. If it fails or is never true, the policy never \
          applies: a `deny` lets everything pass.",
    cure: "Correct the expression so that it is true for the intended traffic.",
    check: LintCheck::Edge(check),
};

fn check(view: &EdgeView<'_>, findings: &mut Findings) {
    // Module sets give many routes the same expressions.
    let mut judged: HashMap<&str, Vec<ConditionFault>> = HashMap::new();
    for placed in placed_policies(view) {
        for (index, text) in placed.policy.expressions.iter().enumerate() {
            for fault in judged.entry(text.as_str()).or_insert_with(|| faults(text)).iter() {
                findings.report(placed.key, placed.expression(index), fault.message.clone()).help = fault.help;
            }
        }
    }
}

/// Judges an expression. `policy-expression` reports syntax errors.
fn faults(text: &str) -> Vec<ConditionFault> {
    let mut judge = ConditionJudge::default();
    if let Ok(root) = cel::parse_whole(text) {
        judge.condition(&root);
    }
    judge.faults
}

/// Whether an expression uses a variable.
pub(super) fn uses_variable(text: &str, variable: &str) -> bool {
    let mut judge = ConditionJudge::default();
    // Most expressions need not be parsed.
    if text.contains(variable)
        && let Ok(root) = cel::parse_whole(text)
    {
        judge.condition(&root);
    }
    judge.variables.contains(variable)
}

/// Whether an expression is true for every request.
pub(super) fn is_always_true(text: &str) -> bool {
    cel::parse_whole(text).is_ok_and(|root| ConditionJudge::default().condition(&root).truth == Some(true))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::module::agent_patterns::LONGEST_PATTERN;

    fn faults_of(text: &str) -> Vec<String> {
        faults(text).into_iter().map(|fault| fault.message).collect()
    }

    #[test]
    fn an_expression_that_never_holds_is_reported_once() {
        let bad = r#"req.Method
            'GET'
            42
            null
            [1, 2]
            {'a': true}
            ['a'][0] + 1
            size(req.URL)
            req.URL.size()
            'a' + 'b'
            req.Method + 'x'
            -1
            req.Method == 'GET' ? 'a' : 'b'
            a ? [1] : {'b': 2}
            string(res.StatusCode)
            req.Method == 'GET' || 'POST'
            true && req.URL
            !(req.Method)
            !req.Method == 'GET'
            req.URL ? true : false
            reqs.Method == 'GET'
            request.Method == 'GET'
            REQ.Method == 'GET'
            method == 'GET'
            url.contains('x')
            req.Methd == 'POST'
            conn.ClientIp == '1.1.1.1'
            conn.GEO.CountryCode == 'DE'
            req.url.contains('x')
            res.Status == 200
            inCidrz(conn.ClientIP, '10.0.0.0/8')
            req.URL.startswith('/a')
            reqq.Method == 5 && reqq.URL == 'x'
            req.URL.matches('(a')
            matches(req.URL, '(a')
            req.URL.matches('^/(?!api)')
            req.URL.matches(r'(a)\1')
            false
            !true
            1 == 2
            ('a' == "b")
            !(true) // off
            false && false
            req.Method == 'GET' && false
            req.Method in []
            req.Method == 5
            req.Method in 'GET'
            res.StatusCode in ['404', '500']
            res.StatusCode == '404'
            res.StatusCode == 999
            res.StatusCode >= 700
            700 <= res.StatusCode
            res.StatusCode < 100
            res.StatusCode in [0, 600]
            res.StatusCode.startsWith('4')
            conn.ClientIP == '10.0.0.0/8'
            conn.ClientIP in ['10.0.0.0/8', '2001:db8::/32']
            conn.ClientIP in ['10.0.0.0/33']
            inCidrRange(conn.ClientIP, '10.0.0.0/33')
            inCidrRange(conn.ClientIP, '10.0.300.0/8')
            inCidrRange(conn.ClientIP, '2001:db8::/129')"#;
        for bad in bad.lines() {
            assert_eq!(faults_of(bad).len(), 1, "{bad}: {:?}", faults_of(bad));
        }
    }

    #[test]
    fn only_what_is_certain_is_reported() {
        let good = r#"true
            !(req.Method in ['GET', 'HEAD'])
            !a && a || a == b ? b : 2
            a ? 1 : true
            f(a) || a.b || a[0] || {'a': 1}.?b || Msg{method: 1}.ok || .method
            res.StatusCode >= 500 && res.StatusCode < 600 && res.StatusCode in [404, 999]
            res.StatusCode != 999 && 100 <= res.StatusCode
            conn.Geo.CountryCode in ['KP', 'SY'] || conn.Geo.Country == 'x' || conn.ClientID == 'x'
            vars.tenant == 'a' && result.ok && req.URL.matches(r'^/[\w-]+/\d{1,3}$')
            inCidrRange(conn.ClientIP, '10.0.0.0/8') || conn.ClientIP.startsWith('198.51.100.')
            inCidrs(conn.ClientIP, ['10.0.0.0/8']) || conn.ClientIP in ['10.0.0.1']
            req.URL.contains('/2026/01') && req.Headers.exists(rec, rec.startsWith('x-'))
            req.Headers.all(url, req, url == req) && req.Cookies.exists(c, c.Name == 'a')
            req.Headers['X-A'].exists(h, h == 'a') && 'x' in req.Headers && has(req.Headers.authorization)
            req.URL.startsWith('/a') && size(req.URL) < 100 && req.ContentLength > 1048576
            conn.TLS.Version < 772 && timestamp(conn.StartTs).getHours() < 6 && rand.double() < 0.1
            conn.Geo.Location.Latitude > 10.0 && getReqHeader('x') == 'y' && hasReqHeader('x') && re.find('a', req.URL)
            req.URL.Path == '/a' && req.Method != null && b'x' == req.Body && res.ContentType.startsWith('text/')
            x == 1 ? 'a' == y : false
            1 == 1.0 || [] == a"#;
        for good in good.lines() {
            assert!(crate::syntax::cel::check(good).is_ok(), "{good}");
            assert!(faults_of(good).is_empty(), "{good}: {:?}", faults_of(good));
        }
    }

    #[test]
    fn a_variable_is_no_field_function_or_argument_of_a_macro() {
        assert!(uses_variable("rec.Method == 'req' && !(conn.ClientIP in res)", "res"));
        assert!(uses_variable("{'a': res.StatusCode}.b && cel.bind(x, 1, x)", "res"));
        for other in ["a.res", "res(a)", "req.Headers.exists(res, res == 'a')", "'res'", "Msg{res: 1}", "a // res"] {
            assert!(!uses_variable(other, "res"), "{other}");
        }
    }

    #[test]
    fn only_an_expression_that_needs_no_request_is_always_true() {
        for always in ["true", "!false", "(true)", "!(1 == 2)", "2 >= 1", "'a' < 'b'", "!!true", "req.Secure || true"] {
            assert!(is_always_true(always), "{always}");
        }
        for unsure in ["", "a", "!a", "1 == 1.0", "a == 1", "true && a", "!(true) || (a)", "1 + 1", "false", "(a"] {
            assert!(!is_always_true(unsure), "{unsure}");
        }
    }

    #[test]
    fn a_long_or_deep_expression_is_judged_or_left_alone() {
        let long = vec!["req.Method == 'GET'"; 10_000].join(" || ");
        assert!(faults_of(&long).is_empty() && faults_of(&format!("{long} || 'POST'")).len() == 1);
        assert!(faults_of(&format!("{}false{}", "(".repeat(10_000), ")".repeat(10_000))).is_empty());
    }

    #[test]
    fn a_pattern_that_is_too_long_is_not_checked() {
        let matching = |pattern: &str| faults_of(&format!("req.URL.matches('{pattern}')"));
        assert!(matching(&"(".repeat(LONGEST_PATTERN + 1)).concat().contains("not checked"));
        assert!(matching(&"a".repeat(LONGEST_PATTERN)).is_empty());
    }
}
