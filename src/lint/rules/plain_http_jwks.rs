//! `plain-http-jwks`: signing keys that are fetched without encryption.

use std::collections::HashSet;

use super::{malformed_provider_url::is_unfinished, oidc_incomplete::is_https_url, prelude::*};
use crate::model::module::jwt_validation::JwtValidation;

pub(crate) static LINT: Lint = Lint {
    name: "plain-http-jwks",
    default: Level::Warn,
    summary: "A key set URL or an issuer of `jwt_validation` is not an https URL.",
    why: "Anyone who can alter the response of a key set URL can sign tokens that the gateway accepts. Only https \
          prevents that.",
    cure: "Use an `https://` URL.",
    check: LintCheck::Edge(check),
};

fn check(view: &EdgeView<'_>, findings: &mut Findings) {
    view.judge_modules(findings, |route| route.jwt_validation.as_deref(), check_module);
}

fn check_module(key: &Key, jwt: &JwtValidation, findings: &mut Findings) {
    let issuers = Path::from(["jwt_validation", "issuer", "allow_list"]);
    // `jwt-list-entry` reports duplicates.
    let mut reported = HashSet::new();
    for (index, issuer) in jwt.issuer.allow_list.iter().enumerate() {
        if is_plain(&issuer.value) && reported.insert(issuer.value.as_str()) {
            findings.report(key, issuers.join(index).join("value"), "the issuer must be an https URL");
        }
    }
    let key_sets = ["jwt_validation", "jws", "keys", "sources", "additional_jkus"];
    findings.report_entries(key, &key_sets, &jwt.jws.keys.sources.additional_jkus, |address| {
        is_plain(address).then(|| "the key set URL must be an https URL".to_owned())
    });
}

/// Whether a value is a URL without https. `jwt-list-entry` reports empty values and white space, and
/// `malformed-provider-url` reports placeholders.
fn is_plain(text: &str) -> bool {
    let is_blemished = text.is_empty() || text.contains(char::is_whitespace) || is_unfinished(text);
    !is_blemished && !is_https_url(text)
}
