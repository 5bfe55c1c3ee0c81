//! The invariants that a change breaks: the requests that meet an invariant before the change, and not after it.
//!
//! An invariant that is new or that changes must hold for all requests. Any other one is judged for those that the change can
//! affect, and what was wrong with them before does not stop the change: otherwise nobody could repair one edge after the
//! other, once an exemption has expired.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use jiff::Timestamp;

use super::breach_group::BreachGroup;
use super::changed_requests::{ChangedRequests, effective_changes};
use super::flaw::FlawExtent;
use super::invariant_index::InvariantIndex;
use super::proof::{Breaches, Proof, prove, prove_some};
use super::requirement::{Flaws, JudgedRequests, RequirementJudge, worst};
use super::standing::{Breach, StandingInvariant};
use crate::model::kind::invariant::{Invariant, UnprovenLevel};
use crate::model::{Fault, Key, Kind, Refusal, Snapshot};
use crate::routing::behaviour::{ClassScope, Fate, RequestClass, RequestScope, each_class_in, each_pair_in};

/// Answers that a change makes unknown, each with the resource that it depends on.
pub(crate) type Doubts = Vec<(Key, Fault)>;

/// Refuses a change after which an invariant does not hold, at each resource to blame. Otherwise returns what nobody can tell
/// any longer, each with the resource that it depends on.
pub(crate) fn enforce(
    before: &Snapshot,
    after: &Snapshot,
    changed: &BTreeSet<Key>,
    now: Timestamp,
) -> Result<Doubts, (Refusal, Vec<Refusal>)> {
    if after.newest_first(Kind::Invariant, None, u64::MAX).next().is_none() {
        return Ok(Doubts::new());
    }
    let changed = effective_changes(before, after, changed);
    let (mut refusals, mut doubts) = (Vec::<Refusal>::new(), Vec::new());
    let found = breaches(before, after, &changed, now);
    for group in BreachGroup::all(&found, |breach| Some(blamed(breach, after, &changed))) {
        let (is_refused, fault, key) = (group.is_refused(), group.fault(after), group.key);
        if !is_refused {
            doubts.push((key, fault));
            continue;
        }
        match refusals.iter_mut().find(|refusal| refusal.key == key) {
            Some(refusal) => refusal.faults.push(fault),
            None => refusals.push(Refusal { key, faults: vec![fault] }),
        }
    }
    let mut refusals = refusals.into_iter();
    refusals.next().map_or(Ok(doubts), |first| Err((first, refusals.collect())))
}

/// Judges each invariant of a state at a time, and what it `keeps` by a comparison with the state before.
pub(crate) fn prove_change<'s>(before: &'s Snapshot, after: &'s Snapshot, now: Timestamp) -> Vec<Proof<'s>> {
    let differing: BTreeSet<Key> = after.changed_since(before).cloned().collect();
    let changed = effective_changes(before, after, &differing);
    let mut of_change: BTreeMap<&Key, Vec<Breach<'s>>> = BTreeMap::new();
    for breach in breaches(before, after, &changed, now) {
        let invariant = breach.invariant;
        of_change.entry(&invariant.key).or_default().push(breach);
    }
    let mut proofs = prove(after, now);
    for proof in &mut proofs {
        let Some(others) = of_change.remove(&proof.entry.key) else { continue };
        let mut all = Breaches::default();
        for breach in std::mem::take(&mut proof.breaches).into_iter().chain(others) {
            all.add(breach);
        }
        proof.breaches = all.into_vec();
    }
    proofs
}

/// Whether a breach stops a change.
pub(crate) fn is_refused(breach: &Breach<'_>) -> bool {
    let denies = |invariant: &Invariant| invariant.unproven == UnprovenLevel::Deny;
    breach.flaw.is_certain
        || breach.flaw.extent == FlawExtent::Unjudged
        || breach.invariant.spec_as::<Invariant>().is_some_and(denies)
}

/// The changed resource to blame for a breach, or else the one that has the flaw; and whether it changed and has the flaw, so
/// that the field that the flaw is at is one of the change.
fn blamed(breach: &Breach<'_>, after: &Snapshot, changed: &BTreeSet<Key>) -> (Key, bool) {
    let culprit = breach.culprit();
    if changed.contains(culprit) {
        return (culprit.clone(), true);
    }
    // A route that no longer takes the requests. One that is gone has no field or manifest to correct.
    let former = breach.former.and_then(|fate| fate.route).filter(|route| after.get(&route.key).is_some());
    let beside = [former, breach.fate.route, breach.fate.edge, Some(breach.invariant)];
    let beside = beside.into_iter().flatten().map(|entry| &entry.key).find(|key| changed.contains(*key));
    // A restriction of all endpoints is beside every route.
    let restriction = || changed.iter().find(|key| key.kind == Kind::IpRestriction);
    (beside.or_else(restriction).unwrap_or(culprit).clone(), false)
}

