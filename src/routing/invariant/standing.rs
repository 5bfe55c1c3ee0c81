//! An invariant of a state, with the requests that it is about at a time.

use std::sync::Arc;

use jiff::Timestamp;

use super::flaw::{Flaw, FlawExtent, FlawPlace};
use crate::model::claim::SURROUNDING_OWNER;
use crate::model::diagnostics::invariant_finding::InvariantFinding;
use crate::model::kind::invariant::Invariant;
use crate::model::module::backend::Backend;
use crate::model::traffic::{Stage, TracedRequest};
use crate::model::{Code, Entry, Fault, Key, Kind, Module as _, Path, Snapshot};
use crate::routing::behaviour::{Fate, HostClass, RequestClass, RequestScope, UnvisitedEdge, hostports, url_of};
use crate::syntax::text::{escaped, printable};

/// An invariant of a state.
#[derive(Debug, Clone)]
pub(super) struct StandingInvariant<'s> {
    pub(super) entry: &'s Arc<Entry>,
    pub(super) spec: &'s Invariant,
    scope: RequestScope,
    /// The requests of the exemptions that count.
    exempt: Vec<RequestScope>,
    /// The requests about which something unseen may decide.
    pub(super) unsure: Vec<RequestScope>,
}

impl<'s> StandingInvariant<'s> {
    /// All invariants of a state.
    pub(super) fn all(state: &'s Snapshot, now: Timestamp) -> Vec<Self> {
        let entries = state.newest_first(Kind::Invariant, None, u64::MAX).rev();
        entries.filter_map(|entry| Some(Self::new(entry, entry.spec_as()?, now))).collect()
    }

    fn new(entry: &'s Arc<Entry>, spec: &'s Invariant, now: Timestamp) -> Self {
        let scope = RequestScope::new(&spec.scope.hosts, &spec.scope.path_prefixes);
        let exemptions = spec.exemptions.iter().filter(|it| it.counts(now));
        let exempt = RequestScope::joined(exemptions.map(|it| RequestScope::new(&it.hosts, &it.path_prefixes)));
        Self { entry, spec, scope, exempt, unsure: Vec::new() }
    }

    /// The scopes at whose borders classes must end.
    pub(super) fn scopes(&self) -> impl Iterator<Item = RequestScope> {
        std::iter::once(&self.scope).chain(&self.exempt).chain(&self.unsure).cloned()
    }

    /// Whether its scope has the hosts of a class.
    pub(super) fn has_host(&self, host: &HostClass) -> bool {
        self.scope.has_host(host)
    }

    /// Whether the invariant is about the requests of a class with a fate.
    pub(super) fn concerns(&self, class: &RequestClass<'_>, fate: &Fate<'_>) -> bool {
        let sources = &self.spec.scope.sources;
        let is_of_sources = |source: &str| sources.iter().any(|it| it == source) || source == SURROUNDING_OWNER;
        self.scope.contains(class) && (sources.is_empty() || taken_by(fate).is_some_and(is_of_sources))
    }

    /// Whether nobody can tell if the invariant is about the requests with a fate: surrounding manifests do not tell of which source
    /// they are.
    pub(super) fn may_concern(&self, fate: &Fate<'_>) -> bool {
        !self.spec.scope.sources.is_empty() && taken_by(fate) == Some(SURROUNDING_OWNER)
    }

    /// Whether the invariant need not hold for the requests of a class.
    pub(super) fn exempts(&self, class: &RequestClass<'_>) -> bool {
        self.exempt.iter().any(|scope| scope.contains(class))
    }
}

/// The source of the route that takes requests, or of the edge that answers without one.
fn taken_by<'s>(fate: &Fate<'s>) -> Option<&'s str> {
    fate.route.or(fate.edge)?.source()
}

/// A request that breaks an invariant, or may.
#[derive(Debug, Clone)]
pub(crate) struct Breach<'s> {
    /// The invariant.
    pub(crate) invariant: &'s Arc<Entry>,
    /// The request.
    pub(crate) request: TracedRequest,
    /// Whether its host is any one below a wildcard, which nobody has written.
    pub(super) is_any_host: bool,
    /// The violation.
    pub(crate) flaw: Flaw,
    /// The fate of the request.
    pub(crate) fate: Fate<'s>,
    /// The fate of the request before the change that causes the breach.
    pub(super) former: Option<Fate<'s>>,
}

