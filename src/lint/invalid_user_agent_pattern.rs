//! `invalid-user-agent-pattern`: a pattern that is not a valid regular expression.

use crate::text::printable;
use regex::Regex;

use super::{Findings, Level, Lint, World};
use crate::model::{fault::Path, kind::https_edge_route::HttpsEdgeRoute};

/// The lint.
pub static LINT: Lint = Lint {
    name: "invalid-user-agent-pattern",
    default: Level::Warn,
    summary: "An `allow` or `deny` entry of `user_agent_filter` is not a valid regular expression.",
    why: "The entries are regular expressions. An invalid one matches no user agent, so it neither allows nor denies anyone.",
    example: "\
apiVersion: edgewright/v1
kind: HttpsEdge
metadata: {name: shop}
spec:
  hostports: ['shop.example.com:443']
  routes:
    - name: all
      match_type: path_prefix
      match: /
      backend: {backend_id: bkd_shop}
      user_agent_filter:
        deny: ['(bot|crawler']
",
    cure: "Fix the regular expression; escape literal characters such as `(` or `+` with `\\`.",
    check,
};

fn check(world: &World<'_>, findings: &mut Findings) {
    for (key, route) in world.all::<HttpsEdgeRoute>() {
        let Some(filter) = &route.user_agent_filter else { continue };
        for (field, patterns) in [("allow", &filter.allow), ("deny", &filter.deny)] {
            let list = Path::root().join("user_agent_filter").join(field);
            for (index, pattern) in patterns.iter().enumerate() {
                if let Err(error) = Regex::new(pattern) {
                    let message =
                        format!("`{}` is not a valid regular expression: {}", printable(pattern), reason(&error));
                    findings.report(key, list.join(index), message);
                }
            }
        }
    }
}

/// Returns the last line of an error, which has the reason; the lines before it show the pattern.
fn reason(error: &regex::Error) -> String {
    let text = error.to_string();
    let line = text.lines().last().unwrap_or_default();
    line.trim().trim_start_matches("error: ").trim_end_matches('.').to_owned()
}
