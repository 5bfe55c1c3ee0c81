//! `scope-format`: login scopes that a provider does not understand.

use super::prelude::*;

pub(crate) static LINT: Lint = Lint {
    name: "scope-format",
    default: Level::Warn,
    summary: "An entry of `scopes` is empty or contains white space, or the scopes of `oidc` lack `openid`.",
    why: "Scopes are joined with spaces and contain none themselves (RFC 6749, section 3.3). A request without `openid` \
          is not an OpenID Connect request, so the provider returns no ID token and nobody can log in.",
    cure: "List each scope as a separate entry, such as `[openid, email]`.",
    check: LintCheck::Edge(check),
};

/// The scope of every OpenID Connect request.
const OPENID: &str = "openid";

fn check(view: &EdgeView<'_>, findings: &mut Findings) {
    for (key, app) in view.oauth_apps() {
        findings.report_entries(key, &["oauth", "provider", app.provider, "scopes"], app.scopes, fault);
    }
    for (key, oidc) in view.route_modules(|route| route.oidc.as_deref()) {
        findings.report_entries(key, &["oidc", "scopes"], &oidc.scopes, fault);
        // An entry with several scopes is reported already. Without scopes, the edge chooses them.
        let has_openid = oidc.scopes.iter().any(|scope| scope.split_whitespace().any(|word| word == OPENID));
        if !oidc.scopes.is_empty() && !has_openid {
            let finding = findings.report(key, ["oidc", "scopes"], "the scopes of `oidc` must include `openid`");
            finding.help = Some("Add `openid` to `scopes`.");
        }
    }
}

fn fault(scope: &str) -> Option<String> {
    if scope.is_empty() {
        return Some("the scope is empty".to_owned());
    }
    let message = || format!("the scope `{}` contains white space", printable(scope));
    scope.contains(char::is_whitespace).then(message)
}
