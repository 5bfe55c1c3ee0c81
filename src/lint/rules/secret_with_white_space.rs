//! `secret-with-white-space`: a credential that starts or ends with white space.
//!
//! Final line breaks of a file do not count: they are removed when the file is read (D28).

use super::prelude::*;

pub(crate) static LINT: Lint = Lint {
    name: "secret-with-white-space",
    default: Level::Warn,
    summary: "A webhook secret, client secret or client ID starts or ends with white space.",
    why: "White space around a credential usually comes from copying it, and makes every verification or login fail.",
    cure: "Remove the white space, in the manifest or in the file or variable that the value comes from.",
    check: LintCheck::Edge(check),
};

fn check(view: &EdgeView<'_>, findings: &mut Findings) {
    for (key, route) in view.all::<HttpsEdgeRoute>() {
        let mut inspect = |module: Path, field: &str, text: &str| {
            if text.trim() != text {
                let message = format!("`{field}` starts or ends with white space");
                findings.report(key, module.join(field), message);
            }
        };
        if let Some(webhook) = &route.webhook_verification {
            inspect(Path::from("webhook_verification"), "secret", webhook.secret.expose());
        }
        if let Some(oidc) = &route.oidc {
            inspect(Path::from("oidc"), "client_id", &oidc.client_id);
            inspect(Path::from("oidc"), "client_secret", oidc.client_secret.expose());
        }
        for app in route.oauth.iter().flat_map(|oauth| oauth.provider.apps()) {
            let module = Path::from(["oauth", "provider", app.provider]);
            inspect(module.clone(), "client_id", app.client_id);
            inspect(module, "client_secret", app.client_secret.expose());
        }
    }
}
