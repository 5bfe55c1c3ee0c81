//! `open-login`: an `oauth` login that admits everyone with an account at the provider.

use super::prelude::*;

pub(crate) static LINT: Lint = Lint {
    name: "open-login",
    default: Level::Allow,
    summary: "An `oauth` provider has no allow list.",
    why: "Without `email_addresses`, `email_domains`, `teams` or `organizations`, everyone with an account at the \
          provider has access. This is right for a customer login, but opens an internal service to the world.",
    cure: "Add the domain of your organization to `email_domains`, or list the users who have access.",
    check: LintCheck::Edge(check),
};

fn check(view: &EdgeView<'_>, findings: &mut Findings) {
    for (key, oauth) in view.route_modules(|route| route.oauth.as_deref()) {
        let github = oauth.provider.github.as_ref();
        let has_members = github.is_some_and(|app| !app.teams.is_empty() || !app.organizations.is_empty());
        for app in oauth.provider.apps() {
            if app.email_addresses.is_empty() && app.email_domains.is_empty() && !has_members {
                let path = Path::from(["oauth", "provider", app.provider]);
                let message = format!("everyone with an account at `{}` has access", app.provider);
                findings.report(key, path, message).target = FaultTarget::Key;
            }
        }
    }
}
