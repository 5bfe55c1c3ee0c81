//! `session-too-long`: a session over a year, or with an interval that is longer than the session.

use super::prelude::*;
use crate::model::module::{Module, oauth::Oauth, oidc::Oidc, saml::Saml};

pub(crate) static LINT: Lint = Lint {
    name: "session-too-long",
    default: Level::Warn,
    summary: "A duration of `oauth`, `saml` or `oidc` is over a year, or `inactivity_timeout` or `auth_check_interval` is longer than `maximum_duration`.",
    why: "Durations are in seconds, so a very large one was probably meant in milliseconds. A timeout or interval \
          longer than the session never takes effect.",
    cure: "Set all durations in seconds, and `inactivity_timeout` and `auth_check_interval` shorter than \
           `maximum_duration`.",
    check: LintCheck::Edge(check),
};

/// Seconds in a year.
const YEAR: u32 = 31_536_000;

fn check(view: &EdgeView<'_>, findings: &mut Findings) {
    for (key, route) in view.all::<HttpsEdgeRoute>() {
        // Only `oauth` has an interval between checks.
        let sessions = [
            (
                Oauth::SLOT,
                route.oauth.as_ref().map(|it| (it.maximum_duration, it.inactivity_timeout, it.auth_check_interval)),
            ),
            (Saml::SLOT, route.saml.as_ref().map(|it| (it.maximum_duration, it.inactivity_timeout, 0))),
            (Oidc::SLOT, route.oidc.as_ref().map(|it| (it.maximum_duration, it.inactivity_timeout, 0))),
        ];
        for (module, session) in sessions {
            let Some((most, timeout, interval)) = session else { continue };
            let at = Path::from(module);
            let durations =
                [("maximum_duration", most), ("inactivity_timeout", timeout), ("auth_check_interval", interval)];
            for (field, seconds) in durations {
                if seconds > YEAR {
                    let message = format!("`{field}` is over a year ({seconds} seconds)");
                    findings.report(key, at.join(field), message);
                }
                if most > 0 && seconds > most {
                    let message =
                        format!("`{field}` ({seconds} seconds) is longer than `maximum_duration` ({most} seconds)");
                    let finding = findings.report(key, at.join(field), message);
                    finding.relate(key, at.join("maximum_duration"), "the session's maximum duration");
                }
            }
        }
    }
}
