//! The parts of an estate that lints judge one by one: some edges with all their routes, and edges that share hosts. The
//! findings of a part hold until one of its resources changes, so that a server judges only what a change concerns.

use std::{
    collections::BTreeMap,
    mem,
    sync::{Arc, Mutex, PoisonError},
};

use jiff::Timestamp;
use rayon::iter::{IndexedParallelIterator, IntoParallelIterator, IntoParallelRefIterator, ParallelIterator};

use super::{
    Finding, Scope, World,
    horizon::next_turn,
    hosts::{HostGroups, NamedHosts, edge_of},
};
use crate::model::{Kind, desired::Desired, id::Id, key::Key, resource::AnyResource, snapshot::Entry};

/// One in so many edges begins a part. The routes of so many fit into a processor's cache, so that only the first lint
/// waits for the memory. A change of one edge is judged with all the others in its part.
const EDGES_OF_A_PART: usize = 16;
/// The most edges of a part.
const MOST_EDGES: usize = 4 * EDGES_OF_A_PART;

/// For edges that share no host with edges outside of their part.
const ALL_OF_A_PART: &[Scope] = &[Scope::Edge, Scope::Host];
const EDGES_ONLY: &[Scope] = &[Scope::Edge];
const HOSTS_ONLY: &[Scope] = &[Scope::Host];

/// Findings with the position of their lint in the table.
pub(super) type Numbered = Vec<(usize, Finding)>;

/// What keeps the findings of a part: the first scope of its lints, and its first resource.
pub(super) type PartKey = (Scope, Key);

/// The resources of a kind, which are neighbours: keys sort by kind first.
pub(super) fn of_kind<'d, 'a>(sorted: &'d [&'a Desired], kind: Kind) -> &'d [&'a Desired] {
    of_one_kind(sorted, kind, |desired| desired.key.kind)
}

/// Like [`of_kind`], for the resources of a store.
pub(super) fn entries_of_kind(sorted: &[Arc<Entry>], kind: Kind) -> &[Arc<Entry>] {
    of_one_kind(sorted, kind, |entry| entry.key.kind)
}

fn of_one_kind<T>(sorted: &[T], kind: Kind, kind_of: impl Fn(&T) -> Kind) -> &[T] {
    let from = sorted.partition_point(|it| kind_of(it) < kind);
    let to = sorted.partition_point(|it| kind_of(it) <= kind);
    sorted.get(from..to).unwrap_or_default()
}

/// Some resources that are judged together.
pub(super) struct WorldPart<'a> {
    /// The lints that judge them.
    scopes: &'static [Scope],
    resources: Vec<&'a Desired>,
    /// The edges and routes of other sources that concern them.
    others: Vec<Arc<Entry>>,
    /// The hosts of each edge, for lints of [`Scope::Edge`].
    hosts: Vec<NamedHosts>,
    /// The findings of an earlier run on the same resources.
    known: Option<KeptPart>,
}

