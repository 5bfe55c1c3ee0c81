//! Divides a source into parts that lints judge one by one: some edges with all their routes, edges that share hosts, and
//! the resources of other kinds.

use std::{mem, sync::Arc};

use foldhash::HashMap;
use rayon::prelude::*;

use super::by_kind::of_kind;
use super::host_groups::{HostGroups, NamedHosts, edge_of};
use super::judged_parts::{KnownPart, NumberedFindings};
use super::view::{EdgeView, HostView};
use super::world::World;
use crate::model::{Desired, Entry, Key, Kind};

/// One in so many edges begins a part. The routes of so many fit into a processor's cache, so that only the first lint
/// waits for the memory. A change of one edge is judged with all the others in its part.
const EDGES_OF_A_PART: usize = 16;
/// The most edges of a part.
const MOST_EDGES: usize = 4 * EDGES_OF_A_PART;

/// The lints that judge a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PartLints {
    /// Lints of single edges. The part has edges that share hosts, or resources of other kinds.
    Edge,
    /// Lints of hosts. The part has edges that share hosts, or the rest of a part without them.
    Host,
    /// Both: no edge of the part shares a host with one outside of it.
    Both,
}

/// The identity of a part across runs: whether it is only judged for its hosts, and its first resource.
pub(super) type PartName = (bool, Key);

/// Some resources that are judged together.
pub(super) struct LintPart<'a> {
    pub lints: PartLints,
    /// Sorted by key.
    pub resources: Vec<&'a Desired>,
    /// The edges and routes of other sources, and the routes without a source, that concern them.
    pub others: Vec<Arc<Entry>>,
    /// The hosts of each edge, unless the part is only judged for its hosts.
    pub hosts: Vec<NamedHosts>,
    /// The state of the part in the last run.
    pub known: Option<KnownPart>,
}

impl<'a> LintPart<'a> {
    /// All parts of a world, each with what is known about it from the last run.
    pub(super) fn all(world: &World<'a>, mut earlier: HashMap<PartName, KnownPart>) -> Vec<Self> {
        let mut known = |lints: PartLints, resources: &[&Desired]| earlier.remove(&name(lints, resources)?);
        let apart = (PartLints::Edge, other_than_edges(world.judged));
        let of_edges = edges_with_routes(world.judged).into_iter().map(|resources| (PartLints::Both, resources));
        let divided = std::iter::once(apart).filter(|(_, resources)| !resources.is_empty()).chain(of_edges);
        let divided: Vec<_> = divided.map(|(lints, resources)| (lints, known(lints, &resources), resources)).collect();
        let divided = divided.into_par_iter().with_max_len(1);
        let parts = divided.map(|(lints, known, resources)| Self::new(lints, resources, known));
        let mut parts: Vec<Self> = parts.collect();
        for (resources, others) in share_hosts(&mut parts, world.others) {
            let lints = PartLints::Host;
            let known = known(lints, &resources);
            parts.push(Self { others, ..Self::new(lints, resources, known) });
        }
        for part in &mut parts {
            part.known = part.known.take().filter(|known| known.holds(part, world.now));
        }
        parts
    }

    /// A part. What is known about it may be out of date, apart from the resources.
    fn new(lints: PartLints, resources: Vec<&'a Desired>, known: Option<KnownPart>) -> Self {
        let mut known = known.filter(|known| known.has(&resources));
        let hosts = match (&mut known, lints) {
            (Some(known), _) => mem::take(&mut known.hosts),
            (None, PartLints::Both) => NamedHosts::all(&resources),
            (None, _) => Vec::new(),
        };
        Self { lints, resources, others: Vec::new(), hosts, known }
    }

    /// The view that lints have of the part.
    pub(super) fn view<'v>(&'v self, world: &'v World<'v>) -> HostView<'v> {
        HostView::new(EdgeView::new(world, &self.resources), &self.others)
    }

    /// The part with its findings, to find it again in the next run.
    pub(super) fn into_known(
        mut self,
        findings: Arc<NumberedFindings>,
        world: &World<'_>,
    ) -> Option<(PartName, KnownPart)> {
        let name = name(self.lints, &self.resources)?;
        let kept = match self.known.take() {
            Some(mut known) => {
                known.hosts = self.hosts;
                known
            }
            None => KnownPart::new(self, findings, world),
        };
        Some((name, kept))
    }
}

/// The name of a part.
fn name(lints: PartLints, resources: &[&Desired]) -> Option<PartName> {
    Some((lints == PartLints::Host, resources.first()?.key.clone()))
}

