//! `unused-module-set`: a module set that no route uses.

use super::prelude::*;

pub(crate) static LINT: Lint = Lint {
    name: "unused-module-set",
    default: Level::Warn,
    summary: "No route lists a ModuleSet in `modules_from`.",
    why: "A module set has no effect by itself. An unused one is a leftover, or a route lacks a login or restriction \
          that it should have. Sets of a source without routes, and sets of surrounding manifests (--with), are not \
          checked: they are meant for other sources.",
    cure: "Add the set to the `modules_from` of a route, or remove the set. If routes of other sources use it, add their folders with --with, or set the annotation `edgewright/lint.unused-module-set: allow`.",
    check: LintCheck::Manifests(check),
};

fn check(world: &World<'_>, findings: &mut Findings) {
    for name in world.manifests.unused_module_sets.iter().filter(|_| world.is_whole) {
        let message = format!("no route uses the module set `{name}`");
        findings.about(Subject::ModuleSet(name.clone()), Path::root(), message).target = FaultTarget::Key;
    }
}