impl<'a> WorldPart<'a> {
    /// All parts of a world, with what is known about each from an earlier run.
    pub(super) fn all(world: &World<'a>, earlier: KeptParts) -> Vec<Self> {
        let apart = apart_from_edges(world.judged);
        let KeptParts { settings, apart: kept_apart, mut parts, .. } = earlier;
        let kept_apart = kept_apart.filter(|kept| settings == settings_of(world) && kept.seen.is(&apart));
        if kept_apart.is_none() {
            // Edges reference resources of other kinds.
            parts.clear();
        }
        let mut kept =
            |scopes: &[Scope], part: &[&Desired]| parts.remove(&(scopes.first().copied()?, part.first()?.key.clone()));
        let edges = edges_with_routes(world.judged).into_iter().map(|resources| {
            let kept = kept(ALL_OF_A_PART, &resources);
            (resources, kept)
        });
        let edges: Vec<(Vec<&'a Desired>, Option<KeptPart>)> = edges.collect();
        let mut edges: Vec<Self> =
            edges.into_par_iter().with_max_len(1).map(|(resources, kept)| Self::of_edges(resources, kept)).collect();
        let of_groups = share_hosts(&mut edges, world.others);
        for part in &mut edges {
            let scopes = part.scopes;
            part.known = part.known.take().filter(|known| known.scopes == scopes && known.holds_at(world.now));
        }
        let of_groups: Vec<Self> = of_groups
            .into_iter()
            .map(|(resources, others)| {
                let known = kept(HOSTS_ONLY, &resources)
                    .filter(|kept| kept.seen.is(&resources) && kept.is_beside(&others) && kept.holds_at(world.now));
                Self { scopes: HOSTS_ONLY, resources, others, hosts: Vec::new(), known }
            })
            .collect();
        let known = kept_apart.filter(|kept| kept.holds_at(world.now));
        let apart = Self { scopes: EDGES_ONLY, resources: apart, others: Vec::new(), hosts: Vec::new(), known };
        std::iter::once(apart).chain(edges).chain(of_groups).collect()
    }

    /// Some edges with their routes. What is known about them may be out of date.
    fn of_edges(resources: Vec<&'a Desired>, kept: Option<KeptPart>) -> Self {
        let mut known = kept.filter(|kept| kept.seen.is(&resources));
        let hosts = match &mut known {
            Some(known) => mem::take(&mut known.hosts),
            None => NamedHosts::all(&resources),
        };
        Self { scopes: ALL_OF_A_PART, resources, others: Vec::new(), hosts, known }
    }

    /// The findings about the part, made only if they are not known.
    pub(super) fn findings(&self, world: &World<'_>, judge: impl FnOnce(&World<'_>, &[Scope]) -> Numbered) -> Numbered {
        match &self.known {
            Some(known) => known.findings.clone(),
            None => judge(&World { judged: &self.resources, others: &self.others, ..*world }, self.scopes),
        }
    }

    /// The part as it is kept for the next run.
    fn kept(self, order: usize, world: &World<'_>, findings: &[(usize, Finding)]) -> KeptPart {
        match self.known {
            // The level of a finding may be another one by now.
            Some(known) => KeptPart { order, hosts: self.hosts, shown: None, ..known },
            None => KeptPart {
                order,
                shown: None,
                scopes: self.scopes,
                seen: SeenPart::of(&self.resources),
                since: world.now,
                until: next_turn(&World { judged: &self.resources, ..*world }),
                others: self.others,
                hosts: self.hosts,
                findings: findings.to_vec(),
            },
        }
    }
}

/// Findings of the last run.
#[derive(Debug, Default)]
pub(crate) struct KnownFindings(pub(super) Mutex<KeptParts>);

impl KnownFindings {
    /// Takes what the last run kept. The number stays, so that no two runs have the same one.
    pub(super) fn take(&self) -> KeptParts {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let number = kept.number + 1;
        mem::replace(&mut *kept, KeptParts { number, ..KeptParts::default() })
    }

    /// The time from which a lint may report something else about the same resources, or none.
    pub(crate) fn hold_until(&self) -> Option<Timestamp> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).all().filter_map(|part| part.until).min()
    }

    /// The number of the last findings.
    pub(crate) fn number(&self) -> u64 {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).number
    }

    /// Keeps the findings of a run for the next one: those about each part, and those of each lint about the whole.
    pub(super) fn keep(
        &self,
        world: &World<'_>,
        parts: Vec<WorldPart<'_>>,
        findings: &[Numbered],
        whole: Vec<Numbered>,
    ) {
        let parts = parts.into_par_iter().zip(findings.par_iter()).enumerate();
        let kept = parts.map(|(order, (part, findings))| part.kept(order, world, findings));
        let mut of_parts = kept.collect::<Vec<KeptPart>>().into_iter();
        let apart = of_parts.next();
        let keyed = of_parts.filter_map(|part| Some(((*part.scopes.first()?, part.seen.first()?.clone()), part)));
        let parts = keyed.collect();
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (settings, number) = (settings_of(world), kept.number + 1);
        *kept = KeptParts { settings, apart, parts, whole, shown_of_whole: None, number };
    }
}

/// The settings that findings depend on.
pub(super) fn settings_of(world: &World<'_>) -> (bool, u32) {
    (world.is_whole, world.expiry_days)
}

/// The parts of a run with their findings.
#[derive(Debug, Default)]
pub(super) struct KeptParts {
    pub settings: (bool, u32),
    /// What edges and routes reference, and everything else that is no edge or route.
    pub apart: Option<KeptPart>,
    pub parts: BTreeMap<PartKey, KeptPart>,
    /// The findings of each lint about the whole.
    pub whole: Vec<Numbered>,
    /// Those that may be shown, if that is known.
    pub shown_of_whole: Option<Numbered>,
    /// Another one for each run.
    pub number: u64,
}

