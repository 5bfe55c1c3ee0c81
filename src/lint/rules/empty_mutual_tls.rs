//! `empty-mutual-tls`: client certificates that no authority can have issued.

use super::prelude::*;

pub(crate) static LINT: Lint = Lint {
    name: "empty-mutual-tls",
    default: Level::Deny,
    summary: "An enabled `mutual_tls` module has no certificate authorities.",
    why: "A client certificate is valid if one of the authorities issued it. Without authorities, the edge admits \
          either everyone or nobody, and neither is intended.",
    cure: "Add at least one authority to `certificate_authority_ids`, or remove or disable `mutual_tls`.",
    check: LintCheck::Edge(check),
};

fn check(view: &EdgeView<'_>, findings: &mut Findings) {
    for (key, edge) in view.all::<HttpsEdge>() {
        let module = edge.mutual_tls.as_ref().filter(|module| module.enabled);
        if module.is_some_and(|module| module.certificate_authority_ids.is_empty()) {
            let path = Path::from(["mutual_tls", "certificate_authority_ids"]);
            findings.report(key, path, "`mutual_tls` has no certificate authorities");
        }
    }
}
