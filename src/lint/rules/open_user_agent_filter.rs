//! `open-user-agent-filter`: a filter that treats every user agent the same.

use super::prelude::*;
use crate::model::module::user_agent_filter::matches_every_agent;

pub(crate) static LINT: Lint = Lint {
    name: "open-user-agent-filter",
    default: Level::Warn,
    summary: "A `user_agent_filter` has no patterns, or a pattern that matches every user agent, such as an empty one.",
    why: "Patterns match anywhere in the User-Agent header, so an empty one or `.*` in `deny` refuses everyone and one \
          in `allow` admits everyone. Without patterns, the filter does nothing.",
    cure: "Add patterns such as `(?i)bot`, and remove those that match everything; or remove the module.",
    check: LintCheck::Edge(check),
};

fn check(view: &EdgeView<'_>, findings: &mut Findings) {
    for (key, filter) in view.route_modules(|route| route.user_agent_filter.as_deref()) {
        if filter.allow.is_empty() && filter.deny.is_empty() {
            let message = "`user_agent_filter` has no patterns, so it filters nothing";
            findings.report(key, ["user_agent_filter"], message).target = FaultTarget::Key;
            continue;
        }
        let lists = [("allow", &filter.allow, ", so the filter refuses nobody"), ("deny", &filter.deny, "")];
        for (field, patterns, effect) in lists {
            findings.report_entries(key, &["user_agent_filter", field], patterns, |pattern| {
                let message = || {
                    let shown = if pattern.is_empty() { "an empty pattern".to_owned() } else { format!("`{pattern}`") };
                    format!("{shown} in `{field}` matches every user agent{effect}")
                };
                matches_every_agent(pattern).then(message)
            });
        }
    }
}