impl KeptParts {
    /// All parts.
    pub(super) fn all(&self) -> impl Iterator<Item = &KeptPart> {
        self.apart.iter().chain(self.parts.values())
    }
}

/// A part with its findings.
#[derive(Debug)]
pub(super) struct KeptPart {
    /// The place among the parts of a run.
    pub order: usize,
    scopes: &'static [Scope],
    seen: SeenPart,
    pub others: Vec<Arc<Entry>>,
    pub hosts: Vec<NamedHosts>,
    pub findings: Numbered,
    /// The findings that may be shown, if that is known.
    pub shown: Option<Numbered>,
    /// When it was judged.
    since: Timestamp,
    /// When a certificate or SAML metadata next becomes valid or expires.
    until: Option<Timestamp>,
}

impl KeptPart {
    /// Whether the findings are those that a run now would make. The clock may have been set back.
    pub(super) fn holds_at(&self, now: Timestamp) -> bool {
        self.since <= now && self.until.is_none_or(|until| now < until)
    }

    /// Whether the entries of other sources are the same.
    fn is_beside(&self, others: &[Arc<Entry>]) -> bool {
        self.others.iter().map(Arc::as_ptr).eq(others.iter().map(Arc::as_ptr))
    }

    /// Whether lints of a scope judge it.
    pub(super) fn is_judged_by(&self, scope: Scope) -> bool {
        self.scopes.contains(&scope)
    }

    /// The keys of its resources, in their order.
    pub(super) fn keys(&self) -> impl Iterator<Item = &Key> {
        self.seen.resources.iter().map(|seen| &seen.key)
    }

    /// Whether a resource is in it.
    pub(super) fn has(&self, key: &Key) -> bool {
        self.spec_of(key).is_some()
    }

    /// The Spec with which a resource in it was judged.
    pub(super) fn spec_of(&self, key: &Key) -> Option<&dyn AnyResource> {
        let found = self.seen.resources.binary_search_by(|seen| seen.key.cmp(key)).ok()?;
        Some(self.seen.resources.get(found)?.spec.as_ref())
    }

    /// The same part, whose resources have other Specs, with the findings about them.
    pub(super) fn renewed(&self, world: &World<'_>, findings: Numbered) -> Self {
        let order = self.seen.order.clone();
        Self {
            order: self.order,
            scopes: self.scopes,
            seen: SeenPart { resources: world.judged.iter().map(|it| SeenResource::of(it)).collect(), order },
            others: self.others.clone(),
            hosts: self.hosts.clone(),
            findings,
            shown: None,
            since: world.now,
            until: next_turn(world),
        }
    }
}

/// Resources as they were judged.
#[derive(Debug)]
struct SeenPart {
    resources: Vec<SeenResource>,
    /// Their indices in the order of files and lines.
    order: Vec<usize>,
}

impl SeenPart {
    fn of(resources: &[&Desired]) -> Self {
        let mut order: Vec<usize> = (0..resources.len()).collect();
        order.sort_unstable_by_key(|index| resources.get(*index).map(|it| place_of(it)));
        Self { resources: resources.iter().map(|it| SeenResource::of(it)).collect(), order }
    }

    fn first(&self) -> Option<&Key> {
        self.resources.first().map(|seen| &seen.key)
    }

    /// Whether resources are those that were judged, in the same order of files and lines. Resources before and between
    /// them may have come and gone.
    fn is(&self, resources: &[&Desired]) -> bool {
        self.resources.len() == resources.len()
            && self.resources.iter().zip(resources).all(|(seen, it)| seen.is(it))
            && self.order.iter().map(|index| resources.get(*index).map(|it| place_of(it))).is_sorted()
    }
}

/// The place of a resource in the order of files and lines, which is one for each kind.
fn place_of(it: &Desired) -> (Kind, u32) {
    (it.key.kind, it.position)
}

/// A resource as it was judged.
#[derive(Debug)]
struct SeenResource {
    key: Key,
    spec: Arc<dyn AnyResource>,
    /// The name, which no lint looks at in edges and routes.
    name: Option<String>,
}

