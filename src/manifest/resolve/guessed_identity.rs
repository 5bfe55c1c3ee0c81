//! What files do not tell of the resources that they declare: which ones a store would have, on which edges routes are, and which
//! modules a name brings (D107, D120).
//!
//! # The problem
//!
//! A store knows the ID and the source of each resource. Manifests seldom state IDs, and surrounding manifests tell of no source.
//! Several sources can have one name, and the ID that is derived from it is that of whoever applied first.
//!
//! # The idea
//!
//! A state without a store has one of the possibilities, and says which of its edges and routes are a guess ([`Unseen`]). Sure are
//! the routes in the document of their edge, an ID that a manifest states as `metadata.id`, the name of an edge of the same source,
//! and a name that only one edge has. A surrounding resource gets the modules of the surrounding set of a name, which is a guess if
//! the source has another set of that name, unless one file declares both. Which certificate authority a name means changes no answer,
//! but a store refuses an ambiguous name. What it would refuse for that, or for lack of consent, is `guessed_consent`.
//!
//! For example, a surrounding route has `edge: shop`, and both the source and the surrounding manifests declare such an edge. The
//! state has the route on the surrounding edge, and every answer about its requests depends on which of the two it is on.

use foldhash::{HashMap, HashMapExt as _, HashSet};

use super::guessed_consent::{ReferencedNames, are_apart, overlapping_edges};
use super::origin::DocumentKey;
use super::resolution::Resolution;
use super::surrounding::SurroundingState;
use crate::manifest::load::declaration::{Declaration, ModuleSet, Origins};
use crate::manifest::loader::Loaded;
use crate::manifest::prelude::*;
use crate::model::Entry;
use crate::model::claim::SURROUNDING_OWNER;
use crate::routing::invariant::{Unseen, decided_by_ids, depend_on};
use crate::tenancy::delegation::consents_to_another;

/// The edges that manifests declare, by name.
struct EdgesByName<'d>(HashMap<&'d str, Vec<&'d Declaration>>);

impl<'d> EdgesByName<'d> {
    fn new(declared: impl Iterator<Item = &'d Arc<Declaration>>) -> Self {
        let mut by_name: HashMap<&'d str, Vec<&'d Declaration>> = HashMap::new();
        for edge in declared.filter(|it| it.kind == Kind::HttpsEdge) {
            by_name.entry(&*edge.name).or_default().push(edge);
        }
        Self(by_name)
    }

    fn named(&self, name: &str) -> &[&'d Declaration] {
        self.0.get(name).map(Vec::as_slice).unwrap_or_default()
    }
}

/// How a route names its edge.
struct EdgeReference<'d> {
    route: &'d Declaration,
    named: &'d str,
    is_own: bool,
    /// The edge in the state.
    found: &'d Entry,
    /// The declaration of that edge.
    declared: Option<&'d Declaration>,
}

impl<'d> EdgeReference<'d> {
    /// What it depends on that the route is on the edge, with the edges that it may be on instead; none if that is sure.
    fn guess(&self, own: &EdgesByName<'d>, others: &EdgesByName<'d>) -> Option<(String, Vec<&'d Declaration>)> {
        let Self { route, named, is_own, found, declared } = *self;
        let is_surrounding = found.is_owned_by(SURROUNDING_OWNER);
        if route.origin.is_entry() {
            let is_there = declared.is_some_and(|it| it.origin.document_key() == route.origin.document_key());
            return (!is_there).then(|| (self.ambiguous(), others.named(named).to_vec()));
        }
        // Surrounding manifests do not tell of which source they are.
        if let Some((source, name)) = named.rsplit_once('/').filter(|_| is_surrounding) {
            let clause = format!(
                "whether the surrounding edge `{}` is of source `{}`: add --store or --server",
                printable(name),
                printable(source)
            );
            return Some((clause, Vec::new()));
        }
        if named.contains('_') {
            let is_stated = declared.is_some_and(|it| it.id.as_deref() == Some(named));
            let clause = || {
                format!(
                    "which edge has the ID `{}`, which no manifest states: add --store or --server",
                    printable(named)
                )
            };
            return (!is_stated).then(|| (clause(), Vec::new()));
        }
        if named.contains('/') || (is_own && !is_surrounding) {
            return None;
        }
        let candidates = [own.named(named), others.named(named)].concat();
        (candidates.len() > 1).then(|| (self.ambiguous(), candidates))
    }

