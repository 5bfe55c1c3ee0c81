//! `access-opened`: a plan after which requests meet less that restricts access, or something that admits more. The planner reports it: it knows both states.

use super::prelude::*;

/// The lint.
pub(crate) static LINT: Lint = Lint {
    name: "access-opened",
    default: Level::Warn,
    summary: "A plan removes or disables a login, an IP restriction, mutual TLS or another module that restricts access, lets it admit more or others, or moves requests to a less restricted route.",
    why: "One removed line among many opens an admin page to everyone, and reviewers miss it. A deleted route opens its \
          requests, too, if another one without a login takes them, and so does a login whose list of organizations is now empty.",
    cure: "Restrict access again. If it is to be open, set the annotation `edgewright/lint.access-opened: allow (REASON)` \
           in the manifest of the resource that has the requests; `edgewright plan --behaviour` lists them.",
    check: LintCheck::Plan,
};
