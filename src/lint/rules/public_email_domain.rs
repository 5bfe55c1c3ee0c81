//! `public-email-domain`: an allow list with a domain under which everyone can get an address.

use std::collections::HashSet;

use super::prelude::*;

pub(crate) static LINT: Lint = Lint {
    name: "public-email-domain",
    default: Level::Warn,
    summary: "`email_domains` of an `oauth` provider contain the domain of a public mail service.",
    why: "Anyone can create an address under the domain of a public mail service, and one match in any allow list \
          gives access. So narrower lists next to it restrict nobody.",
    cure: "Remove the domain, and list the users with such an address in `email_addresses`.",
    check: LintCheck::Edge(check),
};

/// Domains of mail services with open registration.
#[rustfmt::skip]
const PUBLIC: &[&str] = &[
    "126.com", "139.com", "163.com", "aim.com", "aliyun.com", "aol.com", "att.net", "bellsouth.net", "bigpond.com",
    "bk.ru", "bluewin.ch", "bol.com.br", "btinternet.com", "comcast.net", "cox.net", "daum.net", "duck.com",
    "earthlink.net", "email.com", "fastmail.com", "fastmail.fm", "foxmail.com", "free.fr", "freenet.de", "gmail.com",
    "gmx.at", "gmx.ch", "gmx.co.uk", "gmx.com", "gmx.de", "gmx.fr", "gmx.net", "googlemail.com", "hanmail.net",
    "hey.com", "hotmail.be", "hotmail.ca", "hotmail.ch", "hotmail.co.jp", "hotmail.co.uk", "hotmail.com",
    "hotmail.com.br", "hotmail.de", "hotmail.es", "hotmail.fr", "hotmail.it", "hotmail.nl", "hotmail.se",
    "hushmail.com", "icloud.com", "inbox.ru", "interia.pl", "kpnmail.nl", "laposte.net", "libero.it", "list.ru",
    "live.ca", "live.co.uk", "live.com", "live.com.au", "live.com.mx", "live.de", "live.fr", "live.it", "live.nl",
    "mac.com", "mail.com", "mail.de", "mail.ru", "mailbox.org", "me.com", "msn.com", "naver.com", "o2.pl", "onet.pl",
    "op.pl", "orange.fr", "outlook.com", "outlook.com.au", "outlook.com.br", "outlook.de", "outlook.es", "outlook.fr",
    "outlook.it", "outlook.jp", "pm.me", "posteo.de", "proton.me", "protonmail.ch", "protonmail.com", "qq.com",
    "rambler.ru", "rediffmail.com", "rocketmail.com", "sbcglobal.net", "sfr.fr", "sina.com", "sohu.com", "t-online.de",
    "talktalk.net", "telenet.be", "terra.com.br", "tiscali.it", "tuta.com", "tuta.io", "tutanota.com", "tutanota.de",
    "ukr.net", "uol.com.br", "verizon.net", "virgilio.it", "virginmedia.com", "wanadoo.fr", "web.de", "windowslive.com",
    "wp.pl", "ya.ru", "yahoo.ca", "yahoo.co.id", "yahoo.co.in", "yahoo.co.jp", "yahoo.co.kr", "yahoo.co.nz",
    "yahoo.co.uk", "yahoo.com", "yahoo.com.ar", "yahoo.com.au", "yahoo.com.br", "yahoo.com.cn", "yahoo.com.hk",
    "yahoo.com.mx", "yahoo.com.ph", "yahoo.com.sg", "yahoo.com.tr", "yahoo.com.tw", "yahoo.com.vn", "yahoo.de",
    "yahoo.es", "yahoo.fr", "yahoo.gr", "yahoo.ie", "yahoo.in", "yahoo.it", "yahoo.nl", "yahoo.pl", "yahoo.se",
    "yandex.by", "yandex.com", "yandex.kz", "yandex.ru", "yeah.net", "ymail.com", "zoho.com", "zoho.eu", "zohomail.com",
];

fn check(view: &EdgeView<'_>, findings: &mut Findings) {
    for (key, app) in view.oauth_apps() {
        let list = Path::from(["oauth", "provider", app.provider, "email_domains"]);
        // `email-not-lowercase` reports duplicates.
        let mut reported = HashSet::new();
        for (index, domain) in app.email_domains.iter().enumerate() {
            let public = PUBLIC.iter().find(|it| it.eq_ignore_ascii_case(domain));
            if public.is_some_and(|public| reported.insert(*public)) {
                let message = format!("everyone can get an address at `{}`", printable(domain));
                findings.report(key, list.join(index), message);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_domains_are_sorted_and_in_lower_case() {
        assert!(PUBLIC.is_sorted_by(|one, next| one < next));
        assert!(PUBLIC.iter().all(|domain| domain.to_lowercase() == **domain && domain.contains('.')));
        for domain in ["hotmail.co.uk", "yahoo.fr", "yahoo.co.jp", "t-online.de", "orange.fr", "163.com", "pm.me"] {
            assert!(PUBLIC.contains(&domain), "{domain}");
        }
    }
}