    /// The clause of a name that several edges have.
    fn ambiguous(&self) -> String {
        let (edge, route) = (printable(self.named), printable(&self.route.name));
        format!("which of the edges with the name `{edge}` has the route `{route}`: add --store or --server")
    }

    /// What it depends on that a surrounding route is on an edge of the source or of another folder, which delegates its match to no
    /// source that the route may be of.
    fn missing_consent(&self, source: &str) -> Option<String> {
        let is_surrounding = self.found.is_owned_by(SURROUNDING_OWNER);
        let is_of_another = || !is_surrounding || self.declared.is_some_and(|edge| are_apart(edge, self.route));
        let edge = self.found.spec_as::<HttpsEdge>().filter(|_| !self.is_own && is_of_another())?;
        let route = self.route.spec.as_any().downcast_ref::<HttpsEdgeRoute>()?;
        let (name, of) = (printable(&self.route.name), printable(self.named));
        let whom = if is_surrounding { "no other folder of --with" } else { "nobody" };
        let whose = if is_surrounding { "" } else { " of this source" };
        let clause = || format!("the surrounding route `{name}`, which the edge `{of}`{whose} delegates to {whom}");
        (!consents_to_another(edge, source, route)).then(clause)
    }
}

/// The keys of resources by their declarations.
fn keys_of(origins: &Origins) -> HashMap<*const Declaration, &Key> {
    origins.iter().map(|(key, it)| (Arc::as_ptr(it), key)).collect()
}

impl SurroundingState {
    /// What is missing in a state that has the resources of a source beside the surrounding ones, and what is a guess in it. `own`
    /// has the declarations of the source.
    pub(crate) fn unseen(&self, state: &Snapshot, own: &Origins) -> Vec<Unseen> {
        let declared = |key: &Key| own.get(key).or_else(|| self.origins.get(key)).map(|it| &**it);
        let (own_edges, others) = (EdgesByName::new(own.values()), EdgesByName::new(self.edges.iter()));
        let routes = own.iter().map(|it| (true, it)).chain(self.origins.iter().map(|it| (false, it)));
        let mut unseen = self.incomplete.clone();
        for (is_own, (key, route)) in routes.filter(|(_, (key, _))| key.kind == Kind::HttpsEdgeRoute) {
            let Some((edge, named)) = key.parent_key().zip(route.parent.as_deref()) else { continue };
            let about = |clause: String| Unseen::new(clause).about(route.spec.as_ref()).guessing([key.clone()]);
            let Some(found) = state.get(&edge) else {
                let id = printable(edge.id.as_str());
                unseen.push(about(format!("the edge `{id}`, which no manifest declares: add --store or --server")));
                continue;
            };
            let reference = EdgeReference { route, named, is_own, found, declared: declared(&edge) };
            if let Some((clause, edges)) = reference.guess(&own_edges, &others) {
                unseen.push(edges.iter().fold(about(clause), |unseen, edge| unseen.about(edge.spec.as_ref())));
            }
            let missing = reference.missing_consent(&self.source);
            unseen.extend(missing.map(|clause| about(clause).about(found.spec().as_ref())));
        }
        let keys = keys_of(&self.origins);
        let key_of = |it: &Arc<Declaration>| keys.get(&Arc::as_ptr(it)).map(|key| (*key).clone());
        unseen.extend(overlapping_edges(&self.edges, &self.source, key_of));
        let is_stated = |key: &Key| declared(key).is_some_and(|it| it.id.as_deref() == Some(key.id.as_str()));
        unseen.extend(decided_by_ids(state, is_stated));
        unseen.sort();
        unseen
    }
}

