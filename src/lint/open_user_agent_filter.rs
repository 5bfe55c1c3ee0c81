//! `open-user-agent-filter`: a filter that treats every user agent the same.

use std::collections::HashSet;

use super::{EdgeView, Findings, Level, Lint, LintCheck};
use crate::model::{
    diagnostics::fault::{Aim, Path},
    kind::https_edge_route::HttpsEdgeRoute,
};

/// The lint.
pub(crate) static LINT: Lint = Lint {
    name: "open-user-agent-filter",
    needs_whole: false,
    default: Level::Warn,
    summary: "A `user_agent_filter` has no patterns, or a pattern that matches every user agent, such as an empty one.",
    why: "Patterns match anywhere in the User-Agent header, so an empty one or `.*` in `deny` refuses everyone and one \
          in `allow` admits everyone. Without patterns, the filter does nothing.",
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
      user_agent_filter: {deny: ['']}
",
    cure: "Add patterns such as `(?i)bot`, and remove those that match everything; or remove the module.",
    check: LintCheck::Edge(check),
};

/// Patterns that match every text. `.` and `.+` match every text but an empty one, which is a usual condition.
const MATCHES_ALL: &[&str] = &["", "$", "(.*)", ".*", ".*$", ".*?", "^", "^.*", "^.*$", "(?i).*", "^(.*)$"];

fn check(view: &EdgeView<'_>, findings: &mut Findings) {
    for (key, route) in view.all::<HttpsEdgeRoute>() {
        let Some(filter) = &route.user_agent_filter else { continue };
        let module = Path::root().join("user_agent_filter");
        if filter.allow.is_empty() && filter.deny.is_empty() {
            let message = "`user_agent_filter` has no patterns, so it filters nothing";
            findings.report(key, module, message).aim = Aim::Key;
            continue;
        }
        let lists = [("allow", &filter.allow, ", so the filter refuses nobody"), ("deny", &filter.deny, "")];
        for (field, patterns, effect) in lists {
            // `duplicate-entry` reports duplicates.
            let mut told = HashSet::new();
            for (index, pattern) in patterns.iter().enumerate() {
                if MATCHES_ALL.contains(&pattern.as_str()) && told.insert(pattern.as_str()) {
                    let shown = if pattern.is_empty() { "an empty pattern".to_owned() } else { format!("`{pattern}`") };
                    let message = format!("{shown} in `{field}` matches every user agent{effect}");
                    findings.report(key, module.join(field).join(index), message);
                }
            }
        }
    }
}
