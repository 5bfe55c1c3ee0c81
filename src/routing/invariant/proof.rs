//! The proof of the invariants of a state: each class of requests is judged once.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::flaw::Flaw;
use super::invariant_index::InvariantIndex;
use super::requirement::{JudgedRequests, RequirementJudge, worst};
use super::standing::{Breach, StandingInvariant};
use crate::model::names::names;
use crate::model::{Entry, Key, Snapshot};
use crate::routing::behaviour::{Fate, RequestClass, RequestScope, each_class_in};

/// The most breaches of an invariant that are kept, of those that are certain and of the others.
pub(super) const MOST_BREACHES: usize = 10;

/// The answer about an invariant in a state.
#[derive(Debug)]
pub(crate) struct Proof<'s> {
    /// The invariant.
    pub(crate) entry: &'s Arc<Entry>,
    /// The classes of requests that it is about and for which it must hold.
    pub(crate) classes: usize,
    /// The classes for which an exemption counts.
    pub(crate) exempt: usize,
    /// The classes of both sorts of which nobody can tell whether it is about them: surrounding manifests do not tell their source.
    pub(super) of_unknown_source: usize,
    /// The first requests that break it or may, one for each edge or route to blame.
    pub(crate) breaches: Vec<Breach<'s>>,
    /// What the answer depends on that the state does not show, as clauses.
    pub(crate) unseen: Vec<String>,
}

/// The answer to the question whether an invariant holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ProofAnswer {
    /// Holds for every request, and there are some.
    Proven,
    /// No edge serves a request that it is about.
    Unused,
    /// Nobody can tell.
    Depends,
    /// A request breaks it.
    Refuted,
}

names!(ProofAnswer: Proven "proven", Unused "unused", Depends "depends", Refuted "refuted");

impl Proof<'_> {
    /// Whether the invariant holds.
    pub(crate) fn answer(&self) -> ProofAnswer {
        match self.breaches.iter().map(|breach| breach.flaw.is_certain).max() {
            None if !self.unseen.is_empty() => ProofAnswer::Depends,
            // A mistyped host would be proven otherwise.
            None if self.classes == 0 && self.exempt == 0 => ProofAnswer::Unused,
            None => ProofAnswer::Proven,
            Some(false) => ProofAnswer::Depends,
            Some(true) => ProofAnswer::Refuted,
        }
    }
}

/// Collects the breaches of an invariant.
#[derive(Debug, Default)]
pub(super) struct Breaches<'s> {
    found: Vec<Breach<'s>>,
    known: BTreeSet<(bool, &'s Key)>,
}

impl<'s> Breaches<'s> {
    /// Whether a breach by a flaw could be one more. A certain one that is not leaves nothing to tell about its culprit.
    pub(super) fn may_add(&self, flaw: &Flaw, fate: &Fate<'_>) -> bool {
        let of_this_sort = self.known.iter().filter(|(known, _)| *known == flaw.is_certain).count();
        let is_known = |culprit: &Key| self.known.contains(&(flaw.is_certain, culprit));
        of_this_sort < MOST_BREACHES && !flaw.culprit(fate).is_some_and(is_known)
    }

    /// Adds a breach, unless its culprit has one.
    pub(super) fn add(&mut self, breach: Breach<'s>) {
        let (is_certain, culprit) = (breach.flaw.is_certain, breach.culprit());
        let of_this_sort = self.known.iter().filter(|(known, _)| *known == is_certain).count();
        if of_this_sort < MOST_BREACHES && self.known.insert((is_certain, culprit)) {
            self.found.push(breach);
        }
    }

    /// The breaches, first those that are certain.
    pub(super) fn into_vec(mut self) -> Vec<Breach<'s>> {
        self.found.sort_by_key(|breach| !breach.flaw.is_certain);
        self.found
    }
}

/// Judges each invariant of a state at a time. What an invariant `keeps` is not judged: that takes two
/// states, as in [`prove_change`](super::prove_change).
pub(crate) fn prove(state: &Snapshot, now: Timestamp) -> Vec<Proof<'_>> {
    prove_some(state, StandingInvariant::all(state, now), |_| {})
}

/// Judges some invariants of a state. `doubt` makes a breach uncertain if what takes its request is a guess.
pub(super) fn prove_some<'s>(
    state: &'s Snapshot,
    invariants: Vec<StandingInvariant<'s>>,
    doubt: impl Fn(&mut Breach<'s>),
) -> Vec<Proof<'s>> {
    let scopes: Vec<Vec<RequestScope>> = invariants.iter().map(|it| it.scopes().collect()).collect();
    let judge = RequirementJudge::new(state);
    let mut proofs: Vec<(StandingInvariant<'s>, [usize; 3], Breaches<'s>)> =
        invariants.into_iter().map(|invariant| (invariant, [0; 3], Breaches::default())).collect();
    let mut index = InvariantIndex::default();
    let unvisited = each_class_in(state, &scopes, |class: &RequestClass<'_>, fate: Fate<'s>, judged: Range<usize>| {
        let port = class.port();
        let about = index.about(class, proofs.iter().map(|(invariant, ..)| invariant));
        for at in about.into_iter().filter(|at| judged.contains(at)) {
            let Some((invariant, [classes, exempt, of_unknown_source], breaches)) = proofs.get_mut(at) else {
                continue;
            };
            if !invariant.concerns(class, &fate) {
                continue;
            }
            *of_unknown_source += usize::from(invariant.may_concern(&fate));
            if invariant.exempts(class) {
                *exempt += 1;
                continue;
            }
            *classes += 1;
            let flaw = worst(judge.flaws(invariant.spec, JudgedRequests { port, fate: &fate }, None));
            if let Some(flaw) = flaw.filter(|flaw| breaches.may_add(flaw, &fate)) {
                let mut breach = Breach::new(invariant, class, fate, flaw);
                doubt(&mut breach);
                breaches.add(breach);
            }
        }
    });
    for edge in &unvisited {
        let [fate] = edge.fates;
        let Some((invariant, .., breaches)) = proofs.get_mut(edge.set) else { continue };
        if let Some(breach) = Breach::unjudged(invariant, fate, edge) {
            breaches.add(breach);
        }
    }
    let proofs = proofs.into_iter().map(|(invariant, [classes, exempt, of_unknown_source], breaches)| Proof {
        entry: invariant.entry,
        classes,
        exempt,
        of_unknown_source,
        breaches: breaches.into_vec(),
        unseen: Vec::new(),
    });
    proofs.collect()
}
