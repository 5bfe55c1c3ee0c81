//! The parts of a source as a run has judged them, whose findings the next run takes over (`reconcile::run::memo`, D74).
//!
//! A part has the same findings if its inputs are the same. These are all that the views of the lints show (`view.rs`):
//!
//! | Input | Is the same if |
//! | --- | --- |
//! | The resources of the part | their keys are equal, and their Specs are the same allocations: a Spec never changes |
//! | Their order in the manifests | it is; the positions themselves can all move by a line |
//! | Edges and routes of other sources, and routes without a source, beside them | they are the same allocations |
//! | Which lints run, and their settings | they are equal ([`SharedInputs`]) |
//! | The names of certificate authorities | they are equal ([`SharedInputs`]) |
//! | The time | it is before the next change of a validity (`validity.rs`), and after the part was judged |
//!
//! Levels are an input, too, through the lints that run: one that is allowed everywhere does not.

use std::{mem, sync::Arc};

use foldhash::HashMap;
use jiff::Timestamp;

use super::by_kind::of_kind;
use super::finding::Finding;
use super::host_groups::NamedHosts;
use super::partition::{LintPart, PartLints, PartName};
use super::validity::next_change;
use super::world::World;
use crate::model::{AnyResource, Desired, Entry, Id, Key, Kind};

/// Findings with the position of their lint in the table.
pub(crate) type NumberedFindings = Vec<(usize, Finding)>;

/// The parts of the last run on a source, with their inputs and findings.
#[derive(Debug, Default)]
pub(crate) struct JudgedParts {
    shared: SharedInputs,
    parts: HashMap<PartName, KnownPart>,
}

/// The inputs that all parts have in common. If one changes, everything is judged.
#[derive(Debug, Default, PartialEq)]
pub(super) struct SharedInputs {
    /// The lints that run, by their positions in the table.
    lints: Vec<usize>,
    is_whole: bool,
    expiry_days: u32,
    /// The certificate authorities with their names, which edges reference.
    authorities: Vec<(Id, String)>,
}

impl SharedInputs {
    /// The inputs in a world with the lints that run.
    pub(super) fn new(world: &World<'_>, lints: Vec<usize>) -> Self {
        let authorities = of_kind(world.judged, Kind::CertificateAuthority).iter();
        let authorities = authorities.map(|it| (it.key.id.clone(), it.claim.name.clone())).collect();
        Self { lints, is_whole: world.is_whole, expiry_days: world.expiry_days, authorities }
    }
}

impl JudgedParts {
    /// The parts of a run.
    pub(super) fn new(shared: SharedInputs, parts: HashMap<PartName, KnownPart>) -> Self {
        Self { shared, parts }
    }

    /// Takes the parts, if they were judged with the same shared inputs.
    pub(super) fn take(&mut self, shared: &SharedInputs) -> HashMap<PartName, KnownPart> {
        let last = mem::take(self);
        if last.shared == *shared { last.parts } else { HashMap::default() }
    }

    /// The time from which a lint may report something else about the same resources, or none.
    pub(crate) fn valid_until(&self) -> Option<Timestamp> {
        self.parts.values().filter_map(|part| part.until).min()
    }

    /// The findings of each part. Those of a part that is not judged again are the same allocation.
    #[cfg(test)]
    pub(crate) fn outputs(&self) -> Vec<Arc<NumberedFindings>> {
        self.parts.values().map(|part| Arc::clone(&part.findings)).collect()
    }
}

/// A part as it was judged, with all inputs apart from those that all parts share.
#[derive(Debug)]
pub(super) struct KnownPart {
    lints: PartLints,
    resources: Vec<(Key, Arc<dyn AnyResource>)>,
    /// The indices of the resources in the order of the manifests.
    order: Vec<usize>,
    /// Edges and routes of other sources, and routes without one.
    others: Vec<Arc<Entry>>,
    /// The hosts of its edges, which depend on the resources alone.
    pub hosts: Vec<NamedHosts>,
    pub findings: Arc<NumberedFindings>,
    /// When it was judged.
    since: Timestamp,
    /// When a certificate or SAML metadata next becomes valid or expires.
    until: Option<Timestamp>,
}

impl KnownPart {
    /// A part that was judged now.
    pub(super) fn new(part: LintPart<'_>, findings: Arc<NumberedFindings>, world: &World<'_>) -> Self {
        let (since, until) = (world.now, next_change(&part.view(world)));
        let LintPart { lints, resources, others, hosts, .. } = part;
        let order = order(&resources);
        let resources = resources.into_iter().map(|it| (it.key.clone(), Arc::clone(&it.spec))).collect();
        Self { lints, resources, order, others, hosts, findings, since, until }
    }

    /// Whether the resources are the same, in the same order of files and lines. Others before and between them may have come
    /// and gone.
    pub(super) fn has(&self, resources: &[&Desired]) -> bool {
        let known = &self.resources;
        known.len() == resources.len()
            && known.iter().zip(resources).all(|((key, spec), it)| Arc::ptr_eq(spec, &it.spec) && *key == it.key)
            && self.order.iter().map(|index| resources.get(*index).map(|it| place_of(it))).is_sorted()
    }

    /// Whether the findings are those that a run now would make of a part with the same resources. The clock may have been
    /// set back.
    pub(super) fn holds(&self, part: &LintPart<'_>, now: Timestamp) -> bool {
        self.lints == part.lints
            && self.others.iter().map(Arc::as_ptr).eq(part.others.iter().map(Arc::as_ptr))
            && self.since <= now
            && self.until.is_none_or(|until| now < until)
    }
}

/// The indices of resources in the order of the manifests.
fn order(resources: &[&Desired]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..resources.len()).collect();
    order.sort_unstable_by_key(|index| resources.get(*index).map(|it| place_of(it)));
    order
}

/// The place of a resource in the order of files and lines, which is one for each kind.
fn place_of(it: &Desired) -> (Kind, u32) {
    (it.key.kind, it.position)
}
