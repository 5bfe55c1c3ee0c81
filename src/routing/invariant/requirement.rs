//! What an invariant requires of the requests of a class, and what is wrong with their fate.

use std::collections::BTreeSet;

use super::flaw::{Flaw, FlawExtent, FlawPlace};
use crate::model::diagnostics::check::parse_hostport;
use crate::model::host_pattern::covers_hosts;
use crate::model::key_scope::selects_name;
use crate::model::kind::invariant::{Invariant, InvariantScope};
use crate::model::module::admission::Admittance;
use crate::model::module::policies::Policies;
use crate::model::module::tls_termination::TlsTermination;
use crate::model::traffic::{PLAIN_HTTP, Stage, StepEffect, TracedRequest, host_name};
use crate::model::{AnyModule, Entry, HttpsEdge, HttpsEdgeRoute, Module, Path, Slot, Snapshot};
use crate::routing::behaviour::{Fate, hostports};
use crate::routing::enforced_restrictions::EnforcedRestrictions;
use crate::routing::missing_tls::MissingTls;
use crate::routing::routed_state::RoutedState;
use crate::routing::selector::Selector;
use crate::syntax::text::{first_of, printable};

/// The most IP policies and matches that a cure names: one of them is enough.
const MOST_NAMED: usize = 3;
/// The method that a login can let pass. The modules treat all others alike.
const PREFLIGHT: &str = "OPTIONS";

/// The flaw by each requirement. Only the last one compares two states.
pub(super) type Flaws = [Option<Flaw>; 6];

/// Returns the first flaw that is certain, or else the first one.
pub(super) fn worst(flaws: Flaws) -> Option<Flaw> {
    let found: Vec<Flaw> = flaws.into_iter().flatten().collect();
    let first = found.iter().position(|flaw| flaw.is_certain).unwrap_or_default();
    found.into_iter().nth(first)
}

/// Judges requests in a state.
#[derive(Debug)]
pub(super) struct RequirementJudge<'s> {
    endpoints: EnforcedRestrictions<'s>,
}

/// A module of the edge or the route that take requests, and where it is.
pub(super) struct MetModule<'s> {
    pub(super) place: FlawPlace,
    pub(super) slot: &'static Slot,
    module: &'s dyn AnyModule,
}

/// The requests of a class at a port with their fate.
#[derive(Clone, Copy)]
pub(super) struct JudgedRequests<'f, 's> {
    pub(super) port: u16,
    pub(super) fate: &'f Fate<'s>,
}

impl<'s> RequirementJudge<'s> {
    pub(super) fn new(state: &'s Snapshot) -> Self {
        Self { endpoints: EnforcedRestrictions::of_endpoints(RoutedState::stored(state, "")) }
    }

    /// Whether the restrictions of all endpoints admit the same addresses as those of another state.
    pub(super) fn admits_like(&self, other: &RequirementJudge<'_>) -> bool {
        self.endpoints.admit_like(&other.endpoints)
    }

    /// Returns what is wrong with requests by each requirement of an invariant. `former` is their fate before a change.
    pub(super) fn flaws(
        &self,
        invariant: &Invariant,
        requests: JudgedRequests<'_, 's>,
        former: Option<&Fate<'_>>,
    ) -> Flaws {
        [
            requests.old_tls(invariant),
            requests.unmet(invariant, false),
            requests.unmet(invariant, true),
            self.open_to_others(invariant, requests),
            requests.other_backend(invariant),
            former.and_then(|former| requests.lost(invariant, former)),
        ]
    }

