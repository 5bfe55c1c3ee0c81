//! `delegation-to-itself`: an edge that delegates routes to the source that owns it.

use super::prelude::*;

pub(crate) static LINT: Lint = Lint {
    name: "delegation-to-itself",
    default: Level::Warn,
    summary: "An edge's `delegates_to` names the source of the edge itself.",
    why: "The source that owns an edge needs no consent for its own routes. Another source was probably meant; its \
          routes are refused.",
    cure: "Name the other source, or remove the entry. If another source owns the edge, set `--source`.",
    check: LintCheck::Edge(check),
};

fn check(view: &EdgeView<'_>, findings: &mut Findings) {
    for (key, edge, source) in view.with_source::<HttpsEdge>() {
        for (index, _) in edge.delegates_to.iter().enumerate().filter(|(_, entry)| entry.source == source) {
            let path = Path::from(("delegates_to", index)).join("source");
            findings.report(key, path, format!("source `{}` owns this edge itself", printable(source)));
        }
    }
}
