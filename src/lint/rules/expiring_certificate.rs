//! `expiring-certificate`: a certificate that expires soon.
//!
//! `expired-certificate` explains which certificates of a chain count.

use jiff::SignedDuration;

use super::prelude::*;
use super::shared::certificate_chain::now;
use crate::syntax::text::number_of;

pub(crate) static LINT: Lint = Lint {
    name: "expiring-certificate",
    default: Level::Warn,
    summary: "A certificate expires within 30 days.",
    why: "Connections fail once the certificate has expired. Automatic renewal usually happens earlier than this, so \
          it may have stopped working.",
    cure: "Renew the certificate, and replace it before it expires.",
    check: LintCheck::Edge(check),
};

/// How many days before expiry the lint warns, unless the configuration file sets another number.
pub(crate) const DAYS: u32 = 30;

fn check(view: &EdgeView<'_>, findings: &mut Findings) {
    let now = now(view);
    let notice = SignedDuration::from_hours(i64::from(view.expiry_days()) * 24);
    for chain in chains(view) {
        for link in chain.last_to_end() {
            let left = link.not_after.duration_since(now);
            if !left.is_negative() && left <= notice {
                let days = number_of((left.as_hours() / 24) as usize, "day");
                let message = format!("{link} expires on {}, in {days}", link.not_after.date());
                findings.report(chain.key, [chain.field], message);
            }
        }
    }
}
