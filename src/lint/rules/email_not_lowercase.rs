//! `email-not-lowercase`: an email address or domain that matches no user.

use std::collections::HashMap;

use super::email_format::{is_address, is_domain};
use super::prelude::*;
use super::shared::blank_text::blank_fault;

pub(crate) static LINT: Lint = Lint {
    name: "email-not-lowercase",
    default: Level::Warn,
    summary: "`email_addresses` or `email_domains` of `oauth` contain upper case, white space, duplicates or empty values.",
    why: "Identity providers report email addresses in lower case without spaces, and the comparison is exact, so an \
          entry in any other form may match nobody.",
    cure: "List each email address or domain once, in lower case and without spaces.",
    check: LintCheck::Edge(check),
};

fn check(view: &EdgeView<'_>, findings: &mut Findings) {
    for (key, app) in view.oauth_apps() {
        for (field, texts) in [("email_addresses", app.email_addresses), ("email_domains", app.email_domains)] {
            let list = Path::from(["oauth", "provider", app.provider, field]);
            let mut first = HashMap::new();
            for (index, text) in texts.iter().enumerate() {
                let earlier = *first.entry(text.to_lowercase()).or_insert(index);
                // `email-format` reports the others.
                let has_form = if field == "email_domains" { is_domain(text) } else { is_address(text) };
                let Some(reason) = fault(text, earlier < index, has_form) else { continue };
                let message = format!("entry `{}` of `{field}` {reason}", printable(text));
                let finding = findings.report(key, list.join(index), message);
                if earlier < index {
                    finding.relate(key, list.join(earlier), "first entry");
                }
            }
        }
    }
}

/// Returns what is wrong with an entry, if anything.
fn fault(text: &str, is_repeated: bool, has_form: bool) -> Option<&'static str> {
    if is_repeated {
        return Some("is a duplicate");
    }
    blank_fault(text).or_else(|| (has_form && text.to_lowercase() != text).then_some("contains upper-case letters"))
}
