//! The fate of the requests of a class: what takes them, and what it does with them.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::fate_module::{FateModule, ModuleLikeness, is_unchanged};
use crate::model::module::admission::{AccessChange, Admittance};
use crate::model::module::backend::Backend;
use crate::model::module::tls_termination::{TlsTermination, TlsVersion};
use crate::model::required_secrets::are_comparable;
use crate::model::traffic::{PLAIN_HTTP, Stage};
use crate::model::{AnyModule, AnyResource, Entry, HttpsEdge, HttpsEdgeRoute, Key, Module, Slot, Snapshot};
use crate::routing::missing_tls::MissingTls;
use crate::routing::selector::passes_tls_through;

/// The modules that restrict access, by their sort: logins are one.
pub(crate) type Protections = BTreeMap<&'static str, &'static str>;

/// The fate of requests in a state. Without an edge, nothing answers them; without a route, the edge answers 404.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fate<'s> {
    state: &'s Snapshot,
    /// The edge that serves them.
    pub(crate) edge: Option<&'s Arc<Entry>>,
    /// The route that handles them.
    pub(crate) route: Option<&'s Arc<Entry>>,
}

impl<'s> Fate<'s> {
    /// The fate of the requests that an edge serves and a route takes.
    pub(crate) fn new(state: &'s Snapshot, edge: Option<&'s Arc<Entry>>, route: Option<&'s Arc<Entry>>) -> Self {
        Self { state, edge, route: route.filter(|_| edge.is_some()) }
    }

