//! `leaf-is-authority`: a server certificate that is a certificate authority.

use super::prelude::*;

pub(crate) static LINT: Lint = Lint {
    name: "leaf-is-authority",
    default: Level::Warn,
    summary: "The first certificate in `certificate_pem` is a certificate authority.",
    why: "Some clients reject a server certificate with `CA:TRUE`, and anyone who gets its key can issue certificates for any name. Either the chain is in the wrong order, or the certificate is self-signed: `openssl req -x509` adds `CA:TRUE` by default.",
    cure: "Put the server's certificate first. Issue a self-signed one with `-addext basicConstraints=critical,CA:FALSE`.",
    check: LintCheck::Edge(check),
};

fn check(view: &EdgeView<'_>, findings: &mut Findings) {
    for chain in chains(view).filter(|chain| chain.field == "certificate_pem") {
        if let Some(leaf) = chain.links.first().filter(|leaf| leaf.is_authority) {
            let message = format!("{leaf} is a certificate authority, not a server certificate");
            findings.report(chain.key, [chain.field], message);
        }
    }
}
