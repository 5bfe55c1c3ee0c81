//! `conflicting-authentication`: more than one login module on a route.

use super::prelude::*;
use crate::model::{AnyResource, Slot};

pub(crate) static LINT: Lint = Lint {
    name: "conflicting-authentication",
    default: Level::Deny,
    summary: "More than one of `oauth`, `oidc` and `saml` is enabled on one route.",
    why: "A route can have only one login. The gateway either rejects the route or uses one of the logins, so users of the other are locked out or admitted unchecked.",
    cure: "Keep one of the modules, and remove the others or set `enabled: false` on them. Modules from a module set count too.",
    check: LintCheck::Edge(check),
};

fn check(view: &EdgeView<'_>, findings: &mut Findings) {
    for (key, route) in view.all::<HttpsEdgeRoute>() {
        let route: &dyn AnyResource = route;
        let is_enabled = |slot: &Slot| route.module(slot).is_some_and(|module| module.enabled());
        let logins = route.slots().iter().filter(|slot| slot.is_login && is_enabled(slot));
        let mut names: Vec<&'static str> = logins.map(|slot| slot.name).collect();
        names.sort_unstable();
        let mut enabled = names.into_iter();
        let (Some(first), Some(other)) = (enabled.next(), enabled.next()) else { continue };
        let message = match enabled.next() {
            Some(third) => format!("only one of `{first}`, `{other}` and `{third}` can be enabled on a route"),
            None => format!("`{first}` and `{other}` cannot both be enabled on a route"),
        };
        let finding = findings.report(key, [other], message);
        finding.target = FaultTarget::Key;
        finding.relate(key, [first], "the other login");
    }
}
