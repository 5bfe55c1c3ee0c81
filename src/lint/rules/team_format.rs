//! `team-format`: a GitHub organization that is not a slug. The format of teams is a rule of the module.

use super::prelude::*;
use crate::model::module::oauth::is_github_slug;

pub(crate) static LINT: Lint = Lint {
    name: "team-format",
    default: Level::Deny,
    summary: "An entry of `organizations` under `github` of an enabled `oauth` is not a slug.",
    why: "GitHub identifies organizations by their slugs. Any other text, such as a display name or a URL, matches \
          nobody.",
    cure: "Use the slug of the organization, such as `example-shop`.",
    check: LintCheck::Edge(check),
};

fn check(view: &EdgeView<'_>, findings: &mut Findings) {
    for (key, oauth) in view.route_modules(|route| route.oauth.as_deref()).filter(|(_, oauth)| oauth.enabled) {
        let Some(github) = &oauth.provider.github else { continue };
        let list = ["oauth", "provider", "github", "organizations"];
        findings.report_entries(key, &list, &github.organizations, |name| {
            let message = || format!("`{}` is not the slug of a GitHub organization", printable(name));
            (!is_github_slug(name)).then(message)
        });
    }
}