    /// Whether the requests reach a backend from other addresses than those of the policies in `only_from`.
    fn open_to_others(&self, invariant: &Invariant, requests: JudgedRequests<'_, 's>) -> Option<Flaw> {
        let only = &invariant.only_from;
        let is_within = |ids: &[String]| !ids.is_empty() && ids.iter().all(|id| only.contains(id));
        let endpoints: Vec<&[String]> = self.endpoints.ip_policies().collect();
        let endpoints_are_within = !endpoints.is_empty() && endpoints.iter().all(|ids| is_within(ids));
        if only.is_empty() || endpoints_are_within {
            return None;
        }
        let backend = requests.backend()?;
        let outside =
            |ids: &[String]| ids.iter().filter(|id| !only.contains(id)).cloned().collect::<BTreeSet<String>>();
        let are_bound = !endpoints.is_empty() && endpoints.iter().all(|ids| !ids.is_empty());
        let of_endpoints =
            are_bound.then(|| endpoints.iter().flat_map(|ids| outside(ids)).collect::<BTreeSet<String>>());
        let other_of_endpoints = of_endpoints.as_ref().and_then(|ids| ids.first().cloned());
        let mut bounds: Vec<BTreeSet<String>> = of_endpoints.into_iter().collect();
        let mut others = None;
        for met in requests.modules() {
            let Some(ids) = met.module.ip_policies() else { continue };
            if is_within(ids) {
                return None;
            }
            if !ids.is_empty() {
                bounds.push(outside(ids));
            }
            others = others.or_else(|| Some((met, ids.iter().find(|id| !only.contains(id))?)));
        }
        let extent = FlawExtent::Addresses(bounds);
        if let Some(doubt) = requests.doubt() {
            return Some(doubt.letting(extent));
        }
        if let Some(other) = other_of_endpoints.filter(|_| others.is_none()) {
            return Some(admitted_to_endpoints(&backend, &other).letting(extent));
        }
        let flaw = match others {
            Some((met, other)) => {
                let clause = format!(
                    "reaches the backend `{backend}` from the addresses of the IP policy `{}`",
                    printable(other)
                );
                let list = met.module.access_lists().into_iter().next().map(|(field, _)| field).unwrap_or_default();
                let flaw = Flaw::certain(clause, met.place).at(Path::from([met.slot.name, list.as_str()]));
                let (module, of) = (met.slot.name, requests.name_of(met.place));
                flaw.cured_by(format!("remove `{}` from `{module}` of {of}", printable(other)))
            }
            None => {
                let some: Vec<&str> = only.iter().take(MOST_NAMED).map(String::as_str).collect();
                let module = format!("`ip_restriction: {{ip_policy_ids: [{}]}}`", printable(&some.join(", ")));
                let cure = requests.closing(&invariant.scope, &module);
                let cure = cure.unwrap_or_else(|| format!("add {module} to the route"));
                let clause = format!("reaches the backend `{backend}` from any address");
                requests.lacking(clause, cure, |met| met.module.ip_policies().is_some_and(is_within))
            }
        };
        Some(flaw.letting(extent))
    }
}

/// An IP policy that only a restriction of all endpoints names.
fn admitted_to_endpoints(backend: &str, policy: &str) -> Flaw {
    let policy = printable(policy);
    let clause = format!(
        "reaches the backend `{backend}` from the addresses of the IP policy `{policy}`, which an `IpRestriction` admits"
    );
    Flaw::certain(clause, FlawPlace::Route).cured_by(format!("remove `{policy}` from the `IpRestriction`"))
}