impl<'s> Breach<'s> {
    /// The breach by a class. If no URL is known to be in the class, nobody can tell whether there is such a request, and the
    /// one that is shown has the patterns of the class.
    pub(super) fn new(invariant: &StandingInvariant<'s>, class: &RequestClass<'_>, fate: Fate<'s>, flaw: Flaw) -> Self {
        let (request, flaw, is_any_host) = match class.example() {
            Some(request) => {
                let is_any_host = !class.hosts().any(|host| host.pattern == request.host);
                (request, flaw, is_any_host)
            }
            None => (pattern_of(class), flaw.depending_on("whether a client can send such a request"), false),
        };
        let flaw = match invariant.may_concern(&fate) {
            true => flaw.depending_on("the source of the route in the surrounding manifests"),
            false => flaw,
        };
        // A flaw that does not depend on the method is one of each that the invariant is about.
        let listed = invariant.spec.scope.methods.first().map(|method| method.to_ascii_uppercase());
        let method = if flaw.method.is_empty() { listed.unwrap_or(request.method) } else { flaw.method.clone() };
        let request = TracedRequest { method, ..request };
        Self { invariant: invariant.entry, request, is_any_host, flaw, fate, former: None }
    }

    /// The breach by an edge that is not visited; none if its hosts are outside of the scope. Whoever can add matches could keep
    /// its requests from being judged, so that this stops a change, whatever the invariant says about what nobody can tell.
    pub(super) fn unjudged<const N: usize>(
        invariant: &StandingInvariant<'s>,
        fate: Fate<'s>,
        unvisited: &UnvisitedEdge<'_, N>,
    ) -> Option<Self> {
        let (host, port) = hostports(fate.edge?).find(|(host, _)| invariant.scope.meets(host))?;
        let flaw = Flaw::doubt(&format!("{unvisited}, which are not judged"), FlawPlace::Edge).at("hostports");
        let flaw = flaw.letting(FlawExtent::Unjudged).cured_by("give hosts with matches of their own another edge");
        let request =
            TracedRequest { method: "GET".to_owned(), host, port, path: "/*".to_owned(), ..TracedRequest::default() };
        Some(Self { invariant: invariant.entry, request, is_any_host: false, flaw, fate, former: None })
    }

