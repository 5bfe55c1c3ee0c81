//! `oidc-incomplete`: an `oidc` module without the settings that a login needs.

use http::Uri;

use super::{jwt_incomplete::alternatives, malformed_provider_url::is_unfinished, prelude::*};

pub(crate) static LINT: Lint = Lint {
    name: "oidc-incomplete",
    default: Level::Deny,
    summary: "An `oidc` module lacks `issuer`, `client_id` or `client_secret`, or its `issuer` is not the https URL of a provider.",
    why: "The issuer locates the provider, and the client ID and secret identify the edge to it. Nobody can log in \
          when one of them is missing. OpenID Connect requires an https issuer without a query and fragment: the edge \
          appends `/.well-known/openid-configuration` to it.",
    cure: "Set `issuer` to the provider's https URL, and `client_id` and `client_secret` to the values that the provider issued.",
    check: LintCheck::Edge(check),
};

fn check(view: &EdgeView<'_>, findings: &mut Findings) {
    for (key, oidc) in view.route_modules(|route| route.oidc.as_deref()).filter(|(_, oidc)| oidc.enabled) {
        let fields = [
            ("issuer", oidc.issuer.is_empty()),
            ("client_id", oidc.client_id.is_empty()),
            ("client_secret", oidc.client_secret.is_empty()),
        ];
        let missing: Vec<&str> = fields.into_iter().filter(|(_, missing)| *missing).map(|(field, _)| field).collect();
        match missing.as_slice() {
            [] => {}
            [field] => {
                findings.report(key, ["oidc", *field], format!("`{field}` is missing, so nobody can log in"));
            }
            several => {
                let fields: Vec<String> = several.iter().map(|field| format!("`{field}`")).collect();
                let fields: Vec<&str> = fields.iter().map(String::as_str).collect();
                let message = format!("`oidc` has no {}, so nobody can log in", alternatives(&fields));
                findings.report(key, ["oidc"], message).target = FaultTarget::Key;
            }
        }
        if is_unfinished(&oidc.issuer) {
            continue;
        }
        if !oidc.issuer.is_empty() && !is_https_url(&oidc.issuer) {
            findings.report(key, ["oidc", "issuer"], "`issuer` must be an https URL");
        } else if let Some(part) = extra_part(&oidc.issuer) {
            findings.report(key, ["oidc", "issuer"], format!("`issuer` must not have {part}"));
        }
    }
}

/// Returns the part of a URL that an issuer cannot have (OpenID Connect Discovery 1.0, section 2), if any.
fn extra_part(url: &str) -> Option<&'static str> {
    if url.contains('#') {
        Some("a fragment")
    } else if url.contains('?') {
        Some("a query")
    } else {
        url.contains("/.well-known/").then_some("the path of the discovery document")
    }
}

/// Whether a text is an https URL with a host.
pub(super) fn is_https_url(text: &str) -> bool {
    let is_https = |uri: Uri| uri.scheme_str() == Some("https") && uri.host().is_some_and(|host| !host.is_empty());
    text.parse::<Uri>().is_ok_and(is_https) && !text.contains(|c: char| c.is_whitespace() || c.is_control())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_issuer_is_a_plain_url() {
        for (url, part) in [
            ("https://id.example.com/realms/a", None),
            ("https://id.example.com/?tenant=a#b", Some("a fragment")),
            ("https://id.example.com?tenant=a", Some("a query")),
            ("https://id.example.com/.well-known/openid-configuration", Some("the path of the discovery document")),
        ] {
            assert_eq!(extra_part(url), part, "{url}");
        }
    }

    #[test]
    fn an_https_url_has_the_scheme_and_a_host() {
        for good in ["https://id.example.com", "HTTPS://id.example.com:8443/realms/a?b#c", "https://[::1]/"] {
            assert!(is_https_url(good), "{good}");
        }
        for bad in [
            "",
            "id.example.com",
            "http://id.example.com",
            "https:/a",
            "https://",
            "https:///",
            "https://a b",
            "https://:1",
            "https://a/\u{2003}",
        ] {
            assert!(!is_https_url(bad), "{bad}");
        }
    }
}
