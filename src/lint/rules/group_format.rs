//! `group-format`: an authorized group that no user can be in.

use super::prelude::*;

pub(crate) static LINT: Lint = Lint {
    name: "group-format",
    default: Level::Warn,
    summary: "An entry of `authorized_groups` is empty, or starts or ends with white space.",
    why: "Groups are compared exactly, so such an entry matches no group. If the list has no other entry, nobody can \
          log in.",
    cure: "Remove the white space around the group's name, or remove the entry.",
    check: LintCheck::Edge(check),
};

fn check(view: &EdgeView<'_>, findings: &mut Findings) {
    for (key, saml) in view.route_modules(|route| route.saml.as_deref()) {
        findings.report_entries(key, &["saml", "authorized_groups"], &saml.authorized_groups, fault);
    }
}

fn fault(group: &str) -> Option<String> {
    if group.is_empty() {
        return Some("the group is empty".to_owned());
    }
    let message = || format!("the group `{}` starts or ends with white space", printable(group));
    (group.trim() != group).then(message)
}
