//! The memo of the lint stage: what a server keeps of one run on a source for the next one (D74).
//!
//! # The problem
//!
//! A followed source with 10,000 edges and 100,000 routes is judged again whenever one of its files is saved. Nearly all
//! findings are those of the last run, and making them takes much longer than everything else that such a run does.
//!
//! # The idea
//!
//! As in a build system, the stage is a pure function, here of each part of a source (`partition.rs`), and the memo keeps
//! outputs by inputs:
//!
//! ```text
//! judge(part, what its lints look at) → findings
//! ```
//!
//! A part whose inputs are those of the last run has the same findings, which are shared with the memo. Any other part is
//! judged. The inputs are all that the views of the lints show (`view.rs`):
//!
//! | Input | Is the same if |
//! | --- | --- |
//! | The resources of the part | their keys are equal, and their Specs are the same allocations: a Spec never changes |
//! | Their order in the manifests | it is; the positions themselves can all move by a line |
//! | Edges and routes of other sources beside them | they are the same allocations |
//! | Which lints run, and their settings | they are equal ([`SharedInputs`]) |
//! | The names of certificate authorities | they are equal ([`SharedInputs`]) |
//! | The time | it is before the next change of a validity (`validity.rs`), and after the part was judged |
//!
//! Levels are an input, too, through the lints that run: one that is allowed everywhere does not.
//!
//! # An example
//!
//! Edge `shop` gets another hostport, which edge `campaign` also serves. The part with `shop` has a new Spec: it is judged.
//! `shop` and `campaign` are a new group of edges with one host: it is judged. The part of `campaign` is judged without the
//! lints that look at hosts, which another part does now. All other parts are compared, and keep their findings.
//!
//! # Alternatives
//!
//! Crates for incremental computation were tried on a model of 10,000 edges with 100,000 routes. salsa 0.28 is as fast while
//! all names stay, but resolves everything after a rename, never frees the inputs of deleted files, and cancels by
//! unwinding, which this program forbids itself. comemo 0.5 hashes the content of all inputs in each run, which takes
//! 100 ms where comparing addresses takes 3 ms, and keeps one global cache for each function. Both need more dependencies
//! than this needs lines. A way around the comparison, which knew the parts that a change concerns, saved some milliseconds,
//! and each new lint and each new input had to meet its conditions.
//!
//! # What it never does
//!
//! - It does not decide what is judged: that depends on the inputs alone, so that a run with an empty memo, as each command
//!   makes it, finds the same in the same order. A property test compares the two.
//! - It keeps nothing that the last run did not use. Each run takes the old memo and leaves a new one.
//! - It keeps no findings of lints that look at the whole source or at facts about manifests. These run each time.
//! - It is not written to the disk, and not shared between sources: the inputs do not name the source.

use std::{mem, sync::Arc};

use foldhash::HashMap;
use jiff::Timestamp;

use super::by_kind::of_kind;
use super::finding::Finding;
use super::host_groups::NamedHosts;
use super::partition::{LintPart, PartLints, PartName};
use super::validity::next_change;
use super::world::World;
use crate::lock::Lock;
use crate::model::{AnyResource, Desired, Entry, Id, Key, Kind};

/// Findings with the position of their lint in the table.
pub(crate) type NumberedFindings = Vec<(usize, Finding)>;

/// The findings of the last run on a source, by their inputs.
#[derive(Debug, Default)]
pub(crate) struct LintMemo(Lock<Memo>);

#[derive(Debug, Default)]
struct Memo {
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

impl LintMemo {
    /// Takes the parts of the last run, if they were judged with the same shared inputs.
    pub(super) fn take(&self, shared: &SharedInputs) -> HashMap<PartName, KnownPart> {
        let last = mem::take(&mut *self.0.lock());
        if last.shared == *shared { last.parts } else { HashMap::default() }
    }

    /// Keeps the parts of a run.
    pub(super) fn keep(&self, shared: SharedInputs, parts: HashMap<PartName, KnownPart>) {
        *self.0.lock() = Memo { shared, parts };
    }

    /// The time from which a lint may report something else about the same resources, or none.
    pub(crate) fn valid_until(&self) -> Option<Timestamp> {
        self.0.lock().parts.values().filter_map(|part| part.until).min()
    }

    /// The findings of each part. Those of a part that is not judged again are the same allocation.
    #[cfg(test)]
    pub(crate) fn outputs(&self) -> Vec<Arc<NumberedFindings>> {
        let memo = self.0.lock();
        memo.parts.values().map(|part| Arc::clone(&part.findings)).collect()
    }
}

/// A part as it was judged, with all inputs apart from those that all parts share.
#[derive(Debug)]
pub(super) struct KnownPart {
    lints: PartLints,
    resources: Vec<(Key, Arc<dyn AnyResource>)>,
    /// The indices of the resources in the order of the manifests.
    order: Vec<usize>,
    /// Edges and routes of other sources.
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
