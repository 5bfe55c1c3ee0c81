//! `jwt-incomplete`: a `jwt_validation` module that lacks what a token is checked against.

use super::prelude::*;

pub(crate) static LINT: Lint = Lint {
    name: "jwt-incomplete",
    default: Level::Warn,
    summary: "A `jwt_validation` module has no issuer, audience, token, algorithm or key URL.",
    why: "A request is admitted if its token is from an allowed issuer, for an allowed audience, with an allowed \
          algorithm and a key from a known URL. If one of these lists is empty, the module either skips the check, and \
          so accepts for example tokens for other applications, or rejects every request.",
    cure: "Fill `issuer.allow_list`, `audience.allow_list`, `http.tokens`, `jws.allowed_algorithms` and \
           `jws.keys.sources.additional_jkus`, or remove the module.",
    check: LintCheck::Edge(check),
};

fn check(view: &EdgeView<'_>, findings: &mut Findings) {
    for (key, jwt) in view.route_modules(|route| route.jwt_validation.as_deref()) {
        let parts: [(&str, &[&str], bool); 5] = [
            ("issuer", &["issuer", "allow_list"], jwt.issuer.allow_list.is_empty()),
            ("audience", &["audience", "allow_list"], jwt.audience.allow_list.is_empty()),
            ("token", &["http", "tokens"], jwt.http.tokens.is_empty()),
            ("algorithm", &["jws", "allowed_algorithms"], jwt.jws.allowed_algorithms.is_empty()),
            (
                "key URL",
                &["jws", "keys", "sources", "additional_jkus"],
                jwt.jws.keys.sources.additional_jkus.is_empty(),
            ),
        ];
        let missing: Vec<_> = parts.into_iter().filter(|(.., is_missing)| *is_missing).collect();
        let names: Vec<&str> = missing.iter().map(|(name, ..)| *name).collect();
        let module = Path::from("jwt_validation");
        let (path, target) = match missing.as_slice() {
            [] => continue,
            [(_, steps, _)] => (steps.iter().fold(module, |path, step| path.join(*step)), FaultTarget::Value),
            _ => (module, FaultTarget::Key),
        };
        findings.report(key, path, format!("`jwt_validation` has no {}", alternatives(&names))).target = target;
    }
}

/// Joins names: `a, b or c`.
pub(super) fn alternatives(names: &[&str]) -> String {
    match names.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        _ => names.concat(),
    }
}
