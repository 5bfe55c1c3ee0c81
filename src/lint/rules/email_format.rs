//! `email-format`: an email address or domain in a form that matches no user.
//!
//! Upper case, white space and empty values are the subject of `email-not-lowercase`.

use super::prelude::*;

pub(crate) static LINT: Lint = Lint {
    name: "email-format",
    default: Level::Warn,
    summary: "An entry of `email_addresses` is not an email address, or an entry of `email_domains` is not a domain.",
    why: "The domain of a user's address must equal an entry of `email_domains`, and there are no wildcards. So \
          `@example.com` and `*.example.com` match nobody, and neither does an address without `@`.",
    cure: "Use the form `example.com` for a domain and `jo@example.com` for an address. List each subdomain.",
    check: LintCheck::Edge(check),
};

/// Whether a text has the form that its list needs.
type HasForm = fn(&str) -> bool;

fn check(view: &EdgeView<'_>, findings: &mut Findings) {
    for (key, app) in view.oauth_apps() {
        let lists: [(&str, &[String], HasForm, &str); 2] = [
            ("email_addresses", app.email_addresses, is_address, "an email address"),
            ("email_domains", app.email_domains, is_domain, "an email domain"),
        ];
        for (field, texts, has_form, what) in lists {
            findings.report_entries(key, &["oauth", "provider", app.provider, field], texts, |text| {
                let judged_elsewhere = text.is_empty() || text.contains(char::is_whitespace);
                let message = || format!("`{}` is not {what}", printable(text));
                (!judged_elsewhere && !has_form(text)).then(message)
            });
        }
    }
}

/// Whether a text has a local part and a domain. The local part is up to the provider, but no provider gives out `*`, and
/// only a quoted one contains `@`.
pub(super) fn is_address(text: &str) -> bool {
    let is_local = |local: &str| !local.is_empty() && local != "*" && (local.starts_with('"') || !local.contains('@'));
    text.rsplit_once('@').is_some_and(|(local, domain)| is_local(local) && is_domain(domain))
}

/// Whether a text can be the part after `@`. Scripts other than Latin are allowed. Addresses from login providers have a
/// domain with a dot.
pub(super) fn is_domain(text: &str) -> bool {
    text.contains('.')
        && text.split('.').all(|label| !label.is_empty())
        && !text.contains(['@', '/', ':', ',', ';', '*'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_domains_have_a_form() {
        for good in ["example.com", "mail.example.co.uk", "bücher.example", "xn--bcher-kva.example"] {
            assert!(is_domain(good), "{good}");
            assert!(is_address(&format!("jo.doe+test@{good}")), "{good}");
        }
        for bad in [
            "",
            "@example.com",
            "jo@example.com",
            ".example.com",
            "example.com.",
            "https://example.com",
            "a,b",
            "*",
            "*.example.com",
            "acme",
        ] {
            assert!(!is_domain(bad), "{bad}");
        }
        for bad in [
            "",
            "jo",
            "@example.com",
            "jo@",
            "jo@.com",
            "jo@a.com,mo@b.com,",
            "jo@@a.com",
            "jo@acme",
            "*@example.com",
            "jo@*.com",
        ] {
            assert!(!is_address(bad), "{bad}");
        }
    }
}
