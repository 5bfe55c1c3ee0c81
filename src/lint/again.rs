//! Judges a source again after a change of some edges and routes, from the findings of its last run (D74). Only the parts
//! that the change concerns are judged, and nothing else of the source is looked at.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::PoisonError,
};

use rayon::iter::{IntoParallelIterator, IntoParallelRefIterator, ParallelIterator};

use super::{
    Finding, KnownFindings, LINTS, Lint, Scope, World, findings_of,
    hosts::{NamedHosts, edge_of},
    parts::{KeptPart, KeptParts, Numbered, PartKey, settings_of},
};
use crate::model::{Kind, desired::Desired, key::Key, kind::https_edge::HttpsEdge, resource::AnyResource, rules};

/// A change of a source since the run that made the known findings. All resources keep their keys and their order, those
/// of other sources are the same, and none is faulty.
pub(crate) struct LintedChange<'a> {
    /// The number of the findings that were made before the change.
    pub findings: u64,
    /// The resources whose Specs may have changed, or what [`Self::may_show`] depends on.
    pub changed: &'a BTreeSet<Key>,
    /// Whether a finding may be shown. What it depends on, besides the finding, may only have changed for changed
    /// resources.
    pub may_show: &'a dyn Fn(&Finding) -> bool,
}

/// What the change does to the known findings.
struct Renewed {
    whole: Option<Vec<Numbered>>,
    parts: Vec<(PartKey, KeptPart)>,
}

/// Runs every lint as far as a change concerns it. Returns the findings that may be shown, as [`run`](super::run) would
/// return them; none if it has to run. Nothing is judged in `world` itself.
pub(crate) fn run_again(world: &World<'_>, known: &KnownFindings, change: &LintedChange<'_>) -> Option<Vec<Finding>> {
    let mut kept = known.0.lock().unwrap_or_else(PoisonError::into_inner);
    let holds = kept.number == change.findings && kept.settings == settings_of(world) && world.is_whole;
    if !holds || !kept.all().all(|part| part.holds_at(world.now)) {
        return None;
    }
    let Renewed { whole, parts } = renewed(&kept, world, change)?;
    if let Some(whole) = whole {
        kept.whole = whole;
    }
    // What is shown also depends on the levels of the changed resources.
    if !change.changed.is_empty() {
        kept.shown_of_whole = None;
    }
    kept.parts.extend(parts);
    kept.number += 1;
    Some(shown(&mut kept, world, change))
}

fn renewed(kept: &KeptParts, world: &World<'_>, change: &LintedChange<'_>) -> Option<Renewed> {
    let (mut concerned, mut concerns_all) = (BTreeSet::new(), false);
    let mut edges: BTreeSet<Key> = BTreeSet::new();
    for key in change.changed {
        // Edges reference resources of other kinds.
        if !matches!(key.kind, Kind::HttpsEdge | Kind::HttpsEdgeRoute) {
            return None;
        }
        edges.insert(Key::new(Kind::HttpsEdge, edge_of(key).clone()));
    }
    for edge in edges {
        // An edge is in the last part that does not begin after it.
        let (base, part) = kept.parts.range(..=(Scope::Edge, edge.clone())).next_back()?;
        let before = part.spec_of(&edge)?;
        concerns_all |= !is_alike_for_all(before, world.desired.get(&edge)?.spec.as_ref());
        concerned.insert(base.clone());
        if part.is_judged_by(Scope::Host) {
            continue;
        }
        let of_hosts = kept.parts.iter().filter(|((scope, _), part)| *scope == Scope::Host && part.has(&edge));
        concerned.extend(of_hosts.map(|(key, _)| key.clone()));
    }
    let parts = concerned.into_par_iter().map(|key| {
        let part = kept.parts.get(&key)?;
        let resources: Vec<&Desired> = part.keys().map(|key| world.desired.get(key)).collect::<Option<_>>()?;
        // With other hosts, edges belong to other groups.
        if key.0 == Scope::Edge && NamedHosts::all(&resources) != part.hosts {
            return None;
        }
        let judged = World { judged: &resources, others: &part.others, ..*world };
        let lints = LINTS.iter().copied().enumerate().filter(|(_, lint)| part.is_judged_by(lint.scope));
        let findings: Numbered = lints.flat_map(|(at, lint)| findings_of(at, lint, &judged)).collect();
        let renewed = part.renewed(&judged, findings);
        Some((key, renewed))
    });
    let parts = parts.collect::<Option<Vec<_>>>()?;
    let whole = concerns_all.then(|| {
        let all: Vec<&Desired> = world.desired.values().collect();
        let judged = World { judged: &all, ..*world };
        lints_of(Scope::Estate).par_iter().map(|(at, lint)| findings_of(*at, lint, &judged)).collect()
    });
    Some(Renewed { whole, parts })
}

/// Whether two Specs of an edge are the same to all lints of [`Scope::Estate`].
fn is_alike_for_all(before: &dyn AnyResource, now: &dyn AnyResource) -> bool {
    let seen = |spec: &dyn AnyResource| {
        let edge = spec.as_any().downcast_ref::<HttpsEdge>()?;
        let authorities = edge.mutual_tls.as_ref().map(|tls| tls.certificate_authority_ids.clone());
        Some((edge.hostports.clone(), rules::passes_through(edge), authorities))
    };
    seen(before) == seen(now)
}

fn lints_of(scope: Scope) -> Vec<(usize, &'static Lint)> {
    LINTS.iter().copied().enumerate().filter(|(_, lint)| lint.scope == scope).collect()
}

/// All findings that may be shown, in the order of a full run.
fn shown(kept: &mut KeptParts, world: &World<'_>, change: &LintedChange<'_>) -> Vec<Finding> {
    let may_show = |(_, finding): &&(usize, Finding)| (change.may_show)(finding);
    let listed = |findings: &Numbered| findings.iter().filter(may_show).cloned().collect::<Numbered>();
    if kept.shown_of_whole.is_none() {
        kept.shown_of_whole = Some(kept.whole.iter().flat_map(listed).collect());
    }
    let of_manifests = lints_of(Scope::Manifests).into_iter().flat_map(|(at, lint)| findings_of(at, lint, world));
    let mut all: Numbered = kept.shown_of_whole.iter().flatten().cloned().collect();
    all.extend(of_manifests.filter(|found| may_show(&found)));
    let mut parts: BTreeMap<usize, &mut KeptPart> = BTreeMap::new();
    parts.extend(kept.apart.iter_mut().chain(kept.parts.values_mut()).map(|part| (part.order, part)));
    for part in parts.into_values() {
        if part.shown.is_none() {
            part.shown = Some(listed(&part.findings));
        }
        all.extend(part.shown.iter().flatten().cloned());
    }
    all.sort_by_key(|(at, _)| *at);
    all.into_iter().map(|(_, finding)| finding).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// These lints look at edges only as [`is_alike_for_all`] compares them, or not at all. A new one of them may need
    /// another comparison there.
    #[test]
    fn every_lint_of_the_estate_is_considered() {
        let considered = [
            "certificate-does-not-cover-hostport",
            "duplicate-certificate",
            "duplicate-restriction",
            "unused-certificate-authority",
        ];
        let mut names: Vec<&str> = lints_of(Scope::Estate).iter().map(|(_, lint)| lint.name).collect();
        names.sort_unstable();
        assert_eq!(names, considered);
    }
}
