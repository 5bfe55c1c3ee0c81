//! Breaches as faults. Many edges and routes can break an invariant that is new; its author gets one fault, not one for each.

use super::change::is_refused;
use super::proof::MOST_BREACHES;
use super::standing::Breach;
use crate::model::{Code, Fault, Key, Snapshot};

/// The most breaches whose way is told.
const MOST_WAYS: usize = 5;

/// The breaches of an invariant that are reported at it, or one that is reported at another resource.
#[derive(Debug)]
pub(crate) struct BreachGroup<'b, 's> {
    /// The resource to report them at.
    pub(crate) key: Key,
    /// Whether that is what has the flaw.
    is_at_culprit: bool,
    first: &'b Breach<'s>,
    others: Vec<&'b Breach<'s>>,
}

impl<'b, 's> BreachGroup<'b, 's> {
    /// Groups breaches in their order. `place` returns the resource to report one at and whether that is what has the flaw, or
    /// none to leave it out.
    pub(crate) fn all(found: &'b [Breach<'s>], place: impl Fn(&Breach<'s>) -> Option<(Key, bool)>) -> Vec<Self> {
        let mut groups: Vec<Self> = Vec::new();
        for breach in found {
            let Some((key, is_at_culprit)) = place(breach) else { continue };
            let is_at_invariant = key == breach.invariant.key;
            let joined = groups.iter_mut().find(|group| is_at_invariant && group.key == key && group.is_like(breach));
            match joined {
                Some(group) => group.others.push(breach),
                None => groups.push(Self { key, is_at_culprit, first: breach, others: Vec::new() }),
            }
        }
        groups
    }

    fn is_like(&self, breach: &Breach<'_>) -> bool {
        self.first.flaw.is_certain == breach.flaw.is_certain && self.is_refused() == is_refused(breach)
    }

    /// Whether the breaches stop a change.
    pub(crate) fn is_refused(&self) -> bool {
        is_refused(self.first)
    }

    /// The fault of the breaches in a state.
    pub(crate) fn fault(&self, state: &Snapshot) -> Fault {
        let first = self.first;
        if self.others.is_empty() {
            return first.fault(state, &self.key, self.is_at_culprit);
        }
        let count = 1 + self.others.len();
        let kinds = if count < MOST_BREACHES { count.to_string() } else { format!("{count} or more") };
        let name = first.invariant_name();
        let (request, clause) = (first.request_code(), &first.flaw.clause);
        let (code, verb, which) = match first.flaw.is_certain {
            true => (Code::InvariantBroken, "break", "which"),
            false => (Code::InvariantUnproven, "may break", "which depends on"),
        };
        let message =
            format!("{kinds} kinds of requests {verb} the invariant {name}, for example {request}, {which} {clause}");
        let mut help = "correct these edges and routes, or add an entry to `exemptions`".to_owned();
        for breach in std::iter::once(&first).chain(&self.others).take(MOST_WAYS) {
            help += &format!("\nway: {}", breach.way(state));
        }
        if count > MOST_WAYS {
            help += &format!("\nand {} more", count - MOST_WAYS);
        }
        Fault { invariant: Some(Box::new(first.finding(state))), ..Fault::new(code, message).help(help) }
    }
}
