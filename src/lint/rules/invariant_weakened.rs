//! `invariant-weakened`: a plan after which an invariant is gone or refuses less. The planner reports it: it knows both states.

use super::prelude::*;

pub(crate) static LINT: Lint = Lint {
    name: "invariant-weakened",
    default: Level::Warn,
    summary: "A plan removes an Invariant, or changes it so that it may refuse less.",
    why: "The plan itself opens nothing, so no other check reports it. But the next change can open what the invariant \
          protected, and is no longer refused.",
    cure: "Restore the invariant. To weaken it on purpose, set the annotation `edgewright/lint.invariant-weakened: allow \
           (REASON)` in its manifest; to remove it, apply the plan at level `warn`.",
    check: LintCheck::Plan,
};
