//! `unused-module-set`: modules that no route takes.

use super::{Findings, Level, Lint, Subject, World};
use crate::model::fault::{Aim, Path};

/// The lint.
pub static LINT: Lint = Lint {
    name: "unused-module-set",
    default: Level::Warn,
    says: "a ModuleSet that no route takes with modules_from",
    why: "A set does nothing by itself. One that nobody takes is a leftover, or a route has forgotten it and runs \
          without a login or restriction that somebody believes in.",
    example: "\
apiVersion: edgewright/v1
kind: ModuleSet
metadata: {name: small-answers}
spec:
  compression: {}
",
    cure: "Name the set in the `modules_from` of a route, or remove it.",
    check,
};

fn check(world: &World<'_>, findings: &mut Findings) {
    for name in &world.manifests.unused_module_sets {
        let message = format!("no route takes the module set `{name}`");
        findings.about(Subject::ModuleSet(name.clone()), Path::root(), message).aim = Aim::Key;
    }
}
