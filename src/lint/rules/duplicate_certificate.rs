//! `duplicate-certificate`: two resources with the same certificates.

use foldhash::HashMap;

use super::prelude::*;

pub(crate) static LINT: Lint = Lint {
    name: "duplicate-certificate",
    default: Level::Warn,
    summary: "Two TlsCertificates or two CertificateAuthorities have the same PEM.",
    why: "The second resource adds nothing, and one of the two is easily forgotten at the next renewal. Often the file \
          of another certificate was meant.",
    cure: "Remove one of the two resources, or use the other certificate.",
    check: LintCheck::Source(check),
};

fn check(view: &HostView<'_>, findings: &mut Findings) {
    let certificates = view.in_order::<TlsCertificate>().into_iter();
    repeated(certificates.map(|(key, it)| (key, it.certificate_pem.as_str())), "certificate_pem", findings);
    let authorities = view.in_order::<CertificateAuthority>().into_iter();
    repeated(authorities.map(|(key, it)| (key, it.ca_pem.as_str())), "ca_pem", findings);
}

/// Reports every text that a resource before has too.
fn repeated<'w>(texts: impl Iterator<Item = (&'w Key, &'w str)>, field: &'static str, findings: &mut Findings) {
    let mut first: HashMap<&str, &Key> = HashMap::default();
    for (key, text) in texts.filter(|(_, text)| !text.trim().is_empty()) {
        let earlier = *first.entry(text.trim()).or_insert(key);
        if earlier != key {
            let message = format!("another {} has the same `{field}`", key.kind.info().name);
            findings.report(key, [field], message).relate(earlier, [field], "the other one");
        }
    }
}
