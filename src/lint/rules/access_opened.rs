//! `access-opened`: a plan after which requests meet less that restricts access, or something that admits more. The planner reports it: it knows both states.

use super::prelude::*;

pub(crate) static LINT: Lint = Lint {
    name: "access-opened",
    default: Level::Warn,
    summary: "A plan opens access: it removes or disables a login, an IP restriction, mutual TLS or another \
              restriction, lets one admit more or other clients, or moves requests to a less restricted route.",
    why: "One removed line among many can open an admin page to everyone, and reviewers miss it. Less visible changes \
          open requests, too: deleting a route if another one without a login then takes them, emptying a login's \
          list of organizations, or removing a route's login and changing its match in one edit.",
    cure: "Restore the restriction. To open access on purpose, set the annotation `edgewright/lint.access-opened: \
           allow (REASON)` in the manifest of the resource that receives the requests. `edgewright plan --behaviour` \
           lists these.",
    check: LintCheck::Plan,
};
