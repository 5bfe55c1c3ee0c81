//! Plans a change of few files without the rest of their source and without the store, from what a run that had nothing
//! to do has left (D73): the store has what these files declared then.
//!
//! Whatever a run from scratch would report besides changes of edges and routes is left to a run from scratch.

use std::{collections::BTreeMap, sync::Arc};

use jiff::Timestamp;

use super::{
    Options, Planned,
    judging::{Before, Surroundings, findings},
    stages::try_on,
};
use crate::{
    lint::have_same_hosts,
    manifest::{ChangedPart, ManifestFile, is_of_edge, state_of},
    model::{
        desired::Desired,
        key::Key,
        kind::https_edge::HttpsEdge,
        resource::AnyResource,
        rules,
        snapshot::{Entry, Snapshot},
    },
    plan::{Effect, diff},
    store::Store,
};

/// The whole source, whose store has nothing to do.
pub(super) struct SettledSource {
    pub files: Vec<Arc<ManifestFile>>,
    /// The revision of the store.
    pub revision: u64,
    /// The number of resources that are as declared.
    pub unchanged: usize,
}

/// Whether the runs after this one can plan changes without the store: drift and the resources of other sources are only
/// known from there. The plan, if any, was applied as `revision`.
pub(crate) fn can_be_planned_apart(store: &Store, options: &Options, planned: &Planned, revision: u64) -> bool {
    let is_first = planned.plan.as_ref().is_some_and(|plan| plan.base == 0);
    is_settled_alone(&store.snapshot(), options, planned, revision)
        && (is_first || store.edges_are_written_by(&options.source).unwrap_or(false))
}

/// Whether the store has what the manifests declare, without an error or a resource of another source.
pub(super) fn is_settled_alone(snapshot: &Snapshot, options: &Options, planned: &Planned, revision: u64) -> bool {
    let is_of_other = |entry: &Arc<Entry>| entry.claim.as_deref().is_some_and(|claim| claim.source != options.source);
    options.prune && planned.leaves_nothing(revision) && !snapshot.iter().any(is_of_other)
}

/// Plans a change of a part of a source, in which nothing was found before. Returns none if a run from scratch could report
/// anything else about it than changes of edges and routes, or has to look at anything else than the part.
pub(super) fn plan_part(
    part: &ChangedPart,
    whole: SettledSource,
    options: &Options,
    now: Timestamp,
) -> Option<Planned> {
    let (source, prune) = (options.source.as_str(), options.prune);
    let before = part.resolved_before(source, prune)?.desired;
    let snapshot = state_of(&before, whole.revision);
    let mut resolved = part.resolved_now(&snapshot, source, prune)?;
    if !keeps_its_bounds(&before, &resolved.desired) {
        return None;
    }
    // Files outside of the part may use these module sets.
    resolved.facts.unused_module_sets.clear();
    // The same holds for resources of other kinds. They have not changed, and nothing was found in them.
    let others = resolved.desired.keys().filter(|key| !is_of_edge(key.kind));
    resolved.faulty = others.cloned().collect();
    let surroundings = Surroundings { others: &[], is_whole: true, now };
    let (found, denied) = findings(&resolved, surroundings, &options.lints, Before::default());
    resolved.faulty.clear();
    if !found.is_empty() || !denied.is_empty() {
        return None;
    }
    let mut plan = diff(&snapshot, &resolved.desired, source, prune, options.budget, options.key_owner.as_ref(), None);
    let is_usual = plan.refusals.is_empty()
        && plan
            .changes
            .iter()
            .all(|change| matches!(change.effect, Effect::Change | Effect::Protect) && is_of_edge(change.key.kind));
    if !is_usual || try_on(&snapshot, &mut plan).is_err() {
        return None;
    }
    plan.unchanged = whole.unchanged.checked_sub(plan.changes.len())?;
    let origins = Arc::new(resolved.take_origins());
    Some(Planned {
        diagnostics: Vec::new(),
        plan: Some(plan),
        desired: Arc::new(resolved.desired),
        left_out: Vec::new(),
        unread: None,
        is_undone: false,
        files: whole.files,
        origins,
        tried: None,
    })
}

/// Whether all resources are related to those outside of the part as before: lints compare edges by their hosts, and
/// certificates and authorities with all edges.
fn keeps_its_bounds(before: &BTreeMap<Key, Desired>, now: &BTreeMap<Key, Desired>) -> bool {
    before.keys().eq(now.keys())
        && before
            .values()
            .zip(now.values())
            .all(|(before, now)| is_bound_alike(before.spec.as_ref(), now.spec.as_ref()))
        && have_same_hosts(&of_edges(before), &of_edges(now))
}

fn of_edges(desired: &BTreeMap<Key, Desired>) -> Vec<&Desired> {
    desired.values().filter(|it| is_of_edge(it.key.kind)).collect()
}

fn is_bound_alike(before: &dyn AnyResource, now: &dyn AnyResource) -> bool {
    serves(before) == serves(now) && targets(before) == targets(now)
}

/// The hostports of an edge, and whether it passes TLS through.
fn serves(spec: &dyn AnyResource) -> Option<(&[String], bool)> {
    let edge = spec.as_any().downcast_ref::<HttpsEdge>()?;
    Some((edge.hostports.as_slice(), rules::passes_through(edge)))
}

/// What a Spec references.
fn targets(spec: &dyn AnyResource) -> Vec<Key> {
    let mut targets = Vec::new();
    spec.references(&mut |reference| targets.push(reference.target));
    targets
}

#[cfg(test)]
mod tests {
    use crate::lint::{LINTS, Scope};

    /// Lints of this scope compare a part with the rest of its source. What they compare must not have changed for a part
    /// to be planned, so a new one of them belongs into `keeps_its_bounds` or `concerns_only_edges`.
    #[test]
    fn every_lint_of_the_estate_is_considered() {
        let considered = [
            "certificate-does-not-cover-hostport",
            "duplicate-certificate",
            "duplicate-restriction",
            "secret-in-manifest",
            "unknown-label",
            "unused-certificate-authority",
            "unused-module-set",
        ];
        let of_estate = LINTS.iter().filter(|lint| matches!(lint.scope, Scope::Estate | Scope::Manifests));
        let mut names: Vec<&str> = of_estate.map(|lint| lint.name).collect();
        names.sort_unstable();
        assert_eq!(names, considered);
    }
}