    /// The edge as its own type.
    pub(crate) fn edge_spec(&self) -> Option<&'s HttpsEdge> {
        self.edge?.spec_as()
    }

    /// The route as its own type.
    pub(crate) fn route_spec(&self) -> Option<&'s HttpsEdgeRoute> {
        self.route?.spec_as()
    }

    /// The full name of the edge or the route.
    pub(in crate::routing) fn full_name(&self, entry: &Entry) -> String {
        self.state.full_name(entry)
    }

    /// The fate of the requests that a route takes in this state, if it is there.
    pub(crate) fn of_route(&self, route: &Key) -> Option<Fate<'s>> {
        let edge = self.state.get(&route.parent_key()?)?;
        Some(Fate::new(self.state, Some(edge), Some(self.state.get(route)?)))
    }

    /// How the edge terminates TLS. Without the module, it has the defaults.
    pub(crate) fn tls(&self) -> Option<TlsTermination> {
        self.edge.and_then(|edge| tls_of(edge))
    }

    /// The oldest version of TLS that clients can use at a port; none if TLS does not end at the edge.
    pub(crate) fn oldest_tls(&self, port: u16) -> Option<TlsVersion> {
        self.tls().filter(|tls| tls.enabled && port != PLAIN_HTTP)?.effective_min_version()
    }

    /// Whether the edge passes TLS through, so that only the upstream reads the requests.
    pub(crate) fn passes_through(&self) -> bool {
        self.edge_spec().is_some_and(passes_tls_through)
    }

    /// The enabled modules that requests pass, in traffic order: without a route, those of the edge. Without a backend, nothing
    /// follows it.
    pub(crate) fn modules(&self) -> Vec<FateModule<'s>> {
        let mut modules = self.configured_modules();
        modules.sort_by_key(|it| it.stage);
        if !modules.iter().any(|it| it.slot.name == Backend::SLOT) {
            modules.retain(|it| it.stage < Stage::Backend);
        }
        modules
    }

    /// The enabled modules of the edge and the route that have an effect, with a backend or without.
    fn configured_modules(&self) -> Vec<FateModule<'s>> {
        let hosts = [self.edge, self.route].into_iter().flatten();
        hosts.flat_map(|host| FateModule::all_of(self.state, host)).collect()
    }

    /// How a module differs from the one of the same name in a former fate in whom it admits with preflight requests, or with all
    /// others. One that no longer has any effect admits everybody, and one that had none refused nobody.
    pub(in crate::routing) fn access_change(
        &self,
        former: &Fate<'_>,
        name: &str,
        are_preflights: bool,
    ) -> AccessChange {
        let (modules, former_modules) = (self.configured_modules(), former.configured_modules());
        let Some(had) = former_modules.iter().find(|it| it.slot.name == name) else { return AccessChange::Same };
        let has = modules.iter().find(|it| it.slot.name == name);
        has.map_or(AccessChange::Wider, |has| has.access_change_of(had, are_preflights))
    }

    /// The ID of the backend, if the route has an enabled one.
    pub(crate) fn backend(&self) -> Option<&'s str> {
        let backend = self.route_spec()?.backend.as_deref().filter(|backend| backend.enabled)?;
        Some(&backend.backend_id)
    }

    /// The ID of the backend that requests may reach: no module certainly refuses all of them.
    pub(crate) fn reached_backend(&self) -> Option<&'s str> {
        let mut modules = [self.edge, self.route].into_iter().flatten().flat_map(|host| host.spec().modules());
        let is_refused = modules.any(|(_, module)| module.enabled() && module.admits() == Admittance::Nobody);
        self.backend().filter(|_| !is_refused)
    }

    /// The modules that restrict access to the backend at a port; none without a route. Without TLS at the edge, nobody
    /// presents it a certificate.
    pub(super) fn restrictions(&self, port: u16) -> Vec<FateModule<'s>> {
        if self.route.is_none() {
            return Vec::new();
        }
        self.modules().into_iter().filter(|it| it.module.restricts_access() && self.connects(it, port)).collect()
    }

    /// Whether the edge has the TLS at a port that a module needs which checks the connection.
    fn connects(&self, met: &FateModule<'_>, port: u16) -> bool {
        let Some(edge) = self.edge else { return false };
        let edge: &dyn AnyResource = edge.spec().as_ref();
        MissingTls::for_connection(met.slot, met.stage, edge, port).is_none()
    }

    /// Whether a module checks the connection and lacks TLS for that at a port, so that it restricts nobody.
    pub(in crate::routing) fn lacks_tls(&self, name: &str, port: u16) -> bool {
        self.configured_modules().iter().any(|met| met.slot.name == name && !self.connects(met, port))
    }

    /// The sorts of these modules.
    pub(crate) fn protections(&self, port: u16) -> Protections {
        protections(self.restrictions(port).into_iter().map(|it| (it.slot, it.module)))
    }

    /// Whether requests are treated alike: by equal modules in the same order, wherever they are configured, and with the
    /// same TLS. It does not matter which edge and route do it, unless modules of two of them have secrets, which are not compared.
    pub(crate) fn is_like(&self, other: &Fate<'_>) -> bool {
        self.is_like_with(other, None, |_| false)
    }

    /// Like [`is_like`](Self::is_like) for requests to a port.
    pub(crate) fn is_like_at(&self, other: &Fate<'_>, port: u16) -> bool {
        self.is_like_with(other, Some(port), |_| false)
    }

    /// Like [`is_like`](Self::is_like) for requests to a port, if it is known, of which more is known: modules in a slot that are
    /// configured differently may have the same effect on them.
    pub(in crate::routing) fn is_like_with(
        &self,
        other: &Fate<'_>,
        port: Option<u16>,
        has_same_effect: impl Fn(&Slot) -> bool,
    ) -> bool {
        if self.edge.is_some() != other.edge.is_some() || self.route.is_some() != other.route.is_some() {
            return false;
        }
        // Two resources are compared module by module, because they can have secrets.
        let is_same = |one: Option<&Arc<Entry>>, another: Option<&Arc<Entry>>| {
            one.zip(another).is_none_or(|(one, another)| one.key == another.key && is_unchanged(one, another))
        };
        // Whether two secrets are the same may depend on a guess (D103).
        let is_comparable = || {
            let routes = self.route.zip(other.route);
            routes.is_none_or(|(one, another)| {
                let sides = ((self.state, &**one), (other.state, &**another));
                one.spec().modules().all(|(slot, _)| are_comparable(sides.0, sides.1, slot))
            })
        };
        if is_same(self.edge, other.edge) && is_same(self.route, other.route) && is_comparable() {
            return true;
        }
        let (modules, others) = (self.modules(), other.modules());
        self.has_tls_of(other, port) && are_alike(&modules, &others, has_same_effect)
    }

    /// Whether TLS is the same for requests to a port, or to any. On that of plain HTTP, an edge that reads requests has none.
    pub(crate) fn has_tls_of(&self, other: &Fate<'_>, port: Option<u16>) -> bool {
        let is_plain = port == Some(PLAIN_HTTP) && !self.passes_through() && !other.passes_through();
        is_plain || self.tls() == other.tls()
    }
}

