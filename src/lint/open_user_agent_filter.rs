//! `open-user-agent-filter`: a filter that treats every user agent the same.

use super::{Findings, Level, Lint, World};
use crate::model::{
    fault::{Aim, Path},
    kind::https_edge_route::HttpsEdgeRoute,
};

/// The lint.
pub(crate) static LINT: Lint = Lint {
    name: "open-user-agent-filter",
    needs_whole: false,
    default: Level::Warn,
    summary: "A `user_agent_filter` has no patterns, or an empty pattern, which matches every user agent.",
    why: "Patterns match anywhere in the User-Agent header, so an empty one in `deny` refuses everyone and one in \
          `allow` admits everyone. Without patterns, the filter does nothing.",
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
    cure: "Add patterns such as `(?i)bot`, and remove empty ones; or remove the module.",
    check,
};

fn check(world: &World<'_>, findings: &mut Findings) {
    for (key, route) in world.all::<HttpsEdgeRoute>() {
        let Some(filter) = &route.user_agent_filter else { continue };
        let module = Path::root().join("user_agent_filter");
        if filter.allow.is_empty() && filter.deny.is_empty() {
            let message = "`user_agent_filter` has no patterns, so it filters nothing";
            findings.report(key, module, message).aim = Aim::Key;
            continue;
        }
        let lists = [
            (
                "allow",
                &filter.allow,
                "an empty pattern in `allow` matches every user agent, so the filter refuses nobody",
            ),
            ("deny", &filter.deny, "an empty pattern in `deny` matches every user agent"),
        ];
        for (field, patterns, message) in lists {
            let list = module.join(field);
            for (index, _) in patterns.iter().enumerate().filter(|(_, pattern)| pattern.is_empty()) {
                findings.report(key, list.join(index), message);
            }
        }
    }
}