impl SeenResource {
    fn of(it: &Desired) -> Self {
        let name = (!is_of_edge(it)).then(|| it.claim.name.clone());
        Self { key: it.key.clone(), spec: Arc::clone(&it.spec), name }
    }

    fn is(&self, it: &Desired) -> bool {
        Arc::ptr_eq(&self.spec, &it.spec)
            && is_same_key(&self.key, &it.key)
            && self.name.as_ref().is_none_or(|name| *name == it.claim.name)
    }
}

/// Whether two keys are equal. The IDs of resources in a store are the same values in every run, so most need not be
/// read.
fn is_same_key(one: &Key, other: &Key) -> bool {
    let is_same = |one: &Id, other: &Id| std::ptr::eq(one.as_str(), other.as_str()) || one == other;
    let parents_are_same = match (&one.parent, &other.parent) {
        (Some(one), Some(other)) => is_same(one, other),
        (None, None) => true,
        _ => false,
    };
    one.kind == other.kind && is_same(&one.id, &other.id) && parents_are_same
}

fn is_of_edge(it: &Desired) -> bool {
    matches!(it.key.kind, Kind::HttpsEdge | Kind::HttpsEdgeRoute)
}

/// The resources that are neither edges nor routes.
fn apart_from_edges<'a>(judged: &[&'a Desired]) -> Vec<&'a Desired> {
    let before = |kind: Kind| judged.partition_point(|it| it.key.kind < kind);
    let upto = |kind: Kind| judged.partition_point(|it| it.key.kind <= kind);
    let (edges, routes) = (Kind::HttpsEdge, Kind::HttpsEdgeRoute);
    let apart = [judged.get(..before(edges)), judged.get(upto(edges)..before(routes)), judged.get(upto(routes)..)];
    apart.into_iter().flatten().flatten().copied().collect()
}

/// Divides edges with their routes. Where a part begins depends on the edge and not on those before it, so an edge more
/// or less changes one part.
fn edges_with_routes<'a>(judged: &[&'a Desired]) -> Vec<Vec<&'a Desired>> {
    let (mut edges, mut routes) = (of_kind(judged, Kind::HttpsEdge), of_kind(judged, Kind::HttpsEdgeRoute));
    let mut parts = Vec::new();
    let begins = |edge: &&Desired| {
        let sum: usize = edge.key.id.as_str().bytes().map(usize::from).sum();
        sum.is_multiple_of(EDGES_OF_A_PART)
    };
    while !edges.is_empty() || !routes.is_empty() {
        let length = edges.iter().skip(1).take(MOST_EDGES - 1).position(begins).map_or(MOST_EDGES, |at| at + 1);
        let (part, later) = edges.split_at(length.min(edges.len()));
        // Routes are sorted by their edges. Those of an edge elsewhere go with the edges before it.
        let count = match later.first() {
            Some(next) => routes.partition_point(|route| route.key.parent.as_ref() < Some(&next.key.id)),
            None => routes.len(),
        };
        let (own, rest) = routes.split_at(count);
        parts.push(part.iter().chain(own).copied().collect());
        (edges, routes) = (later, rest);
    }
    parts
}

/// Resources to judge together, and those of other sources beside them.
type SharedResources<'a> = (Vec<&'a Desired>, Vec<Arc<Entry>>);