/// Whether an edge that stays treats requests alike and has the same enabled modules: an invariant can ask for a module whose
/// defaults have the same effect as none.
pub(super) fn keeps_edge(one: (&Snapshot, &Arc<Entry>), other: (&Snapshot, &Arc<Entry>)) -> bool {
    let enabled = |edge: &Entry| {
        let modules = edge.spec().modules().filter(|(_, module)| module.enabled());
        modules.map(|(slot, _)| slot.name).collect::<Vec<&str>>()
    };
    is_edge_alike(one, other) && enabled(one.1) == enabled(other.1)
}

/// Whether requests through an edge that stays are treated alike, as far as the edge decides it.
fn is_edge_alike(one: (&Snapshot, &Arc<Entry>), other: (&Snapshot, &Arc<Entry>)) -> bool {
    if is_unchanged(one.1, other.1) {
        return true;
    }
    let (modules, others) = (FateModule::all_of(one.0, one.1), FateModule::all_of(other.0, other.1));
    tls_of(one.1) == tls_of(other.1) && are_alike(&modules, &others, |_| false)
}

/// How an edge terminates TLS. Without the module, it has the defaults.
fn tls_of(edge: &Entry) -> Option<TlsTermination> {
    Some(edge.spec_as::<HttpsEdge>()?.tls_termination.as_deref().cloned().unwrap_or_default())
}

/// Whether modules of two states have the same effect in the same order: those of some slots have, however they are configured.
fn are_alike(modules: &[FateModule<'_>], others: &[FateModule<'_>], has_same_effect: impl Fn(&Slot) -> bool) -> bool {
    modules.len() == others.len()
        && modules.iter().zip(others).all(|(one, another)| {
            let is_alike = || one.compare(another) == ModuleLikeness::Same;
            one.slot == another.slot && (has_same_effect(one.slot) || is_alike())
        })
}

/// Returns what restricts access of some modules.
pub(crate) fn protections<'m>(modules: impl Iterator<Item = (&'static Slot, &'m dyn AnyModule)>) -> Protections {
    let restricting = modules.filter(|(_, module)| module.enabled() && module.restricts_access());
    restricting.map(|(slot, _)| (if slot.is_login { "login" } else { slot.name }, slot.name)).collect()
}

