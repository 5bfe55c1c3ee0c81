//! What files do not tell of the consent that surrounding resources need from each other (D103, D112).
//!
//! # The problem
//!
//! A store refuses a route on the edge of another source, a host of another source and a name that several sources have. Surrounding
//! manifests do not tell of which source they are, so nobody can judge them as a plan does.
//!
//! # The idea
//!
//! Two folders of `--with` are taken for two sources, and one folder for one. What a surrounding edge delegates to any source but the
//! one that is surrounded may be for the other folder. Without that, a store has one of the two resources at most, whichever was
//! applied first, so both are a guess.
//!
//! For example, `--with portal` has an edge with `*.example.com`, and `--with wiki` one with `wiki.example.com`. If neither delegates
//! `/`, a store refuses the second one.

use foldhash::{HashMap, HashMapExt as _};

use crate::manifest::load::declaration::Declaration;
use crate::manifest::prelude::*;
use crate::model::host_pattern::wider;
use crate::routing::invariant::{Unseen, depend_on};
use crate::tenancy::host_owners::leaves_hosts_to_another;

/// Whether two surrounding declarations are in different folders, so that they can be of different sources.
pub(super) fn are_apart(one: &Declaration, other: &Declaration) -> bool {
    one.origin.file.root != other.origin.file.root
}

/// The surrounding edges of two folders of which one has hosts of the other, without consent: hosts belong to one source on all ports.
/// `key_of` returns the key of an edge in the state.
pub(super) fn overlapping_edges(
    edges: &[Arc<Declaration>],
    source: &str,
    key_of: impl Fn(&Arc<Declaration>) -> Option<Key>,
) -> Vec<Unseen> {
    let addresses = |it: &Declaration| {
        let edge = it.spec.as_any().downcast_ref::<HttpsEdge>();
        edge.into_iter().flat_map(|edge| edge.addresses()).map(|(.., address)| address).collect::<BTreeSet<_>>()
    };
    let leaves = |it: &Declaration| {
        it.spec.as_any().downcast_ref::<HttpsEdge>().is_some_and(|edge| leaves_hosts_to_another(edge, source))
    };
    let mut by_host: HashMap<String, Vec<(usize, u16)>> = HashMap::new();
    for (at, edge) in edges.iter().enumerate().filter(|(_, edge)| !leaves(edge)) {
        for (host, port) in addresses(edge) {
            by_host.entry(host).or_default().push((at, port));
        }
    }
    let mut pairs: BTreeSet<(usize, usize)> = BTreeSet::new();
    for (host, having) in &by_host {
        yield_to_requests();
        for above in std::iter::once(host.clone()).chain(wider(host)) {
            let Some(others) = by_host.get(&above) else { continue };
            for (one, port) in having {
                // Of two with one hostport, `decided_by_ids` tells.
                let others = others.iter().filter(|(_, other_port)| above != *host || other_port != port);
                pairs.extend(others.map(|(other, _)| (*one.min(other), *one.max(other))));
            }
        }
    }
    let pairs = pairs.into_iter().filter_map(|(one, other)| Some((edges.get(one)?, edges.get(other)?)));
    let unseen = pairs.filter(|(one, other)| are_apart(one, other)).map(|(one, other)| {
        let (name, of_other) = (printable(&one.name), printable(&other.name));
        let clause = format!(
            "which of the surrounding edges `{name}` and `{of_other}` has the hosts that both have, as neither delegates `/`"
        );
        let about = Unseen::new(clause).about(one.spec.as_ref()).about(other.spec.as_ref());
        about.guessing([one, other].into_iter().filter_map(&key_of))
    });
    unseen.collect()
}

/// The names of resources that edges and routes refer to, with all their declarations.
pub(super) struct ReferencedNames<'d>(HashMap<(Kind, &'d str), Vec<&'d Declaration>>);

impl<'d> ReferencedNames<'d> {
    pub(super) fn new(declared: impl Iterator<Item = &'d Arc<Declaration>>) -> Self {
        let mut by_name: HashMap<(Kind, &'d str), Vec<&'d Declaration>> = HashMap::new();
        for it in declared.filter(|it| it.parent.is_none() && !depend_on(it.kind)) {
            by_name.entry((it.kind, &*it.name)).or_default().push(it);
        }
        Self(by_name)
    }

    /// What a surrounding resource depends on that refers to a name which its own folder does not declare, and several others do: a
    /// store that has these refuses the reference as ambiguous.
    pub(super) fn ambiguous_in(&self, it: &Declaration) -> Option<String> {
        let mut found = None;
        it.spec.references(&mut |reference| {
            let (kind, name) = (reference.target.kind, reference.target.id.as_str());
            let declared = self.0.get(&(kind, name)).map(Vec::as_slice).unwrap_or_default();
            if declared.len() > 1 && declared.iter().all(|other| are_apart(other, it)) {
                found = Some(format!(
                    "{} `{}`, which refers to the {} `{}` of several sources",
                    it.kind.info().name,
                    printable(&it.name),
                    kind.info().name,
                    printable(name)
                ));
            }
        });
        found
    }
}
