//! `team-format`: a GitHub team or organization that is not a slug.

use std::collections::HashSet;

use super::{Findings, Level, Lint, Scope, World};
use crate::model::{fault::Path, kind::https_edge_route::HttpsEdgeRoute};
use crate::text::printable;

/// The lint.
pub(crate) static LINT: Lint = Lint {
    name: "team-format",
    needs_whole: false,
    scope: Scope::Edge,
    default: Level::Deny,
    summary: "An entry of `teams` under oauth's `github` is not in the form `org/team`, or one of `organizations` is not a slug.",
    why: "A team slug is unique only within its organization, so GitHub resolves only `org/team`. A team or \
          organization in any other form matches nobody.",
    example: "\
apiVersion: edgewright/v1
kind: HttpsEdge
metadata: {name: shop}
spec:
  hostports: ['shop.example.com:443']
  routes:
    - name: console
      match_type: path_prefix
      match: /console
      backend: {backend_id: bkd_shop}
      oauth:
        provider:
          github:
            teams: [platform]
",
    cure: "Use the slugs of the organization and the team, such as `example-shop/platform`.",
    check,
};

fn check(world: &World<'_>, findings: &mut Findings) {
    for (key, route) in world.all::<HttpsEdgeRoute>() {
        let Some(github) = route.oauth.as_ref().and_then(|oauth| oauth.provider.github.as_ref()) else { continue };
        let app = Path::root().join("oauth").join("provider").join("github");
        // `duplicate-entry` reports duplicates.
        let mut told = HashSet::new();
        for (index, team) in github.teams.iter().enumerate() {
            if !is_team(team) && told.insert(team.as_str()) {
                let message = format!("`{}` is not a GitHub team in the form `org/team`", printable(team));
                findings.report(key, app.join("teams").join(index), message);
            }
        }
        let mut told = HashSet::new();
        for (index, name) in github.organizations.iter().enumerate() {
            if !is_slug(name) && told.insert(name.as_str()) {
                let message = format!("`{}` is not the slug of a GitHub organization", printable(name));
                findings.report(key, app.join("organizations").join(index), message);
            }
        }
    }
}

/// Whether a text is two slugs joined by a slash.
fn is_team(text: &str) -> bool {
    text.split_once('/').is_some_and(|(org, team)| is_slug(org) && is_slug(team))
}

fn is_slug(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_team_is_two_slugs() {
        assert!(is_team("example-shop/release-managers"));
        for bad in ["", "/", "platform", "a/", "/a", "a/b/c", "@a/b", "a / b", "https://github.com/orgs/a/teams/b"] {
            assert!(!is_team(bad), "{bad}");
        }
        assert!(is_slug("example-shop"));
        for bad in ["", "Example Shop", "@example-shop", "example-shop/", "https://github.com/example-shop"] {
            assert!(!is_slug(bad), "{bad}");
        }
    }
}
