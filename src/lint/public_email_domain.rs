//! `public-email-domain`: an allow list with a domain under which everyone can get an address.

use super::{Findings, Level, Lint, World};
use crate::model::{fault::Path, kind::https_edge_route::HttpsEdgeRoute};
use crate::text::printable;

/// The lint.
pub(crate) static LINT: Lint = Lint {
    name: "public-email-domain",
    default: Level::Warn,
    summary: "`email_domains` of an `oauth` provider contain the domain of a public mail service.",
    why: "One match in any allow list gives access. Everyone can create an address under the domain of a public mail \
          service, so the narrower lists beside it restrict nobody.",
    example: "\
apiVersion: edgewright/v1
kind: HttpsEdge
metadata: {name: intranet}
spec:
  hostports: ['wiki.example.com:443']
  routes:
    - name: wiki
      match_type: path_prefix
      match: /
      backend: {backend_id: bkd_wiki}
      oauth:
        provider:
          google:
            email_addresses: [jo@example.com]
            email_domains: [gmail.com]
",
    cure: "Remove the domain, and add the users who have an address under it to `email_addresses`.",
    check,
};

/// Domains of mail services with open registration.
const PUBLIC: &[&str] = &[
    "aol.com",
    "fastmail.com",
    "gmail.com",
    "gmx.de",
    "gmx.net",
    "googlemail.com",
    "hotmail.com",
    "icloud.com",
    "live.com",
    "mail.ru",
    "me.com",
    "msn.com",
    "outlook.com",
    "proton.me",
    "protonmail.com",
    "qq.com",
    "web.de",
    "yahoo.com",
    "yandex.ru",
    "zoho.com",
];

fn check(world: &World<'_>, findings: &mut Findings) {
    for (key, route) in world.all::<HttpsEdgeRoute>() {
        let Some(oauth) = &route.oauth else { continue };
        for app in oauth.provider.apps() {
            let list = Path::root().join("oauth").join("provider").join(app.provider).join("email_domains");
            for (index, domain) in app.email_domains.iter().enumerate() {
                if PUBLIC.iter().any(|it| it.eq_ignore_ascii_case(domain)) {
                    let message = format!("everyone can get an address at `{}`", printable(domain));
                    findings.report(key, list.join(index), message);
                }
            }
        }
    }
}
