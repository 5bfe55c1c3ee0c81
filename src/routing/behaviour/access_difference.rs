//! How access to a backend differs between two fates of the same requests: one comparison, for plans and replays alike (D113).

use std::sync::Arc;

use super::fate::{Fate, Protections, missing_protections, protections};
use crate::model::module::admission::AccessChange;
use crate::model::{AnyModule, Entry, Slot};

/// The difference in what restricts access.
#[derive(Debug, Default)]
pub(crate) struct AccessDifference {
    /// The restrictions before.
    pub(crate) had: Protections,
    /// The restrictions after.
    pub(crate) has: Protections,
    /// The modules that restrict access before and after, and that do not admit the same. A login in the place of another one may
    /// admit others.
    pub(crate) changed: Vec<(&'static str, AccessChange)>,
}

impl AccessDifference {
    /// Compares two fates at a port.
    pub(crate) fn new(then: &Fate<'_>, now: &Fate<'_>, port: u16) -> Self {
        let [before, after] = [then, now].map(|fate| fate.restrictions(port));
        let changed = changes(&before, &after, |it| it.slot, |it, former| it.access_change(former));
        let [had, has] = [&before, &after].map(|modules| protections(modules.iter().map(|it| (it.slot, it.module))));
        Self { had, has, changed }
    }

    /// Compares the requests of a route with those that it took before, if that opens access to a backend which these requests did
    /// not reach. Moving a route and removing its login in one change opens as much as one after the other. Also returns the
    /// fate of the former requests.
    pub(crate) fn of_moved_route<'s>(then: &Fate<'s>, now: &Fate<'_>, port: u16) -> Option<(Fate<'s>, Self)> {
        let (backend, route) = (now.reached_backend()?, now.route?);
        if then.reached_backend() == Some(backend) {
            return None;
        }
        let former = then.of_route(&route.key)?;
        let access = Self::new(&former, now, port);
        access.opens(false).then_some((former, access))
    }

    /// Compares the modules of a resource without routes before and after a change.
    pub(crate) fn of_resource(sides: [Option<&Arc<Entry>>; 2]) -> Self {
        let [before, after] = sides.map(|entry| {
            let modules = entry.into_iter().flat_map(|entry| entry.spec().modules());
            let restricting = modules.filter(|(_, module)| module.enabled() && module.restricts_access());
            restricting.collect::<Vec<(&'static Slot, &dyn AnyModule)>>()
        });
        let changed = changes(&before, &after, |it| it.0, |it, former| it.1.access_change(former.1));
        let [had, has] = [&before, &after].map(|modules| protections(modules.iter().copied()));
        Self { had, has, changed }
    }

    /// The modules of the sorts of restrictions that are gone.
    pub(crate) fn lost(&self) -> Vec<&'static str> {
        missing_protections(&self.had, &self.has)
    }

    /// The modules of the sorts of restrictions that are new.
    pub(crate) fn gained(&self) -> Vec<&'static str> {
        missing_protections(&self.has, &self.had)
    }

    /// The modules that restrict access before and after.
    pub(crate) fn kept(&self) -> Vec<&'static str> {
        let kept = self.has.iter().filter(|(sort, module)| self.had.get(*sort) == Some(*module));
        kept.map(|(_, module)| *module).collect()
    }

    /// The modules that may admit somebody who was refused.
    pub(crate) fn widened(&self) -> Vec<(&'static str, AccessChange)> {
        self.changed.iter().copied().filter(|(_, change)| change.may_open()).collect()
    }

    /// Whether access opens to requests that can reach a backend after the change: a sort of restrictions is gone, one may admit
    /// more, or nothing restricts requests of which none reached a backend before.
    pub(crate) fn opens(&self, were_refused: bool) -> bool {
        !self.lost().is_empty() || !self.widened().is_empty() || (were_refused && self.has.is_empty())
    }
}

