//! `unserved-scope`: an invariant about a host that no edge serves.

use super::prelude::*;
use super::unserved_host::ServedHosts;

/// The lint.
pub(crate) static LINT: Lint = Lint {
    name: "unserved-scope",
    default: Level::Warn,
    summary: "No edge of this source or of another one serves a host in the scope of an Invariant.",
    why: "An invariant about requests that nobody serves refuses nothing. A mistyped host in its scope leaves the hosts open \
          that it is meant to protect.",
    cure: "Correct the host in `scope`, or set the annotation `edgewright/lint.unserved-scope: allow` until an edge serves \
           it.",
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