/// The breaches that a change brings about.
pub(super) fn breaches<'s>(
    before: &'s Snapshot,
    after: &'s Snapshot,
    changed: &BTreeSet<Key>,
    now: Timestamp,
) -> Vec<Breach<'s>> {
    if changed.is_empty() {
        return Vec::new();
    }
    let is_new = |it: &StandingInvariant<'_>| {
        let is_same = |key: &Key| before.get(key).is_some_and(|former| former.spec().same(it.entry.spec().as_ref()));
        changed.contains(&it.entry.key) && !is_same(&it.entry.key)
    };
    let (new, standing): (Vec<_>, Vec<_>) = StandingInvariant::all(after, now).into_iter().partition(is_new);
    let mut found: Vec<Breach<'s>> =
        prove_some(after, new.clone(), |_| {}).into_iter().flat_map(|proof| proof.breaches).collect();
    let judges = [before, after].map(RequirementJudge::new);
    // A restriction of all endpoints has an effect on all their requests.
    let [former_judge, judge] = &judges;
    let restricts = changed.iter().any(|key| key.kind == Kind::IpRestriction) && !judge.admits_like(former_judge);
    // So has the source of an edge on those that no route takes.
    let moves = changed.iter().any(|key| match (before.get(key), after.get(key)) {
        (Some(then), Some(now)) => key.kind == Kind::HttpsEdge && then.source() != now.source(),
        _ => false,
    });
    let is_about_all = |it: &StandingInvariant<'_>| {
        (restricts && !it.spec.only_from.is_empty()) || (moves && !it.spec.scope.sources.is_empty())
    };
    let (about_all, others): (Vec<_>, Vec<_>) = standing.into_iter().partition(is_about_all);
    if !about_all.is_empty() {
        let judged = about_all.into_iter().map(|it| (it, false)).collect();
        found.extend(changed_breaches([before, after], &judges, ClassScope::Everything, judged));
    }
    let near = ChangedRequests::new([before, after], changed);
    let judged = others.into_iter().map(|it| (it, false)).chain(new.into_iter().map(|it| (it, true)));
    let judged: Vec<_> = judged.filter(|(it, _)| near.meet(&it.spec.scope)).collect();
    if !judged.is_empty() {
        found.extend(changed_breaches([before, after], &judges, ClassScope::Changed(changed), judged));
    }
    found
}

/// The breaches among the requests that a change can affect. Of an invariant that is new, only what it `keeps` is judged.
fn changed_breaches<'s>(
    [before, after]: [&'s Snapshot; 2],
    [former_judge, judge]: &[RequirementJudge<'s>; 2],
    scope: ClassScope<'_>,
    invariants: Vec<(StandingInvariant<'s>, bool)>,
) -> Vec<Breach<'s>> {
    let scopes: Vec<Vec<RequestScope>> = invariants.iter().map(|(it, _)| it.scopes().collect()).collect();
    let mut judged: Vec<_> = invariants.into_iter().map(|(it, is_new)| (it, is_new, Breaches::default())).collect();
    let mut index = InvariantIndex::default();
    let visit = |class: &RequestClass<'_>, [then, fate]: [Fate<'s>; 2], places: Range<usize>| {
        let port = class.port();
        let about = index.about(class, judged.iter().map(|(invariant, ..)| invariant));
        for at in about.into_iter().filter(|at| places.contains(at)) {
            let Some((invariant, is_new, breaches)) = judged.get_mut(at) else { continue };
            if !invariant.concerns(class, &fate) || invariant.exempts(class) {
                continue;
            }
            let flaws = judge.flaws(invariant.spec, JudgedRequests { port, fate: &fate }, Some(&then));
            if flaws.iter().all(Option::is_none) {
                continue;
            }
            let new_flaws = if *is_new {
                let [.., lost] = flaws;
                let mut only_lost = Flaws::default();
                if let Some(last) = only_lost.last_mut() {
                    *last = lost;
                }
                only_lost
            } else if invariant.concerns(class, &then) {
                without(flaws, former_judge.flaws(invariant.spec, JudgedRequests { port, fate: &then }, None))
            } else {
                flaws
            };
            if let Some(flaw) = worst(new_flaws).filter(|flaw| breaches.may_add(flaw, &fate)) {
                breaches.add(Breach { former: Some(then), ..Breach::new(invariant, class, fate, flaw) });
            }
        }
    };
    let unvisited = each_pair_in(before, after, scope, &scopes, visit);
    // What could not be judged before either does not stop the change.
    let former = if unvisited.is_empty() { Vec::new() } else { each_class_in(before, &scopes, |_, _, _| {}) };
    let were_unvisited: BTreeSet<(usize, &Key)> =
        former.iter().filter_map(|it| Some((it.set, &it.fates.first()?.edge?.key))).collect();
    for unvisited in &unvisited {
        let [then, fate] = unvisited.fates;
        if then.edge.is_some_and(|edge| were_unvisited.contains(&(unvisited.set, &edge.key))) {
            continue;
        }
        let Some((invariant, _, breaches)) = judged.get_mut(unvisited.set).filter(|(_, is_new, _)| !*is_new) else {
            continue;
        };
        if let Some(breach) = Breach::unjudged(invariant, fate, unvisited) {
            breaches.add(Breach { former: Some(then), ..breach });
        }
    }
    judged.into_iter().flat_map(|(.., breaches)| breaches.into_vec()).collect()
}

/// The flaws that were not there before, or not as bad.
fn without(flaws: Flaws, former: Flaws) -> Flaws {
    let mut former = former.into_iter();
    flaws.map(|flaw| {
        let was = former.next().flatten();
        flaw.filter(|flaw| was.is_none_or(|was| !flaw.is_within(&was)))
    })
}