impl<'s> JudgedRequests<'_, 's> {
    /// The backend that the requests reach, unless they end before it.
    fn backend(self) -> Option<String> {
        self.fate.reached_backend().map(printable)
    }

    /// The edge or route that takes the requests, for a message.
    fn name_of(self, place: FlawPlace) -> String {
        let (noun, entry) = match place {
            FlawPlace::Edge => ("edge", self.fate.edge),
            FlawPlace::Route => ("route", self.fate.route),
        };
        let name = entry.map(|entry| printable(&self.fate.full_name(entry))).unwrap_or_default();
        format!("{noun} `{name}`")
    }

    /// The enabled modules that the requests meet.
    fn modules(self) -> impl Iterator<Item = MetModule<'s>> {
        modules_of(self.fate)
    }

    /// The flaw that the requests meet no enabled module that would do. A disabled one is told.
    pub(super) fn lacking(self, clause: String, cure: String, would_do: impl Fn(&MetModule<'_>) -> bool) -> Flaw {
        let mut disabled = present_modules_of(self.fate).filter(|met| !met.module.enabled());
        let Some(met) = disabled.find(would_do) else { return Flaw::certain(clause, FlawPlace::Route).cured_by(cure) };
        let name = met.slot.name;
        let flaw = Flaw::certain(format!("{clause}: `{name}` is disabled"), FlawPlace::Route);
        // The edge of many routes is not to blame for each of them.
        let is_to_blame = met.place == FlawPlace::Route || self.fate.route.is_none();
        let flaw = if is_to_blame { flaw.at([name, "enabled"]) } else { flaw };
        flaw.cured_by(format!("enable `{name}`"))
    }

    /// How to add a module if the route takes other requests than those of a scope, too. On the route itself, the module would
    /// restrict these as well.
    fn closing(self, scope: &InvariantScope, module: &str) -> Option<String> {
        let matches = self.closer_matches(scope);
        let routes = match matches.len() {
            0 => return None,
            1 => "a route",
            _ => "routes",
        };
        let named = first_of(matches.iter().map(|it| format!("`{}`", printable(it))), MOST_NAMED);
        Some(format!("add {routes} for {named} with {module}, or restrict the whole route"))
    }

    /// The matches of routes that would take the requests of a scope only; none if the route takes no others.
    fn closer_matches(self, scope: &InvariantScope) -> BTreeSet<String> {
        let route = self.fate.route_spec().filter(|_| !self.fate.passes_through());
        let selected = route.and_then(|route| Some((Selector::from_route(route)?, route.r#match.as_str())));
        let Some((selector, text)) = selected else { return BTreeSet::new() };
        let taken: Vec<String> = match selector.host.as_str() {
            "" => self.fate.edge.into_iter().flat_map(hostports).map(|(host, _)| host).collect(),
            host => vec![host.to_owned()],
        };
        let listed: Vec<String> = scope.hosts.iter().map(|host| host_name(host)).collect();
        let is_listed = |own: &&String| listed.iter().any(|host| covers_hosts(host, own));
        let are_hosts_listed = listed.is_empty() || taken.iter().all(|own| is_listed(&own));
        let hosts: Vec<&str> = if are_hosts_listed {
            vec![text.split_once('/').map_or(text, |(host, _)| host)]
        } else {
            let narrower = listed.iter().filter(|host| taken.iter().any(|own| covers_hosts(own, host)));
            taken.iter().filter(is_listed).chain(narrower).map(String::as_str).collect()
        };
        let prefixes = &scope.path_prefixes;
        let are_paths_listed =
            prefixes.is_empty() || prefixes.iter().any(|prefix| selector.path.starts_with(prefix.as_str()));
        let paths: Vec<&str> = if are_paths_listed {
            vec![selector.path]
        } else {
            prefixes.iter().map(String::as_str).filter(|prefix| prefix.starts_with(selector.path)).collect()
        };
        if are_hosts_listed && are_paths_listed {
            return BTreeSet::new();
        }
        hosts.iter().flat_map(|host| paths.iter().map(move |path| format!("{host}{path}"))).collect()
    }

    /// The doubt about the requests because of a module whose effect is unknown.
    fn doubt(self) -> Option<Flaw> {
        let met = self.modules().find(|met| met.module.admits() == Admittance::Unknown)?;
        Some(met.doubt("the effect of `{}`"))
    }

    /// Whether the requests use an older version of TLS than `min_tls_version`.
    fn old_tls(self, invariant: &Invariant) -> Option<Flaw> {
        let (oldest, tls) = (invariant.min_tls_version?, self.fate.tls()?);
        if self.port == PLAIN_HTTP {
            let clause = format!("has no TLS: port {PLAIN_HTTP} is that of plain HTTP");
            let is_plain = |text: &String| parse_hostport(text).is_ok_and(|(_, port)| port == PLAIN_HTTP);
            let at = self.fate.edge_spec().and_then(|edge| edge.hostports.iter().position(is_plain));
            let field = at.map_or_else(|| Path::from("hostports"), |at| Path::from(("hostports", at)));
            let flaw = Flaw::certain(clause, FlawPlace::Edge).at(field);
            return Some(flaw.cured_by(format!("remove the hostports with port {PLAIN_HTTP}")));
        }
        let edge = self.fate.edge_spec()?;
        let field = |name: &str| match &edge.tls_termination {
            Some(_) => Path::from(["tls_termination", name]),
            None => Path::root(),
        };
        if !tls.enabled {
            let flaw = Flaw::doubt("the disabled `tls_termination`", FlawPlace::Edge).at(field("enabled"));
            return Some(flaw.cured_by("enable `tls_termination`"));
        }
        match tls.effective_min_version() {
            None => {
                let flaw = Flaw::doubt("the upstream, where TLS terminates", FlawPlace::Edge).at(field("terminate_at"));
                Some(flaw.cured_by("terminate TLS at the edge"))
            }
            Some(version) if version < oldest => {
                let clause = format!("can use TLS {}, which is older than {}", version.as_str(), oldest.as_str());
                let flaw = Flaw::certain(clause, FlawPlace::Edge).at(field("min_version"));
                let is_default = TlsTermination::default().effective_min_version() >= Some(oldest);
                let or = if is_default { ", or remove it" } else { "" };
                let flaw = flaw.cured_by(format!("set `min_version` to {}{or}", oldest.as_str()));
                Some(flaw.letting(FlawExtent::Tls(version)))
            }
            Some(_) => None,
        }
    }

    /// Whether the requests reach a backend without any of the modules in `requires_any`: the preflights among them, or the others.
    fn unmet(self, invariant: &Invariant, are_preflights: bool) -> Option<Flaw> {
        if invariant.requires_any.is_empty() {
            return None;
        }
        let method = method_in(&invariant.scope, are_preflights)?;
        let request = TracedRequest { method, ..TracedRequest::default() };
        self.unmet_by(&request, invariant, &self.backend()?)
    }

    fn unmet_by(self, request: &TracedRequest, invariant: &Invariant, backend: &str) -> Option<Flaw> {
        let required = &invariant.requires_any;
        let (mut doubt, mut passed, mut passing) = (None, String::new(), None);
        for met in self.modules().filter(|met| required.iter().any(|name| name == met.slot.name)) {
            let is_policy = met.slot.name == Policies::SLOT;
            if met.module.admits() == Admittance::Everybody {
                let verb = if is_policy { "admit" } else { "admits" };
                passed = format!("; `{}` {verb} everybody", met.slot.name);
                passing = passing.or(Some(met.slot.name).filter(|_| !is_policy));
                continue;
            }
            let steps = met.module.steps(request);
            let lets_pass = steps.iter().all(|step| step.effect == StepEffect::Passes);
            if met.module.restricts_access() && lets_pass {
                let note = steps.into_iter().next().map(|step| step.note).unwrap_or_default();
                passed = format!("; `{}`: {note}", met.slot.name);
                passing = Some(met.slot.name);
                continue;
            }
            let at = self.fate.edge.zip(steps.first());
            let missing = at
                .and_then(|(edge, step)| MissingTls::for_module(met.slot, step.stage, edge.spec().as_ref(), self.port));
            doubt = Some(match missing {
                _ if is_policy || met.module.admits() == Admittance::Unknown => met.doubt("the effect of `{}`"),
                Some(MissingTls::AtEdge) => met.doubt("the edge, which does not terminate TLS for `{}`"),
                Some(MissingTls::AtPort) => met.doubt("port 80, which has no TLS for `{}`"),
                None => return None,
            });
        }
        if let Some(doubt) = doubt.or_else(|| self.doubt()) {
            return Some(Flaw { method: request.method.clone(), ..doubt });
        }
        let clause = format!("reaches the backend `{backend}` without {}{passed}", any_of(required));
        let cure = match passing {
            Some(name) => format!("let `{name}` check these requests, too"),
            None => {
                let those_of = |slots: &[Slot]| -> Vec<String> {
                    required.iter().filter(|name| slots.iter().any(|slot| slot.name == **name)).cloned().collect()
                };
                let (of_routes, of_edges) = (those_of(HttpsEdgeRoute::SLOTS), those_of(HttpsEdge::SLOTS));
                let (on_route, on_edge) = (any_of(&of_routes), any_of(&of_edges));
                let closing = if of_routes.is_empty() { None } else { self.closing(&invariant.scope, &on_route) };
                closing.unwrap_or_else(|| match (of_routes.is_empty(), of_edges.is_empty()) {
                    (_, true) => format!("add {on_route} to the route"),
                    (true, false) => format!("add {on_edge} to the edge"),
                    (false, false) => format!("add {on_route} to the route, or {on_edge} to its edge"),
                })
            }
        };
        let flaw = self.lacking(clause, cure, |met| required.iter().any(|name| name == met.slot.name));
        Some(Flaw { method: request.method.clone(), ..flaw })
    }

    /// Whether the requests reach another backend than those in `backends`.
    fn other_backend(self, invariant: &Invariant) -> Option<Flaw> {
        let (known, id) = (&invariant.backends, self.fate.reached_backend()?);
        if known.is_empty() || known.iter().any(|pattern| selects_name(pattern, id)) {
            return None;
        }
        let extent = FlawExtent::Backend(id.to_owned());
        if let Some(doubt) = self.doubt() {
            return Some(doubt.letting(extent));
        }
        let names: Vec<String> = known.iter().map(|pattern| format!("`{}`", printable(pattern))).collect();
        let names = names.join(" or ");
        let clause = format!("reaches the backend `{}`, not {names}", printable(id));
        let request = TracedRequest::default();
        let is_backend =
            |met: &MetModule<'_>| met.module.steps(&request).iter().any(|step| step.stage == Stage::Backend);
        let field = self.modules().find(is_backend).map(|met| Path::from(met.slot.name));
        let flaw = Flaw::certain(clause, FlawPlace::Route).at(field.unwrap_or_default());
        let flaw = flaw.cured_by(format!("send these requests to {names}"));
        Some(flaw.letting(extent))
    }
}

impl MetModule<'_> {
    /// A doubt because of this module, whose name replaces `{}`.
    pub(super) fn doubt(&self, clause: &str) -> Flaw {
        let clause = clause.replace("{}", self.slot.name);
        Flaw::doubt(&clause, self.place).at(self.slot.name)
    }
}

/// A method of a scope: that of preflight requests, or one of the others; none if the scope has no such method.
pub(super) fn method_in(scope: &InvariantScope, are_preflights: bool) -> Option<String> {
    let any = if are_preflights { PREFLIGHT } else { "GET" };
    let mut listed = scope.methods.iter().map(String::as_str);
    let method = match scope.methods.is_empty() {
        true => Some(any),
        false => listed.find(|it| it.eq_ignore_ascii_case(PREFLIGHT) == are_preflights),
    };
    method.map(str::to_ascii_uppercase)
}

/// Names of modules of which one is enough.
fn any_of(names: &[String]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    match quoted.len() {
        0..=2 => quoted.join(" or "),
        _ => format!("any of {}", quoted.join(", ")),
    }
}

/// The enabled modules of the edge and the route that take requests.
pub(super) fn modules_of<'s>(fate: &Fate<'s>) -> impl Iterator<Item = MetModule<'s>> + use<'s> {
    present_modules_of(fate).filter(|met| met.module.enabled())
}

/// The modules of the edge and the route that take requests.
fn present_modules_of<'s>(fate: &Fate<'s>) -> impl Iterator<Item = MetModule<'s>> + use<'s> {
    let hosts = [(FlawPlace::Edge, fate.edge), (FlawPlace::Route, fate.route)];
    let hosts = hosts.into_iter().filter_map(|(place, entry)| Some((place, entry?.as_ref())));
    hosts.flat_map(|(place, entry): (FlawPlace, &'s Entry)| {
        entry.spec().modules().map(move |(slot, module)| MetModule { place, slot, module })
    })
}
