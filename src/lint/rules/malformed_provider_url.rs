//! `malformed-provider-url`: the URL of an issuer or key set that cannot be right as written.
//!
//! URLs are not quoted in messages, because user information is a secret.

use std::collections::HashSet;

use super::prelude::*;
use crate::{lint::clean_modules::CleanModules, model::module::jwt_validation::JwtValidation};

pub(crate) static LINT: Lint = Lint {
    name: "malformed-provider-url",
    default: Level::Warn,
    summary: "An issuer or key set URL of `oidc` or `jwt_validation` has a placeholder, a second scheme or user information.",
    why: "Issuers are compared as written, and key sets are fetched from their URL. A placeholder such as `{tenant}` \
          was meant to be replaced, and `https://https://…` has the host `https`. Tokens never have an issuer with \
          user information.",
    cure: "Copy the URL from the provider's configuration, with your own tenant or realm in place of the placeholder.",
    check: LintCheck::Edge(check),
};

fn check(view: &EdgeView<'_>, findings: &mut Findings) {
    let mut clean_modules = CleanModules::default();
    for (key, route) in view.all::<HttpsEdgeRoute>() {
        if let Some(oidc) = route.oidc.as_deref() {
            clean_modules.judge(oidc, findings, |findings| {
                check_urls(key, [(Path::from(["oidc", "issuer"]), oidc.issuer.as_str())], findings);
            });
        }
        if let Some(jwt) = route.jwt_validation.as_deref() {
            clean_modules.judge(jwt, findings, |findings| check_urls(key, urls_of(jwt), findings));
        }
    }
}

/// The URLs of issuers and key sets, with their places.
fn urls_of(jwt: &JwtValidation) -> Vec<(Path, &str)> {
    let module = Path::from("jwt_validation");
    let issuers = module.join("issuer").join("allow_list");
    let allowed = jwt.issuer.allow_list.iter().enumerate();
    let allowed = allowed.map(|(index, it)| (issuers.join(index).join("value"), it.value.as_str()));
    let key_sets = module.join("jws").join("keys").join("sources").join("additional_jkus");
    let addresses = jwt.jws.keys.sources.additional_jkus.iter().enumerate();
    allowed.chain(addresses.map(|(index, it)| (key_sets.join(index), it.as_str()))).collect()
}

fn check_urls<'u>(key: &Key, urls: impl IntoIterator<Item = (Path, &'u str)>, findings: &mut Findings) {
    // `jwt-list-entry` reports duplicates. The length of the path tells the lists apart.
    let mut reported = HashSet::new();
    for (path, url) in urls {
        if let Some((what, help)) = flaw(url)
            && reported.insert((path.0.len(), url))
        {
            findings.report(key, path, format!("the URL has {what}")).help = help;
        }
    }
}

/// An error in a URL, and how to fix it if the cure of the lint also covers other cases.
type UrlFlaw = (&'static str, Option<&'static str>);

const PLACEHOLDER: UrlFlaw = ("a placeholder", None);
const TWO_SCHEMES: UrlFlaw = ("two schemes", Some("Remove the first `https://` or `http://`."));
const USER_INFORMATION: UrlFlaw =
    ("user information", Some("Remove everything between `://` and the host, including the `@`."));

/// Whether a text is no URL yet, so that nothing else about it needs to be reported.
pub(super) fn is_unfinished(url: &str) -> bool {
    flaw(url).is_some_and(|flaw| flaw != USER_INFORMATION)
}

/// Returns what cannot be right in a URL, if anything.
fn flaw(url: &str) -> Option<UrlFlaw> {
    if url.contains(['{', '}', '<', '>']) {
        return Some(PLACEHOLDER);
    }
    let (_, rest) = url.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if matches!(authority.to_ascii_lowercase().as_str(), "http:" | "https:") {
        Some(TWO_SCHEMES)
    } else {
        authority.contains('@').then_some(USER_INFORMATION)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flaw_is_a_placeholder_a_second_scheme_or_user_information() {
        for (url, expected) in [
            ("https://id.example.com/{tenant}/v2.0", Some(PLACEHOLDER)),
            ("https://<your-domain>/", Some(PLACEHOLDER)),
            ("https://https://id.example.com", Some(TWO_SCHEMES)),
            ("https://HTTP://id.example.com", Some(TWO_SCHEMES)),
            ("https://u:p@id.example.com/a", Some(USER_INFORMATION)),
            ("https://id.example.com/a@b?c=https://d", None),
            ("https://id.example.com:8443", None),
            ("shop", None),
            ("", None),
        ] {
            assert_eq!(flaw(url), expected, "{url}");
        }
    }
}