/// Compares the modules after a change with those in the same slots before it. Nobody knows whom a login admits that takes the place
/// of another one.
fn changes<M>(
    before: &[M],
    after: &[M],
    slot: impl Fn(&M) -> &'static Slot,
    compare: impl Fn(&M, &M) -> AccessChange,
) -> Vec<(&'static str, AccessChange)> {
    let in_slot = |modules: &[M], wanted: &Slot| modules.iter().position(|it| slot(it) == wanted);
    let replaces_login = before.iter().any(|it| slot(it).is_login && in_slot(after, slot(it)).is_none());
    let compared = after.iter().filter_map(|it| {
        if replaces_login && slot(it).is_login {
            return Some((slot(it).name, AccessChange::Unknown));
        }
        let former = before.get(in_slot(before, slot(it))?)?;
        Some((slot(it).name, compare(it, former)))
    });
    compared.filter(|(_, change)| *change != AccessChange::Same).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::model::module::admission::AccessChange::{Narrower, Unknown, Wider};
    use crate::model::{Id, Key, Kind, Snapshot};
    use crate::routing::tests::{edge_key, route, route_key, state_of_json, with};

    /// A state with a route that has modules, on an edge, and an authority.
    fn state(id: &str, edge: Value, modules: Value, authority: &str) -> Snapshot {
        let edge = with(json!({"hostports": ["a.example.com:443"]}), edge);
        state_of_json([
            (Key::new(Kind::CertificateAuthority, Id::new("ca_1")), json!({"ca_pem": authority})),
            (edge_key("edghts_1"), edge),
            (route_key("edghts_1", id), route("/", modules)),
        ])
    }

    fn difference(before: &Snapshot, after: &Snapshot) -> AccessDifference {
        let fates = [before, after].map(|state| {
            let edge = state.newest_first(Kind::HttpsEdge, None, u64::MAX).next();
            Fate::new(state, edge, edge.and_then(|edge| state.children(&edge.key).next()))
        });
        let [then, now] = &fates;
        AccessDifference::new(then, now, 443)
    }

    /// What changes if a route with these modules gets others.
    fn changed(before: Value, after: Value) -> Option<AccessChange> {
        let [before, after] = [before, after].map(|modules| state("edghtsrt_1", json!({}), modules, "-"));
        difference(&before, &after).changed.first().map(|(_, change)| *change)
    }

    #[test]
    fn a_module_that_admits_more_opens() {
        let from = |ids: &[&str]| json!({"ip_restriction": {"ip_policy_ids": ids}});
        let oidc = |more: Value| json!({"oidc": with(json!({"issuer": "https://id", "client_secret": "s"}), more)});
        let github = |more: Value| json!({"oauth": {"provider": {"github": more}}});
        let saml = |groups: &[&str]| json!({"saml": {"authorized_groups": groups}});
        let deny = |expressions: &[&str]| {
            let policy = |it: &&str| json!({"expressions": [it], "actions": [{"type": "deny"}]});
            json!({"policies": {"inbound": expressions.iter().map(policy).collect::<Vec<_>>()}})
        };
        let jwt = |audience: &str| json!({"jwt_validation": {"audience": {"allow_list": [{"value": audience}]}}});
        for (before, after, change) in [
            (from(&["a"]), from(&["a", "b"]), Wider),
            (from(&["a"]), from(&[]), Unknown),
            (oidc(json!({})), oidc(json!({"options_passthrough": true})), Wider),
            (oidc(json!({})), oidc(json!({"client_id": "c"})), Unknown),
            (github(json!({"organizations": ["a"]})), github(json!({})), Wider),
            (github(json!({"organizations": ["a"]})), github(json!({"organizations": ["a", "b"]})), Wider),
            (github(json!({"teams": ["a/b"]})), json!({"oauth": {"provider": {"google": {}}}}), Unknown),
            (saml(&["a"]), saml(&[]), Wider),
            (deny(&["a", "b"]), deny(&["a"]), Wider),
            (jwt("a"), jwt("b"), Unknown),
            (oidc(json!({})), saml(&[]), Unknown),
            (oidc(json!({})), github(json!({})), Unknown),
        ] {
            assert_eq!(changed(before.clone(), after.clone()), Some(change), "{before} {after}");
            let back = if change == Wider { Narrower } else { Unknown };
            assert_eq!(changed(after.clone(), before.clone()), Some(back), "{after} {before}");
        }
        for (before, after) in [
            (oidc(json!({})), oidc(json!({"inactivity_timeout": 60, "scopes": ["email"], "client_secret": "t"}))),
            (from(&["a", "b"]), from(&["b", "a"])),
            (oidc(json!({})), with(oidc(json!({})), github(json!({})))),
        ] {
            assert_eq!(changed(before.clone(), after.clone()), None, "{before} {after}");
        }
    }

    #[test]
    fn a_login_that_takes_the_place_of_another_one_is_no_restriction_that_stays() {
        let (oidc, saml) = (json!({"oidc": {"issuer": "https://id", "client_secret": "s"}}), json!({"saml": {}}));
        let from = json!({"ip_restriction": {"ip_policy_ids": ["a"]}});
        let [both, other, one] = [with(oidc.clone(), from), saml.clone(), with(oidc, saml)];
        let of = |before: &Value, after: &Value| {
            let [before, after] = [before, after].map(|it| state("edghtsrt_1", json!({}), it.clone(), "-"));
            let access = difference(&before, &after);
            (access.lost(), access.kept(), access.widened())
        };
        assert_eq!(of(&both, &other), (vec!["ip_restriction"], Vec::new(), vec![("saml", Unknown)]));
        let (lost, _, widened) = of(&one, &other);
        assert_eq!((lost, widened), (Vec::new(), vec![("saml", Unknown)]), "one of two is gone");
    }

    #[test]
    fn an_authority_with_another_certificate_may_admit_others() {
        let mutual = |ids: &[&str]| json!({"mutual_tls": {"certificate_authority_ids": ids}});
        let state = |ids: &[&str], authority: &str| state("edghtsrt_1", mutual(ids), json!({}), authority);
        let change = |before: &Snapshot, after: &Snapshot| difference(before, after).changed;
        assert!(change(&state(&["ca_1"], "-"), &state(&["ca_1"], "-")).is_empty());
        assert_eq!(change(&state(&["ca_1"], "-"), &state(&["ca_1"], "+")), [("mutual_tls", Unknown)]);
        assert_eq!(change(&state(&["ca_1"], "-"), &state(&["ca_1", "ca_2"], "-")), [("mutual_tls", Wider)]);
        assert_eq!(change(&state(&["ca_1", "ca_2"], "-"), &state(&["ca_1"], "-")), [("mutual_tls", Narrower)]);
        assert_eq!(change(&state(&["ca_1", "ca_2"], "-"), &state(&["ca_1"], "+")), [("mutual_tls", Unknown)]);
    }

    #[test]
    fn whom_the_module_of_another_route_admits_depends_on_no_secret() {
        let hook = |id: &str, provider: &str, secret: &str| {
            let hook = json!({"webhook_verification": {"provider": provider, "secret": secret}});
            state(id, json!({}), hook, "-")
        };
        let known = hook("edghtsrt_1", "github", "right");
        for guess in ["right", "wrong"] {
            assert!(difference(&known, &hook("edghtsrt_1", "github", guess)).changed.is_empty());
            assert!(difference(&known, &hook("edghtsrt_2", "github", guess)).changed.is_empty());
            let other = difference(&known, &hook("edghtsrt_2", "gitlab", guess)).changed;
            assert_eq!(other, [("webhook_verification", Unknown)], "{guess}");
        }
    }

    #[test]
    fn what_was_refused_opens_if_nothing_restricts_it() {
        let state = |modules: Value| state("edghtsrt_1", json!({}), modules, "-");
        let (open, closed) = (state(json!({})), state(json!({"ip_restriction": {"ip_policy_ids": ["a"]}})));
        let opens =
            |before: &Snapshot, after: &Snapshot| [false, true].map(|were| difference(before, after).opens(were));
        assert_eq!((opens(&open, &open), opens(&open, &closed)), ([false, true], [false, false]));
        assert_eq!((opens(&closed, &closed), opens(&closed, &open)), ([false, false], [true, true]));
    }
}
