//! `unserved-scope`: an invariant about a host that no edge serves.

use super::prelude::*;
use super::unserved_host::ServedHosts;

pub(crate) static LINT: Lint = Lint {
    name: "unserved-scope",
    default: Level::Warn,
    summary: "No edge of this source or of another one serves a host in the scope of an Invariant.",
    why: "An invariant about hosts that nobody serves protects nothing. If a host is mistyped, the intended one is \
          unprotected.",
    cure: "Correct the host in `scope`. If an edge will serve it later, set the annotation \
           `edgewright/lint.unserved-scope: allow` until then.",
    check: LintCheck::Source(check),
};

fn check(view: &HostView<'_>, findings: &mut Findings) {
    if !view.is_whole() || view.all::<Invariant>().next().is_none() {
        return;
    }
    let others = view.of_others::<HttpsEdge>().map(|(_, edge, _)| edge);
    let served = ServedHosts::of(view.all::<HttpsEdge>().map(|(_, edge)| edge).chain(others));
    // The edges may be elsewhere: whoever owns invariants often has none.
    if served.is_empty() {
        return;
    }
    for (key, invariant) in view.all::<Invariant>() {
        let hosts = invariant.scope.hosts.iter().enumerate();
        for (index, host) in hosts.filter(|(_, host)| !served.cover(&host_name(host))) {
            let path = Path::from(["scope", "hosts"]).join(index);
            findings.report(key, path, format!("no edge serves `{}`", printable(host)));
        }
    }
}
