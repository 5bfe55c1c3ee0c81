//! The parts of an estate that lints judge one by one: some edges with all their routes. The findings of a part hold
//! until one of its resources changes, so that a server judges only what a change concerns.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use foldhash::HashMap;

use super::{Finding, World};
use crate::model::{Kind, desired::Desired, key::Key, kind::https_edge_route::HttpsEdgeRoute, resource::AnyResource};

/// One in so many edges begins a part. The routes of so many fit into a processor's cache, so that only the first lint
/// waits for the memory.
const EDGES_OF_A_PART: usize = 64;
/// The most edges of a part.
const MOST_EDGES: usize = 4 * EDGES_OF_A_PART;

/// Findings with the position of their lint in the table.
pub(super) type Numbered = Vec<(usize, Finding)>;

/// The resources of a kind, which are neighbours: keys sort by kind first.
pub(super) fn of_kind<'d, 'a>(sorted: &'d [&'a Desired], kind: Kind) -> &'d [&'a Desired] {
    let from = sorted.partition_point(|desired| desired.key.kind < kind);
    let to = sorted.partition_point(|desired| desired.key.kind <= kind);
    sorted.get(from..to).unwrap_or_default()
}

/// Some resources that are judged together.
pub(super) struct WorldPart<'a> {
    resources: Vec<&'a Desired>,
    /// The findings of an earlier run on the same resources.
    known: Option<Numbered>,
}

impl<'a> WorldPart<'a> {
    /// All parts of a world about which nothing is known.
    pub(super) fn all(world: &World<'a>) -> Vec<Self> {
        divide(world.judged).into_iter().map(|resources| Self { resources, known: None }).collect()
    }

    /// The findings about the part, made only if they are not known.
    pub(super) fn findings(&self, make: impl FnOnce(&[&Desired]) -> Numbered) -> Numbered {
        self.known.clone().unwrap_or_else(|| make(&self.resources))
    }
}

/// Findings of the last run, by the first resource of each part.
#[derive(Debug, Default)]
pub(crate) struct KnownFindings(Mutex<Option<Kept>>);

#[derive(Debug)]
struct Kept {
    settings: (bool, u32),
    /// What edges and routes reference.
    others: Vec<Seen>,
    parts: HashMap<Key, (Vec<Seen>, Numbered)>,
}

/// A resource as it was judged.
#[derive(Debug)]
struct Seen {
    key: Key,
    spec: Arc<dyn AnyResource>,
    name: String,
    /// Relative to the first resource of the part.
    position: u32,
}

impl KnownFindings {
    fn kept(&self) -> MutexGuard<'_, Option<Kept>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Divides the resources to judge, with what is known about each part.
    pub(super) fn divide<'a>(&self, world: &World<'a>) -> Vec<WorldPart<'a>> {
        let kept = self.kept();
        let mut parts = divide(world.judged).into_iter();
        let others = parts.next().unwrap_or_default();
        let kept = kept
            .as_ref()
            .filter(|kept| kept.settings == (world.is_whole, world.expiry_days) && are_same(&kept.others, &others));
        let known = |part: &[&Desired]| {
            let (seen, findings) = kept?.parts.get(&part.first()?.key)?;
            are_same(seen, part).then(|| findings.clone())
        };
        // What is not inside an edge depends on the time.
        std::iter::once(WorldPart { resources: others, known: None })
            .chain(parts.map(|resources| WorldPart { known: known(&resources), resources }))
            .collect()
    }

    /// Keeps the findings of a run for the next one.
    pub(super) fn keep(&self, world: &World<'_>, parts: &[WorldPart<'_>], findings: &[Numbered]) {
        let mut kept = self.kept();
        let mut earlier = kept.take().map(|kept| kept.parts).unwrap_or_default();
        let Some((others, edges)) = parts.split_first() else { return };
        let mut known = HashMap::default();
        for (part, findings) in edges.iter().zip(findings.iter().skip(1)) {
            let Some(first) = part.resources.first().map(|first| &first.key) else { continue };
            // The metadata of an identity provider expires.
            let is_timeless = |it: &&Desired| {
                it.spec.as_any().downcast_ref::<HttpsEdgeRoute>().is_none_or(|route| route.saml.is_none())
            };
            if part.known.is_some() {
                known.extend(earlier.remove_entry(first));
            } else if part.resources.iter().all(is_timeless) {
                known.insert(first.clone(), (seen(&part.resources), findings.clone()));
            }
        }
        let settings = (world.is_whole, world.expiry_days);
        *kept = Some(Kept { settings, others: seen(&others.resources), parts: known });
    }
}

fn seen(part: &[&Desired]) -> Vec<Seen> {
    let first = part.first().map_or(0, |first| first.position);
    let of = |it: &&Desired| Seen {
        key: it.key.clone(),
        spec: Arc::clone(&it.spec),
        name: it.claim.name.clone(),
        position: it.position.wrapping_sub(first),
    };
    part.iter().map(of).collect()
}

/// Whether resources are those that were judged, in the same order of files and lines.
fn are_same(seen: &[Seen], part: &[&Desired]) -> bool {
    let first = part.first().map_or(0, |first| first.position);
    let same = |(seen, it): (&Seen, &&Desired)| {
        Arc::ptr_eq(&seen.spec, &it.spec)
            && seen.key == it.key
            && seen.position == it.position.wrapping_sub(first)
            && seen.name == it.claim.name
    };
    seen.len() == part.len() && seen.iter().zip(part).all(same)
}

/// Divides resources into all others, and edges with their routes. Where a part begins depends on the edge and not on
/// those before it, so an edge more or less changes one part.
fn divide<'a>(judged: &[&'a Desired]) -> Vec<Vec<&'a Desired>> {
    let (mut edges, mut routes) = (of_kind(judged, Kind::HttpsEdge), of_kind(judged, Kind::HttpsEdgeRoute));
    let other = |desired: &&&'a Desired| !matches!(desired.key.kind, Kind::HttpsEdge | Kind::HttpsEdgeRoute);
    let mut parts: Vec<Vec<&'a Desired>> = vec![judged.iter().filter(other).copied().collect()];
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