    /// The edge or route to blame.
    pub(crate) fn culprit(&self) -> &'s Key {
        self.flaw.culprit(&self.fate).unwrap_or(&self.invariant.key)
    }

    /// The fault of this breach in a state, which is reported at a resource: at a field of it if that is the culprit.
    pub(super) fn fault(&self, state: &Snapshot, key: &Key, is_at_culprit: bool) -> Fault {
        let (code, verb, on) = match self.flaw.is_certain {
            true => (Code::InvariantBroken, "breaks", ""),
            false => (Code::InvariantUnproven, "may break", "depends on "),
        };
        let (name, request, clause) = (self.invariant_name(), self.request_text(), &self.flaw.clause);
        let message = format!("this {verb} the invariant {name}: {request} {on}{clause}");
        let fault = Fault::new(code, message).help(self.help(state, key, is_at_culprit));
        let path = if is_at_culprit { self.flaw.path.clone() } else { Path::root() };
        Fault { invariant: Some(Box::new(self.finding(state))), ..fault.at(path) }
    }

    /// The invariant with the request, for programs.
    pub(crate) fn finding(&self, state: &Snapshot) -> InvariantFinding {
        let (entry, spec) = (self.invariant, self.invariant.spec_as::<Invariant>());
        InvariantFinding {
            name: entry.name().unwrap_or(entry.key.id.as_str()).to_owned(),
            source: entry.source().map(str::to_owned),
            description: spec.map(|it| it.description.clone()).unwrap_or_default(),
            certain: self.flaw.is_certain,
            method: self.request.method.clone(),
            url: self.url(),
            reason: self.flaw.clause.clone(),
            way: self.way(state),
        }
    }

    /// How to meet the invariant, and on a line of its own the way of the request.
    fn help(&self, state: &Snapshot, key: &Key, is_at_culprit: bool) -> String {
        format!("{}\nway: {}", self.cure(state, key, is_at_culprit), self.way(state))
    }

    /// How to meet the invariant, for whoever changes a resource.
    pub(crate) fn cure(&self, state: &Snapshot, key: &Key, is_at_culprit: bool) -> String {
        let cure = match self.flaw.cure.as_str() {
            "" => "check what this depends on",
            cure => cure,
        };
        let cure = match self.left_to_another_source(state).filter(|_| !is_at_culprit) {
            Some((former, [source, other])) => format!(
                "ask the owner of source `{}` to correct its route, which takes requests of route `{}` of source `{}` after \
                 this change ({cure})",
                printable(other),
                printable(&state.full_name(former)),
                printable(source)
            ),
            None => cure.to_owned(),
        };
        format!("{cure}, or {}", self.exemption(state, key))
    }

    /// How whoever changes a resource gets an exemption.
    fn exemption(&self, state: &Snapshot, key: &Key) -> String {
        let changing = state.get(key).and_then(|entry| entry.source());
        match self.invariant.source() {
            _ if *key == self.invariant.key => "add an entry to `exemptions`".to_owned(),
            Some(source) if changing == Some(source) => "add an entry to the `exemptions` of the invariant".to_owned(),
            Some(SURROUNDING_OWNER) => "ask the owner of the manifests in `--with` for an exemption".to_owned(),
            Some(source) => format!("ask the owner of source `{}` for an exemption", printable(source)),
            None => "ask the owner of the invariant for an exemption".to_owned(),
        }
    }

    /// The route that took the request before a change of it, if a route of another source takes it after that; and both
    /// sources.
    fn left_to_another_source(&self, state: &Snapshot) -> Option<(&'s Entry, [&'s str; 2])> {
        let (former, successor) = (self.former?.route?, self.fate.route?);
        let (source, other) = (former.source()?, successor.source()?);
        let is_unchanged = state.get(&former.key).is_some_and(|entry| Arc::ptr_eq(entry, former));
        (source != other && !is_unchanged).then_some((&**former, [source, other]))
    }

    /// The method and URL of the request, for a message.
    pub(super) fn request_text(&self) -> String {
        let example = if self.is_any_host { ", for example," } else { "" };
        format!("{}{example}", self.request_code())
    }

    /// The method and URL of the request as code.
    pub(super) fn request_code(&self) -> String {
        format!("`{} {}`", self.request.method, escaped(&self.url()))
    }

    /// The name of the invariant, with its source, or its ID if no source owns it; and its description, which comes first for whoever
    /// does not know it.
    pub(super) fn invariant_name(&self) -> String {
        let name = match self.invariant.claim.as_deref() {
            Some(claim) if claim.source == SURROUNDING_OWNER => format!("`{}` in `--with`", printable(&claim.name)),
            Some(claim) => format!("`{}` of source `{}`", printable(&claim.name), printable(&claim.source)),
            None => format!("`{}`", self.invariant.key.id),
        };
        let description = self.invariant.spec_as::<Invariant>().map(|it| escaped(&it.description));
        format!("{name} ({})", description.unwrap_or_default())
    }

    /// The URL of the request.
    pub(crate) fn url(&self) -> String {
        url_of(&self.request)
    }

    /// The way of the request: edge, route and modules.
    pub(crate) fn way(&self, state: &Snapshot) -> String {
        let named = |entry: &Entry| printable(&state.full_name(entry));
        let Some(edge) = self.fate.edge else { return "no edge serves it".to_owned() };
        let edge = format!("edge `{}`", named(edge));
        let (Some(entry), Some(route)) = (self.fate.route, self.fate.route_spec()) else {
            return format!("{edge} → no route");
        };
        let match_type = route.match_type.map(|it| it.as_str()).unwrap_or_default();
        let by = format!("{match_type} {}", printable(&route.r#match));
        let mut way = format!("{edge} → route `{}` ({by})", named(entry));
        let (of_response, of_request): (Vec<_>, Vec<_>) =
            self.fate.modules().into_iter().partition(|it| it.stage > Stage::Backend);
        for module in of_request {
            way += &match self.fate.backend().filter(|_| module.slot.name == Backend::SLOT) {
                Some(backend) => format!(" → backend `{}`", printable(backend)),
                None => format!(" → `{}`", module.slot.name),
            };
        }
        let names: Vec<String> = of_response.iter().map(|module| format!("`{}`", module.slot.name)).collect();
        if names.is_empty() { way } else { format!("{way}; response: {}", names.join(", ")) }
    }
}

/// The patterns of a class in the place of a host and a path.
fn pattern_of(class: &RequestClass<'_>) -> TracedRequest {
    let (host, port) = class.hosts().next().map(|host| (host.pattern.clone(), host.port)).unwrap_or_default();
    TracedRequest { method: "GET".to_owned(), host, port, path: class.path.to_string(), ..TracedRequest::default() }
}