/// Returns the modules that restrict access, of the sorts that are gone.
pub(crate) fn missing_protections(had: &Protections, has: &Protections) -> Vec<&'static str> {
    had.iter().filter(|(sort, _)| !has.contains_key(*sort)).map(|(_, name)| *name).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::model::{Id, Kind};
    use crate::routing::tests::{edge_key, route, route_key, state_of_json};

    /// A state with an edge, its route, and an authority with a description.
    fn state(edge: Value, route: Value, authority: (&str, &str)) -> Snapshot {
        let certificate = json!({"description": authority.1, "ca_pem": "-"});
        state_of_json([
            (Key::new(Kind::CertificateAuthority, Id::new(authority.0)), certificate),
            (edge_key("edghts_1"), edge),
            (route_key("edghts_1", "edghtsrt_1"), route),
        ])
    }

    fn fate(state: &Snapshot) -> Fate<'_> {
        let edge = state.newest_first(Kind::HttpsEdge, None, u64::MAX).next();
        let route = edge.and_then(|edge| state.children(&edge.key).next());
        Fate::new(state, edge, route)
    }

    #[test]
    fn fates_are_alike_if_equal_modules_act_whatever_they_are_called() {
        let route = |more: Value| route("/", more);
        let mutual = |authority: &str| json!({"mutual_tls": {"certificate_authority_ids": [authority]}});
        let plain = state(json!({}), route(json!({})), ("ca_1", ""));
        let alike = [
            state(json!({"description": "other"}), route(json!({"match": "/x", "metadata": "m"})), ("ca_1", "")),
            state(json!({"tls_termination": {}}), route(json!({"compression": {"enabled": false}})), ("ca_1", "")),
        ];
        assert!(alike.iter().all(|other| fate(&plain).is_like(&fate(other))));
        let different = [
            state(json!({"tls_termination": {"min_version": "1.3"}}), route(json!({})), ("ca_1", "")),
            state(mutual("ca_1"), route(json!({})), ("ca_1", "")),
            state(json!({}), route(json!({"compression": {}})), ("ca_1", "")),
            state(json!({}), route(json!({"backend": {"backend_id": "bkd_2"}})), ("ca_1", "")),
        ];
        assert!(!different.iter().any(|other| fate(&plain).is_like(&fate(other))));
        let (one, renamed) = (
            state(mutual("ca_1"), route(json!({})), ("ca_1", "")),
            state(mutual("ca_2"), route(json!({})), ("ca_2", "d")),
        );
        assert!(fate(&one).is_like(&fate(&renamed)), "an authority with another ID and description");
        assert_eq!(fate(&one).protections(443), Protections::from([("mutual_tls", "mutual_tls")]));
        let elsewhere =
            ["ca_1", "ca_1", "ca_2"].map(|authority| state(mutual(authority), route(json!({})), ("ca_9", "")));
        let [one, same, other] = elsewhere.each_ref().map(fate);
        assert!(one.is_like(&same) && !one.is_like(&other), "authorities that the states do not have");
    }

    #[test]
    fn secrets_of_two_routes_are_not_compared() {
        let state = |id: &str, secret: &str| {
            let hook = json!({"webhook_verification": {"provider": "github", "secret": secret}});
            let edge = (edge_key("edghts_1"), json!({}));
            state_of_json([edge, (route_key("edghts_1", id), route("/", hook))])
        };
        let known = state("edghtsrt_1", "right");
        assert!(fate(&known).is_like(&fate(&state("edghtsrt_1", "right"))));
        assert!(!fate(&known).is_like(&fate(&state("edghtsrt_1", "wrong"))));
        for guess in ["right", "wrong"] {
            assert!(!fate(&known).is_like(&fate(&state("edghtsrt_2", guess))), "{guess}");
        }
    }

    #[test]
    fn on_the_port_of_plain_http_tls_does_not_count() {
        let of = |tls: Value| state(json!({"tls_termination": tls}), route("/", json!({})), ("ca_1", ""));
        let (new, old) = (of(json!({"min_version": "1.3"})), of(json!({"min_version": "1.0"})));
        let are_alike = |port: u16| fate(&new).is_like_at(&fate(&old), port);
        assert_eq!([80, 443].map(are_alike), [true, false]);
        let passed = of(json!({"terminate_at": "upstream"}));
        assert!(!fate(&new).is_like_at(&fate(&passed), 80), "the upstream reads what passes through");
    }

    #[test]
    fn without_a_route_the_edge_alone_decides() {
        let of = |edge: Value| state_of_json([(edge_key("edghts_1"), edge)]);
        let tls = |version: &str| of(json!({"tls_termination": {"min_version": version}}));
        let mutual = of(json!({"mutual_tls": {"certificate_authority_ids": ["ca_1"]}}));
        let (default, new, old) = (of(json!({})), tls("1.3"), tls("1.0"));
        assert!(fate(&default).is_like(&fate(&tls("1.2"))));
        assert!(!fate(&new).is_like(&fate(&old)) && !fate(&mutual).is_like(&fate(&default)));
        assert!(fate(&mutual).protections(443).is_empty(), "there is no backend to restrict");
    }

    #[test]
    fn without_a_backend_nothing_that_would_follow_it_counts() {
        let route = |more: &str| {
            let modules = json!({"backend": null, "ip_restriction": {"ip_policy_ids": ["a"]}, more: {}});
            state(json!({}), route("/", modules), ("ca_1", ""))
        };
        let (one, other) = (route("compression"), route("response_headers"));
        assert!(fate(&one).is_like(&fate(&other)) && fate(&one).backend().is_none());
        let names: Vec<&str> = fate(&one).modules().iter().map(|it| it.slot.name).collect();
        assert_eq!(names, ["ip_restriction"]);
    }

    #[test]
    fn no_backend_is_reached_behind_a_module_that_refuses_everybody() {
        let reaches = |policies: Value| {
            let state = state(json!({}), route("/", json!({"policies": policies})), ("ca_1", ""));
            (fate(&state).backend().is_some(), fate(&state).reached_backend().is_some())
        };
        let inbound = json!([{"actions": [{"type": "deny"}]}]);
        assert_eq!(reaches(json!({"inbound": inbound})), (true, false));
        assert_eq!(reaches(json!({"inbound": inbound, "enabled": false})), (true, true));
        assert_eq!(reaches(json!({"outbound": inbound})), (true, true));
    }
}
