//! `wildcard-hostport`: a hostport that another edge's wildcard covers.

use foldhash::HashMap;

use super::{duplicate_hostport::wildcard_over, prelude::*};

pub(crate) static LINT: Lint = Lint {
    name: "wildcard-hostport",
    default: Level::Warn,
    summary: "A wildcard hostport of another edge covers a hostport of this edge.",
    why: "The closer name gets the traffic. A login on the wildcard edge seems to protect every name below it, but \
          does not protect this one.",
    cure: "If the exception is intended, allow this lint for the edge with an annotation. Otherwise serve the name from only one of the two edges.",
    check: LintCheck::Host(check),
};

fn check(view: &HostView<'_>, findings: &mut Findings) {
    /// An edge, the index of the wildcard in its hostports, and the wildcard.
    type Serving<'w> = (&'w Key, usize, &'w str);
    let mut wildcards: HashMap<(String, u16), Vec<Serving<'_>>> = HashMap::default();
    for (key, edge) in view.in_order::<HttpsEdge>() {
        for (index, text, address) in edge.addresses().filter(|(_, text, _)| text.starts_with("*.")) {
            let serving = wildcards.entry(address).or_default();
            // Once per edge, however often it repeats the wildcard.
            if serving.last().is_none_or(|(other, ..)| *other != key) {
                serving.push((key, index, text));
            }
        }
    }
    if wildcards.is_empty() {
        return;
    }
    for (key, edge) in view.all::<HttpsEdge>() {
        for (index, text, (host, port)) in edge.addresses().filter(|(_, text, _)| !text.starts_with("*.")) {
            let over = wildcard_over(&host).map(|over| (over, port));
            let mut others = over.and_then(|over| wildcards.get(&over)).into_iter().flatten();
            let Some((other, place, wildcard)) = others.find(|(other, ..)| *other != key) else { continue };
            let message = format!("`{}` is covered by `{}` of another edge", printable(text), printable(wildcard));
            let finding = findings.report(key, ("hostports", index), message);
            finding.relate(other, ("hostports", *place), "the wildcard");
        }
    }
}