impl Loaded {
    /// The surrounding declarations that are not in a state, or not as a whole: of which others have the name or the ID, or that
    /// refer to something that nobody can tell. So are those with modules that are a guess.
    pub(super) fn incomplete(&self, resolved: &Resolution, source: &str) -> Vec<Unseen> {
        let keys = keys_of(&resolved.origins);
        let key_of = |it: &Arc<Declaration>| keys.get(&Arc::as_ptr(it)).map(|key| (*key).clone());
        let is_whole = |it: &Arc<Declaration>| key_of(it).is_some_and(|key| !resolved.faulty.contains(&key));
        let all = || self.surrounding().resources.iter().filter(|it| it.kind != Kind::Invariant && depend_on(it.kind));
        let found: Vec<&Arc<Declaration>> = all().filter(|it| !is_whole(it)).collect();
        // An edge stands for its routes.
        let edges: HashSet<DocumentKey> =
            found.iter().filter(|it| !it.origin.is_entry()).map(|it| it.origin.document_key()).collect();
        let is_told = |it: &Declaration| !it.origin.is_entry() || !edges.contains(&it.origin.document_key());
        let mut unseen = Vec::new();
        for it in found.into_iter().filter(|it| is_told(it)) {
            let has_name = |other: &&Arc<Declaration>| (&other.parent, &other.name) == (&it.parent, &it.name);
            let has_id = |other: &&Arc<Declaration>| it.id.is_some() && other.id == it.id;
            let kind = it.kind;
            let of_kind = || all().filter(move |other| other.kind == kind);
            let parent = it.parent.as_deref().map(|parent| format!("{parent}/")).unwrap_or_default();
            let name = format!("{} `{}`", it.kind.info().name, printable(&format!("{parent}{}", it.name)));
            let clause = if of_kind().filter(has_name).count() > 1 {
                format!("{name}, which the surrounding manifests declare more than once")
            } else if of_kind().filter(has_id).count() > 1 {
                format!("{name}, whose ID is stated by several surrounding manifests")
            } else {
                format!("{name}, about which the surrounding manifests are incomplete or ambiguous")
            };
            // Of two with one ID, nobody knows which one a store has. One with the same name is in the state beside it.
            let guessed = of_kind().filter(has_id).chain([it]).filter_map(key_of);
            let about = Unseen::new(clause).guessing(guessed).about(it.spec.as_ref());
            let others = of_kind().filter(has_id).chain(self.edges_of(it, source));
            unseen.push(others.fold(about, |unseen, other| unseen.about(other.spec.as_ref())));
        }
        let names = ReferencedNames::new(self.surrounding().resources.iter().chain(&self.declared().resources));
        for (it, clause) in all().filter_map(|it| Some((it, names.ambiguous_in(it)?))) {
            unseen.push(Unseen::new(clause).about(it.spec.as_ref()).guessing(key_of(it)));
        }
        unseen.extend(resolved.origins.iter().flat_map(|(key, it)| self.guessed_sets(resolved, key, it)));
        unseen
    }

    /// The edges that a surrounding route may be on; none if it may be on one that no manifest declares.
    fn edges_of<'d>(&'d self, route: &'d Declaration, source: &str) -> impl Iterator<Item = &'d Arc<Declaration>> {
        let named = route.parent.as_deref().unwrap_or_default();
        let is_of_another = named.rsplit_once('/').is_some_and(|(of, _)| of != source);
        self.edges_named(named, source).filter(move |_| !is_of_another)
    }

    /// The declared edges that a route may mean by a name or an ID. A surrounding one may be of any source but `source`.
    pub(super) fn edges_named<'d>(
        &'d self,
        named: &'d str,
        source: &str,
    ) -> impl Iterator<Item = &'d Arc<Declaration>> {
        let (of, name) = named.rsplit_once('/').map_or((None, named), |(of, name)| (Some(of), name));
        let (is_own, is_surrounding) = (of.is_none_or(|of| of == source), of != Some(source));
        let own = self.declared().resources.iter().filter(move |_| is_own);
        let others = self.surrounding().resources.iter().filter(move |_| is_surrounding);
        let edges = own.chain(others).filter(|it| it.kind == Kind::HttpsEdge);
        edges.filter(move |it| &*it.name == name || it.id.as_deref() == Some(name))
    }

    /// The module sets that a surrounding resource names and of which the source has others: the resource has those of its own source,
    /// if that declares any.
    fn guessed_sets(&self, resolved: &Resolution, key: &Key, it: &Declaration) -> Vec<Unseen> {
        let own_sets = &self.declared().sets;
        let is_guess = |name: &String, set: &ModuleSet| {
            let differs = own_sets.get(name).is_some_and(|own| !own.has_same_modules(set));
            differs && !Arc::ptr_eq(&set.origin.file, &it.origin.file)
        };
        let named =
            it.sets(&self.surrounding().sets).filter(|(_, name, set)| set.is_some_and(|set| is_guess(name, set)));
        let unseen = named.map(|(_, name, _)| {
            let (kind, of, set) = (it.kind.info().name, printable(&it.name), printable(name));
            let clause = format!(
                "which of the module sets with the name `{set}` the surrounding {kind} `{of}` has: add --store or --server"
            );
            let edge = key.parent_key().and_then(|edge| resolved.desired.get(&edge));
            let about = Unseen::new(clause).about(it.spec.as_ref()).guessing([key.clone()]);
            edge.into_iter().fold(about, |unseen, edge| unseen.about(edge.spec.as_ref()))
        });
        unseen.collect()
    }
}
