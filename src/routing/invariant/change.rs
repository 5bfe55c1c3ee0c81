//! The invariants that a change breaks: the requests that meet an invariant before the change, and not after it.
//!
//! An invariant that is new or that changes must hold for all requests. Any other one is judged for those that the change can
//! affect, and what was wrong with them before does not stop the change: otherwise nobody could repair one edge after the
//! other, once an exemption has expired.

use std::collections::BTreeSet;

use jiff::Timestamp;

use super::proof::{Breaches, prove_some};
use super::requirement::{Flaws, JudgedRequests, RequirementJudge, worst};
use super::standing::{Breach, StandingInvariant};
use crate::model::kind::invariant::{Invariant, UnprovenLevel};
use crate::model::{Fault, Key, Kind, Refusal, Snapshot};
use crate::routing::behaviour::{ClassScope, Fate, RequestClass, RequestScope, each_pair_in};

/// What nobody can tell any longer, each with the resource that it depends on.
pub(crate) type Doubts = Vec<(Key, Fault)>;

/// Refuses a change after which an invariant does not hold, at each resource to blame. Otherwise returns what nobody can tell
/// any longer, each with the resource that it depends on.
pub(crate) fn enforce(
    before: &Snapshot,
    after: &Snapshot,
    changed: &BTreeSet<Key>,
    now: Timestamp,
) -> Result<Doubts, (Refusal, Vec<Refusal>)> {
    let (mut refusals, mut doubts) = (Vec::<Refusal>::new(), Vec::new());
    for breach in breaches(before, after, changed, now) {
        let (key, is_culprit) = blamed(&breach, changed);
        let fault = breach.fault(after, is_culprit);
        if !is_refused(&breach) {
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

/// Whether a breach stops a change.
pub(crate) fn is_refused(breach: &Breach<'_>) -> bool {
    let denies = |invariant: &Invariant| invariant.unproven == UnprovenLevel::Deny;
    breach.flaw.is_certain || breach.invariant.spec_as::<Invariant>().is_some_and(denies)
}

/// The changed resource to blame for a breach, or else the one that has the flaw; and whether it is the one that has it.
fn blamed(breach: &Breach<'_>, changed: &BTreeSet<Key>) -> (Key, bool) {
    let culprit = breach.culprit();
    if changed.contains(culprit) {
        return (culprit.clone(), true);
    }
    let beside = [breach.fate.route, breach.fate.edge, Some(breach.invariant)];
    let beside = beside.into_iter().flatten().map(|entry| &entry.key).find(|key| changed.contains(*key));
    // A restriction of all endpoints is beside every route.
    let restriction = || changed.iter().find(|key| key.kind == Kind::IpRestriction);
    match beside.or_else(restriction) {
        Some(key) => (key.clone(), false),
        None => (culprit.clone(), true),
    }
}

/// The breaches that a change brings about.
pub(super) fn breaches<'s>(
    before: &'s Snapshot,
    after: &'s Snapshot,
    changed: &BTreeSet<Key>,
    now: Timestamp,
) -> Vec<Breach<'s>> {
    let all = StandingInvariant::all(after, now);
    if all.is_empty() {
        return Vec::new();
    }
    let is_new = |it: &StandingInvariant<'_>| {
        let is_same = |key: &Key| before.get(key).is_some_and(|former| former.spec().same(it.entry.spec().as_ref()));
        changed.contains(&it.entry.key) && !is_same(&it.entry.key)
    };
    let (new, standing): (Vec<_>, Vec<_>) = all.into_iter().partition(is_new);
    let mut found: Vec<Breach<'s>> =
        prove_some(after, new.clone()).into_iter().flat_map(|proof| proof.breaches).collect();
    let of_routing = |key: &Key| matches!(key.kind, Kind::HttpsEdge | Kind::HttpsEdgeRoute);
    // A restriction of all endpoints has an effect on all their requests.
    let is_about_addresses = |it: &StandingInvariant<'_>| !it.spec.only_from.is_empty();
    let restricts = changed.iter().any(|key| key.kind == Kind::IpRestriction);
    // So has the source of an edge on those that no route takes.
    let is_about_sources = |it: &StandingInvariant<'_>| !it.spec.scope.sources.is_empty();
    let moves = |key: &Key| match (before.get(key), after.get(key)) {
        (Some(then), Some(now)) => key.kind == Kind::HttpsEdge && then.source() != now.source(),
        _ => false,
    };
    let concerns_all = (restricts && standing.iter().any(is_about_addresses))
        || (standing.iter().any(is_about_sources) && changed.iter().any(moves));
    let scope = match concerns_all {
        true => ClassScope::Everything,
        false if changed.iter().any(of_routing) => ClassScope::Changed(changed),
        false => return found,
    };
    let judged = standing.into_iter().map(|it| (it, false)).chain(new.into_iter().map(|it| (it, true)));
    found.extend(changed_breaches([before, after], scope, judged.collect()));
    found
}

/// The breaches among the requests that a change can affect. Of an invariant that is new, only what it `keeps` is judged.
fn changed_breaches<'s>(
    [before, after]: [&'s Snapshot; 2],
    scope: ClassScope<'_>,
    invariants: Vec<(StandingInvariant<'s>, bool)>,
) -> Vec<Breach<'s>> {
    let scopes: Vec<RequestScope> = invariants.iter().flat_map(|(invariant, _)| invariant.scopes()).collect();
    let [former_judge, judge] = [before, after].map(RequirementJudge::new);
    let mut judged: Vec<_> = invariants.into_iter().map(|(it, is_new)| (it, is_new, Breaches::default())).collect();
    each_pair_in(before, after, scope, &scopes, |class: &RequestClass<'_>, [then, fate]: [Fate<'s>; 2]| {
        let Some(port) = class.hosts.first().map(|host| host.port) else { return };
        for (invariant, is_new, breaches) in &mut judged {
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
            if let Some(flaw) = worst(new_flaws) {
                breaches.add(Breach { former: Some(then), ..Breach::new(invariant, class, fate, flaw) });
            }
        }
    });
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
