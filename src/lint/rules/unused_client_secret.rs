//! `unused-client-secret`: a client secret without a client ID.

use super::prelude::*;

pub(crate) static LINT: Lint = Lint {
    name: "unused-client-secret",
    default: Level::Warn,
    summary: "An `oauth` provider has a `client_secret` but no `client_id`.",
    why: "Without `client_id`, users log in through the service's managed app, and the secret of your own app is not \
          used. Users see another app than intended, and its restrictions apply.",
    cure: "Set `client_id` to your app's ID, or remove `client_secret`.",
    check: LintCheck::Edge(check),
};

fn check(view: &EdgeView<'_>, findings: &mut Findings) {
    for (key, app) in view.oauth_apps() {
        if app.client_id.is_empty() && !app.client_secret.is_empty() {
            let path = Path::from(["oauth", "provider", app.provider, "client_secret"]);
            findings.report(key, path, "`client_secret` has no effect without `client_id`").target = FaultTarget::Key;
        }
    }
}
