//! Generated worlds: valid desired states, and pairs of an earlier and a later one.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use proptest::{collection::vec, prelude::*, strategy::ValueTree, test_runner::TestRunner};

use super::specs::{Spec, linked, spec};
use crate::model::{Claim, Desired, EventSource, HttpsEdge, HttpsEdgeRoute, Id, Key, Kind, Secrets, rules};

/// A whole desired state.
pub(super) type Estate = BTreeMap<Key, Desired>;

/// The source of every world.
pub(super) const SOURCE: &str = "test";

/// A route that an edge can serve without reading its traffic (D15).
fn unread(route: Spec) -> Spec {
    let read =
        HttpsEdgeRoute::SLOTS.iter().filter(|slot| !["backend", "ip_restriction", "policies"].contains(&slot.name));
    read.fold(route, |route, slot| route.with_modules(&[(slot, None)]))
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Side {
    Before,
    After,
}

/// The change of a resource between two worlds.
#[derive(Debug, Clone)]
struct SpecFate {
    before: Option<Spec>,
    after: Option<Spec>,
    renamed: bool,
}

fn fate(kind: Kind) -> BoxedStrategy<SpecFate> {
    let parts = (spec(kind), spec(kind), 0..7u8, any::<u32>());
    let fate = parts.prop_map(|(one, other, turn, mask)| {
        let (before, after) = match turn {
            0 | 1 => (Some(Arc::clone(&one)), Some(one)),
            2 => {
                let partly = one.patched(other.as_ref(), &some_fields(&other, mask)).unwrap();
                (Some(one), Some(partly))
            }
            3 | 4 => (Some(one), Some(other)),
            5 => (None, Some(other)),
            _ => (Some(one), None),
        };
        SpecFate { before, after, renamed: turn == 1 }
    });
    fate.boxed()
}

/// Some of the fields and modules of a Spec that can change in place.
pub(super) fn some_fields(spec: &Spec, mask: u32) -> Vec<String> {
    let fields = spec.to_json(Secrets::Masked).unwrap().into_iter().map(|(field, _)| field);
    let free = fields.filter(|field| !spec.kind().info().fixed.contains(&field.as_str()));
    free.enumerate().filter(|(index, _)| (mask >> (index % 32)) & 1 == 1).map(|(_, field)| field).collect()
}

impl SpecFate {
    /// Declares the resource of one side in a world, with a name derived from its place.
    fn declare(&self, side: Side, place: usize, parent: Option<&Id>, world: &mut Estate, fit: impl Fn(Spec) -> Spec) {
        let spec = if side == Side::Before { &self.before } else { &self.after };
        let Some(spec) = spec.clone().map(fit) else { return };
        let info = spec.kind().info();
        let id = match spec.as_any().downcast_ref::<EventSource>() {
            Some(source) => Id::new(&source.r#type),
            None => {
                // As for manifests, immutable content is part of the id.
                let json = spec.to_json(Secrets::Revealed).unwrap();
                let fixed: String = info.fixed.iter().map(|field| json[*field].to_string()).collect();
                let parent = parent.map(Id::as_str).unwrap_or_default();
                Id::derived(info.prefix, [parent.as_bytes(), place.to_le_bytes().as_slice(), fixed.as_bytes()])
            }
        };
        let name = if self.renamed && side == Side::After { format!("renamed-{place}") } else { format!("n{place}") };
        let key = Key { kind: info.kind, parent: parent.cloned(), id };
        let claim = Arc::new(Claim::new(SOURCE, name));
        world.insert(key.clone(), Desired::new(key, spec, claim));
    }
}

#[derive(Debug, Clone)]
struct Story {
    /// Resources without references and children.
    simple: Vec<Vec<SpecFate>>,
    edges: Vec<(SpecFate, Vec<SpecFate>)>,
    sources: Vec<SpecFate>,
}

impl Story {
    fn world(&self, side: Side) -> Estate {
        let mut world = Estate::new();
        for fates in &self.simple {
            for (place, fate) in fates.iter().enumerate() {
                fate.declare(side, place, None, &mut world, |spec| spec);
            }
        }
        let subscription = Id::new("evsub_ü%0");
        for (place, fate) in self.sources.iter().enumerate() {
            fate.declare(side, place, Some(&subscription), &mut world, |spec| spec);
        }
        let authorities = world.keys().filter(|key| key.kind == Kind::CertificateAuthority);
        let authorities: Vec<String> = authorities.map(|key| key.id.to_string()).collect();
        for (place, (fate, routes)) in self.edges.iter().enumerate() {
            let mut alone = Estate::new();
            fate.declare(side, place, None, &mut alone, |spec| Arc::new(linked(&spec, &authorities)) as Spec);
            let Some((key, edge)) = alone.pop_first() else { continue };
            let through = rules::passes_through(edge.spec_as().unwrap());
            for (place, fate) in routes.iter().enumerate() {
                let fit = |spec| if through { unread(spec) } else { spec };
                fate.declare(side, place, Some(&key.id), &mut world, fit);
            }
            world.insert(key, edge);
        }
        world
    }
}

fn stories() -> impl Strategy<Value = Story> {
    let simple = vec![
        vec(fate(Kind::ApiKey), 0..2),
        vec(fate(Kind::IpRestriction), 0..2),
        vec(fate(Kind::CertificateAuthority), 0..3),
        vec(fate(Kind::TlsCertificate), 0..2),
        vec(fate(Kind::TlsEdge), 0..3),
        vec(fate(Kind::Invariant), 0..2),
    ];
    let edges = vec((fate(Kind::HttpsEdge), vec(fate(Kind::HttpsEdgeRoute), 0..3)), 0..3);
    let sources = vec(fate(Kind::EventSource), 0..3);
    (simple, edges, sources).prop_map(|(simple, edges, sources)| Story { simple, edges, sources })
}

/// A whole desired state.
pub(super) fn worlds() -> impl Strategy<Value = Estate> {
    stories().prop_map(|story| story.world(Side::After))
}

/// A desired state and a later one: some is removed, some changed, some renamed, some added, some the same.
pub(super) fn changing_worlds() -> impl Strategy<Value = (Estate, Estate)> {
    stories().prop_map(|story| (story.world(Side::Before), story.world(Side::After)))
}

/// The host, module and slot names of a Spec.
fn slots_of(spec: &Spec) -> impl Iterator<Item = (&'static str, &'static str)> {
    let info = spec.kind().info();
    info.slots.iter().filter(move |slot| spec.module(slot).is_some()).map(move |slot| (info.name, slot.name))
}

#[test]
fn worlds_have_every_kind_and_every_slot() {
    let mut runner = TestRunner::deterministic();
    let (worlds, mut kinds, mut slots) = (worlds(), BTreeSet::new(), BTreeSet::new());
    let (mut named, mut passed_through) = (0, 0);
    for _ in 0..300 {
        let world = worlds.new_tree(&mut runner).unwrap().current();
        for Desired { key, spec, .. } in world.values() {
            kinds.insert(key.kind);
            slots.extend(slots_of(spec));
            spec.references(&mut |reference| {
                let authority = reference.target.kind == Kind::CertificateAuthority;
                assert!(!authority || world.contains_key(&reference.target), "{key} names {}", reference.target);
                named += usize::from(authority);
            });
            let edge = key.parent_key().and_then(|parent| world.get(&parent));
            let edge = edge.and_then(|edge| edge.spec_as::<HttpsEdge>());
            passed_through += usize::from(edge.is_some_and(rules::passes_through));
        }
    }
    // Owners and subscriptions are created with their keys and sources.
    let implied = [Kind::Owner, Kind::EventSubscription];
    let wanted: BTreeSet<Kind> = Kind::all().map(|info| info.kind).filter(|kind| !implied.contains(kind)).collect();
    assert_eq!(kinds, wanted);
    let wanted = Kind::all().flat_map(|info| info.slots.iter().map(move |slot| (info.name, slot.name)));
    assert_eq!(slots, wanted.collect::<BTreeSet<_>>());
    assert!(named > 0 && passed_through > 0, "{named} authorities are named, {passed_through} routes passed through");
}
