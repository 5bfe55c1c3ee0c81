//! `webhook-secret`: a webhook secret that does not fit how its provider signs.
//!
//! Only what the providers document is judged: most of them accept any text as a shared secret.

use super::prelude::*;
use crate::model::module::webhook_verification::{WITH_PUBLIC_KEY, WITHOUT_SECRET};
use crate::syntax::x509::is_ecdsa_public_key;

pub(crate) static LINT: Lint = Lint {
    name: "webhook-secret",
    default: Level::Warn,
    summary: "A webhook secret is set for `sns`, or the one for `sendgrid` is not an ECDSA public key.",
    why: "`sns` signs with a certificate that it publishes, so a secret has no effect. `sendgrid` signs with an ECDSA \
          key, and the secret must be its public key. With anything else, such as an API key, no webhook passes.",
    cure: "Remove the secret for `sns`. For `sendgrid`, use the verification key from the settings of its event webhook.",
    check: LintCheck::Edge(check),
};

fn check(view: &EdgeView<'_>, findings: &mut Findings) {
    for (key, webhook) in view.route_modules(|route| route.webhook_verification.as_deref()) {
        if webhook.secret.is_empty() {
            continue;
        }
        let path = ["webhook_verification", "secret"];
        if webhook.provider.eq_ignore_ascii_case(WITHOUT_SECRET) {
            findings.report(key, path, format!("the provider `{WITHOUT_SECRET}` uses no secret")).help =
                Some("Remove `secret`.");
        } else if webhook.provider.eq_ignore_ascii_case(WITH_PUBLIC_KEY)
            && !webhook.secret.is_unknown()
            && !is_ecdsa_public_key(webhook.secret.expose())
        {
            let message = format!("the provider `{WITH_PUBLIC_KEY}` needs an ECDSA public key as `secret`");
            findings.report(key, path, message).help =
                Some("Use the verification key from the settings of SendGrid's event webhook.");
        }
    }
}
