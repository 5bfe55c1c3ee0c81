//! The views of lints: the whole input of each check of resources.
//!
//! The findings of a lint are kept as long as its inputs are the same (`judged_parts.rs`), and its inputs are what its view has. So a
//! view of resources gives access through methods only, and whatever a method shows is compared when the next run asks for
//! the findings.

use std::{ops::Deref, sync::Arc};

use jiff::Timestamp;

use super::by_kind::{entries_of_kind, of_kind};
use super::clean_modules::CleanModules;
use super::finding::Findings;
use super::world::World;
use crate::model::module::oauth::CommonApp;
use crate::model::{AnyResource, Desired, Entry, HttpsEdge, HttpsEdgeRoute, Id, Key, Kind, Resource};

/// Some resources: edges with all their routes, or resources of other kinds.
pub(crate) struct EdgeView<'a> {
    world: &'a World<'a>,
    /// Sorted by key.
    resources: &'a [&'a Desired],
}

/// Edges with their routes, all other edges of the source with the same hosts, and the edges and routes of other sources and
/// the routes without a source that concern them; or all resources of the source, those of other sources, and such routes.
pub(crate) struct HostView<'a> {
    edges: EdgeView<'a>,
    others: &'a [Arc<Entry>],
}

impl<'a> EdgeView<'a> {
    /// A view of some resources of a world, sorted by key.
    pub(super) fn new(world: &'a World<'a>, resources: &'a [&'a Desired]) -> Self {
        Self { world, resources }
    }

    /// Returns every resource, in the order of their keys.
    pub(super) fn resources(&self) -> impl Iterator<Item = (&Key, &Arc<dyn AnyResource>)> {
        self.resources.iter().map(|desired| (&desired.key, &desired.spec))
    }

    /// Returns every resource of a kind, typed, in the order of their keys.
    pub(super) fn all<R: Resource>(&self) -> impl Iterator<Item = (&Key, &R)> {
        of_kind(self.resources, R::INFO.kind).iter().filter_map(|desired| Some((&desired.key, desired.spec_as::<R>()?)))
    }

    /// Returns a module of every route that has it, in the order of the routes' keys.
    pub(super) fn route_modules<'v, M: 'v>(
        &'v self,
        module: impl Fn(&'v HttpsEdgeRoute) -> Option<&'v M>,
    ) -> impl Iterator<Item = (&'v Key, &'v M)> {
        self.all::<HttpsEdgeRoute>().filter_map(move |(key, route)| Some((key, module(route)?)))
    }

    /// Judges a module of every route that has it, in the order of the routes' keys. A module that many routes share is judged
    /// once if nothing is found in it, so whether something is found must not depend on the route.
    pub(super) fn judge_modules<'v, M: 'v>(
        &'v self,
        findings: &mut Findings,
        module: impl Fn(&'v HttpsEdgeRoute) -> Option<&'v M>,
        check: impl Fn(&Key, &M, &mut Findings),
    ) {
        let mut clean_modules = CleanModules::default();
        for (key, module) in self.route_modules(module) {
            clean_modules.judge(module, findings, |findings| check(key, module, findings));
        }
    }

    /// Returns the app of each provider of every `oauth` module, in the order of the routes' keys.
    pub(super) fn oauth_apps(&self) -> impl Iterator<Item = (&Key, CommonApp<'_>)> {
        let modules = self.route_modules(|route| route.oauth.as_deref());
        modules.flat_map(|(key, oauth)| oauth.provider.apps().into_iter().map(move |app| (key, app)))
    }

    /// Like [`all`](Self::all), with the source that owns each.
    pub(super) fn with_source<R: Resource>(&self) -> impl Iterator<Item = (&Key, &R, &str)> {
        let all = of_kind(self.resources, R::INFO.kind).iter();
        all.filter_map(|desired| Some((&desired.key, desired.spec_as::<R>()?, desired.claim.source.as_str())))
    }

    /// Like [`all`](Self::all), in the order of the manifests: of two duplicates, the second one is the mistake.
    pub(super) fn in_order<R: Resource>(&self) -> Vec<(&Key, &R)> {
        let mut all: Vec<&&Desired> = of_kind(self.resources, R::INFO.kind).iter().collect();
        all.sort_by_key(|desired| desired.position);
        all.into_iter().filter_map(|desired| Some((&desired.key, desired.spec_as::<R>()?))).collect()
    }

    /// Returns the routes of an edge, in the order of their keys.
    pub(super) fn routes_of(&self, edge: &Id) -> impl Iterator<Item = (&Key, &HttpsEdgeRoute)> {
        let routes = of_kind(self.resources, Kind::HttpsEdgeRoute);
        let from = routes.partition_point(|route| route.key.parent.as_ref() < Some(edge));
        let to = routes.partition_point(|route| route.key.parent.as_ref() <= Some(edge));
        let routes = routes.get(from..to).unwrap_or_default().iter();
        routes.filter_map(|route| Some((&route.key, route.spec_as::<HttpsEdgeRoute>()?)))
    }

    /// Returns a route's edge, if the manifests declare it.
    pub(super) fn edge_of(&self, route: &Key) -> Option<&HttpsEdge> {
        let edge = route.parent.as_ref().filter(|_| route.kind == Kind::HttpsEdgeRoute)?;
        let edges = of_kind(self.resources, Kind::HttpsEdge);
        let found = edges.binary_search_by(|it| it.key.id.cmp(edge)).ok()?;
        edges.get(found)?.spec_as()
    }

    /// Returns the name of the certificate authority with an ID, if the manifests declare it.
    pub(super) fn authority_name(&self, id: &str) -> Option<&str> {
        let all = self.world.judged;
        let order = |it: &&Desired| (it.key.kind, it.key.id.as_str()).cmp(&(Kind::CertificateAuthority, id));
        let found = all.binary_search_by(order).ok()?;
        Some(all.get(found)?.claim.name.as_str())
    }

    /// Whether nothing is left out or missing because of an error. A lint that judges what is missing must ask.
    pub(super) fn is_whole(&self) -> bool {
        self.world.is_whole
    }

    /// The current time, to judge whether something is valid. `validity.rs` must know when that changes.
    pub(super) fn now(&self) -> Timestamp {
        self.world.now
    }

    /// How many days before a certificate expires it is reported.
    pub(super) fn expiry_days(&self) -> u32 {
        self.world.expiry_days
    }
}

impl<'a> HostView<'a> {
    /// A view of some resources of a world, and of resources of other sources and routes without one, sorted by key.
    pub(super) fn new(edges: EdgeView<'a>, others: &'a [Arc<Entry>]) -> Self {
        Self { edges, others }
    }

    /// Returns every resource of a kind that another source owns, typed, with the source's name.
    pub(super) fn of_others<R: Resource>(&self) -> impl Iterator<Item = (&Key, &R, &str)> {
        entries_of_kind(self.others, R::INFO.kind)
            .iter()
            .filter_map(|entry| Some((&entry.key, entry.spec_as::<R>()?, entry.source()?)))
    }

    /// Returns every route that no source owns, on an edge that one owns.
    pub(super) fn unmanaged_routes(&self) -> impl Iterator<Item = (&Key, &HttpsEdgeRoute)> {
        let routes = entries_of_kind(self.others, Kind::HttpsEdgeRoute).iter();
        routes
            .filter(|entry| entry.claim.is_none())
            .filter_map(|entry| Some((&entry.key, entry.spec_as::<HttpsEdgeRoute>()?)))
    }
}

impl<'a> Deref for HostView<'a> {
    type Target = EdgeView<'a>;

    fn deref(&self) -> &Self::Target {
        &self.edges
    }
}
