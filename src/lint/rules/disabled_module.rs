//! `disabled-module`: a module with `enabled: false`.

use super::prelude::*;

pub(crate) static LINT: Lint = Lint {
    name: "disabled-module",
    default: Level::Allow,
    summary: "A module is configured but disabled.",
    why: "A disabled module looks like protection but has no effect. Modules that are disabled for an hour tend to \
          stay disabled.",
    cure: "Remove `enabled: false`, or the module; version control keeps the old configuration.",
    check: LintCheck::Edge(check),
};

fn check(view: &EdgeView<'_>, findings: &mut Findings) {
    for (key, spec) in view.resources() {
        for (slot, _) in spec.modules().filter(|(_, module)| !module.enabled()) {
            let message = format!("`{}` is configured but disabled", slot.name);
            findings.report(key, [slot.name, "enabled"], message);
        }
    }
}