/// Takes the edges that share hosts out of their parts, as far as lints of [`Scope::Host`] are concerned. Returns each
/// group of them, and what else is in these parts.
fn share_hosts<'a>(parts: &mut [WorldPart<'a>], others: &[Arc<Entry>]) -> Vec<SharedResources<'a>> {
    let groups = HostGroups::find(parts.iter().flat_map(|part| &part.hosts), others);
    if groups.of_edge.is_empty() {
        return Vec::new();
    }
    let is_shared = |hosts: &NamedHosts| groups.of_edge.contains_key(&hosts.edge);
    let parts: Vec<&mut WorldPart<'a>> = parts.iter_mut().filter(|part| part.hosts.iter().any(is_shared)).collect();
    let mut of_groups: Vec<Vec<&'a Desired>> = vec![Vec::new(); groups.others.len()];
    let mut rests: Vec<Vec<&'a Desired>> = vec![Vec::new(); parts.len()];
    let is_of_one = |one: &&Desired, other: &&Desired| edge_of(&one.key) == edge_of(&other.key);
    // Resources are judged in the order of their keys: first all edges, then their routes.
    for kind in [Kind::HttpsEdge, Kind::HttpsEdgeRoute] {
        for (part, rest) in parts.iter().zip(&mut rests) {
            for of_edge in of_kind(&part.resources, kind).chunk_by(is_of_one) {
                let number = of_edge.first().and_then(|it| groups.of_edge.get(edge_of(&it.key)));
                match number.and_then(|number| of_groups.get_mut(*number)) {
                    Some(group) => group.extend_from_slice(of_edge),
                    None => rest.extend_from_slice(of_edge),
                }
            }
        }
    }
    for part in parts {
        part.scopes = EDGES_ONLY;
    }
    let rests = rests.into_iter().filter(|rest| !rest.is_empty()).map(|rest| (rest, Vec::new()));
    of_groups.into_iter().zip(groups.others).chain(rests).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::{
        lint::ManifestFacts,
        model::{kind::https_edge::HttpsEdge, operation::Claim},
    };

    fn edge(id: &str, host: &str, position: u32) -> Desired {
        let claim = Arc::new(Claim { source: "s".into(), name: id.into(), ..Claim::default() });
        let spec = Arc::new(HttpsEdge { hostports: vec![format!("{host}:443")], ..HttpsEdge::default() });
        Desired { key: Key::new(Kind::HttpsEdge, Id::new(id)), spec, claim, position, token_file: None, replaces: None }
    }

    /// The first edge of each part of a run, and whether its findings were known.
    fn run(known: &KnownFindings, edges: &[&Desired]) -> Vec<(String, bool)> {
        let desired: BTreeMap<Key, Desired> = edges.iter().map(|it| (it.key.clone(), Desired::clone(it))).collect();
        let judged: Vec<&Desired> = desired.values().collect();
        let manifests = ManifestFacts::default();
        let world = World {
            judged: &judged,
            desired: &desired,
            is_whole: true,
            others: &[],
            manifests: &manifests,
            now: Timestamp::UNIX_EPOCH,
            expiry_days: 30,
            allowed_labels: None,
        };
        let parts = WorldPart::all(&world, known.take());
        let name_of = |part: &WorldPart<'_>| Some((part.resources.first()?.key.id.to_string(), part.known.is_some()));
        let names = parts.iter().filter_map(name_of).collect();
        let findings = vec![Numbered::new(); parts.len()];
        known.keep(&world, parts, &findings, Vec::new());
        names
    }

    #[test]
    fn what_shares_no_host_with_a_change_is_known() {
        let known = KnownFindings::default();
        let parts = |all: &[(&str, bool)]| all.iter().map(|(id, known)| ((*id).to_owned(), *known)).collect::<Vec<_>>();
        let [a, b, c] = [edge("a", "x.example.com", 0), edge("b", "b.example.com", 1), edge("c", "X.example.com", 2)];
        // All edges for the lints of one edge, those with one host, and the rest.
        assert_eq!(run(&known, &[&a, &b, &c]), parts(&[("a", false), ("a", false), ("b", false)]));
        assert_eq!(run(&known, &[&a, &b, &c]), parts(&[("a", true), ("a", true), ("b", true)]));
        let changed = edge("b", "b.example.com", 1);
        assert_eq!(run(&known, &[&a, &changed, &c]), parts(&[("a", false), ("a", true), ("b", false)]));
        let joined = edge("b", "x.example.com", 1);
        assert_eq!(run(&known, &[&a, &joined, &c]), parts(&[("a", false), ("a", false)]));
    }

    #[test]
    fn only_the_order_of_positions_counts() {
        let known = KnownFindings::default();
        let at = |edge: &Desired, position| Desired { position, ..edge.clone() };
        let [a, b] = [edge("a", "x.example.com", 0), edge("b", "x.example.com", 1)];
        let is_known = |edges: &[&Desired]| run(&known, edges).iter().all(|(_, known)| *known);
        assert!(!is_known(&[&a, &b]));
        assert!(is_known(&[&at(&a, 3), &at(&b, 7)]));
        assert!(!is_known(&[&at(&a, 7), &at(&b, 3)]));
    }
}