/// The resources that are neither edges nor routes.
fn other_than_edges<'a>(judged: &[&'a Desired]) -> Vec<&'a Desired> {
    judged.iter().copied().filter(|it| !matches!(it.key.kind, Kind::HttpsEdge | Kind::HttpsEdgeRoute)).collect()
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

/// Resources to judge together, and those of other sources with the same hosts.
type SharedResources<'a> = (Vec<&'a Desired>, Vec<Arc<Entry>>);

/// Takes the edges that share hosts out of their parts, for the lints of hosts. Returns each group of them, and the
/// rest of these parts.
fn share_hosts<'a>(parts: &mut [LintPart<'a>], others: &[Arc<Entry>]) -> Vec<SharedResources<'a>> {
    let groups = HostGroups::find(parts.iter().flat_map(|part| &part.hosts), others);
    if groups.of_edge.is_empty() {
        return Vec::new();
    }
    let is_shared = |hosts: &NamedHosts| groups.of_edge.contains_key(&hosts.edge);
    let parts: Vec<&mut LintPart<'a>> = parts.iter_mut().filter(|part| part.hosts.iter().any(is_shared)).collect();
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
        part.lints = PartLints::Edge;
    }
    let rests = rests.into_iter().filter(|rest| !rest.is_empty()).map(|rest| (rest, Vec::new()));
    of_groups.into_iter().zip(groups.others).chain(rests).collect()
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::lint::judged_parts::SharedInputs;
    use crate::lint::{JudgedParts, ManifestFacts};
    use crate::model::{Claim, HttpsEdge, Id};

    fn edge(id: &str, host: &str, position: u32) -> Desired {
        let claim = Arc::new(Claim::new("s", id));
        let spec = Arc::new(HttpsEdge { hostports: vec![format!("{host}:443")], ..HttpsEdge::default() });
        Desired { position, ..Desired::new(Key::new(Kind::HttpsEdge, Id::new(id)), spec, claim) }
    }

    /// The first edge of each part of a run, and whether its findings were known.
    fn run(memo: &mut JudgedParts, edges: &[&Desired]) -> Vec<(String, bool)> {
        let mut judged: Vec<&Desired> = edges.to_vec();
        judged.sort_unstable_by(|one, other| one.key.cmp(&other.key));
        let manifests = ManifestFacts::default();
        let world = World {
            judged: &judged,
            is_whole: true,
            others: &[],
            manifests: &manifests,
            now: Timestamp::UNIX_EPOCH,
            expiry_days: 30,
            allowed_labels: None,
        };
        let shared = SharedInputs::new(&world, Vec::new());
        let parts = LintPart::all(&world, memo.take(&shared));
        let name_of = |part: &LintPart<'_>| Some((part.resources.first()?.key.id.to_string(), part.known.is_some()));
        let names = parts.iter().filter_map(name_of).collect();
        let kept = parts.into_iter().filter_map(|part| part.into_known(Arc::default(), &world));
        *memo = JudgedParts::new(shared, kept.collect());
        names
    }

    #[test]
    fn what_shares_no_host_with_a_change_is_known() {
        let mut memo = JudgedParts::default();
        let parts = |all: &[(&str, bool)]| all.iter().map(|(id, known)| ((*id).to_owned(), *known)).collect::<Vec<_>>();
        let [a, b, c] = [edge("a", "x.example.com", 0), edge("b", "b.example.com", 1), edge("c", "X.example.com", 2)];
        // All edges for the lints of one edge, those with one host, and the rest.
        assert_eq!(run(&mut memo, &[&a, &b, &c]), parts(&[("a", false), ("a", false), ("b", false)]));
        assert_eq!(run(&mut memo, &[&a, &b, &c]), parts(&[("a", true), ("a", true), ("b", true)]));
        let changed = edge("b", "b.example.com", 1);
        assert_eq!(run(&mut memo, &[&a, &changed, &c]), parts(&[("a", false), ("a", true), ("b", false)]));
        let joined = edge("b", "x.example.com", 1);
        assert_eq!(run(&mut memo, &[&a, &joined, &c]), parts(&[("a", false), ("a", false)]));
    }

    #[test]
    fn only_the_order_of_positions_counts() {
        let mut memo = JudgedParts::default();
        let at = |edge: &Desired, position| Desired { position, ..edge.clone() };
        let [a, b] = [edge("a", "x.example.com", 0), edge("b", "x.example.com", 1)];
        let mut is_known = |edges: &[&Desired]| run(&mut memo, edges).iter().all(|(_, known)| *known);
        assert!(!is_known(&[&a, &b]));
        assert!(is_known(&[&at(&a, 3), &at(&b, 7)]));
        assert!(!is_known(&[&at(&a, 7), &at(&b, 3)]));
    }
}
