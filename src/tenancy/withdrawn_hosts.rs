//! Warnings about hosts that edges of other sources have by a consent that a plan withdraws.
//!
//! These hosts stay: no plan deletes what is another source's. So whoever withdraws the consent is told who keeps which hosts
//! beside the edge. A plan looks at each edge of the store once, however many of its edges withdraw something.

use std::collections::{BTreeMap, BTreeSet};

use foldhash::{HashMap, HashMapExt as _};

use super::delegated_prefix::WHOLE;
use super::delegation::MOST_LISTED;
use super::host_owners::HostConsent;
use super::hostports::stored_edge;
use crate::background::yield_to_requests;
use crate::model::host_pattern::wider;
use crate::model::{Code, Desired, Fault, HttpsEdge, Key, Kind, Snapshot};
use crate::syntax::text::{first_of, printable};

/// Returns a warning for each edge that no longer consents to hosts that edges of other sources have by its consent.
pub(super) fn withdrawn_hosts(
    desired: &BTreeMap<Key, Desired>,
    snapshot: &Snapshot,
    source: &str,
) -> Vec<(Key, Fault)> {
    let withdrawals = Desired::of_kind(desired, Kind::HttpsEdge).filter_map(|wanted| {
        let (edge, former) = wanted.spec_as::<HttpsEdge>().zip(stored_edge(snapshot, &wanted.key))?;
        let is_withdrawn = |source: &str| HostConsent::from_edge(edge, Some(source)) == HostConsent::Missing;
        let given = former.delegates_to.iter().filter(|_| former.required_modules.is_none());
        let given = given.filter(|it| it.path_prefix == WHOLE).map(|it| it.source.as_str());
        let from: BTreeSet<&str> = given.filter(|source| is_withdrawn(source)).collect();
        (!from.is_empty()).then_some((wanted, edge, from))
    });
    let withdrawals: Vec<(&Desired, &HttpsEdge, BTreeSet<&str>)> = withdrawals.collect();
    // By the hosts of these edges, and by the wildcards above them.
    let (mut by_host, mut by_wider) = (HashMap::<String, Vec<usize>>::new(), HashMap::<String, Vec<usize>>::new());
    for (index, (_, edge, _)) in withdrawals.iter().enumerate() {
        for (_, _, (host, _)) in edge.addresses() {
            wider(&host).for_each(|above| by_wider.entry(above).or_default().push(index));
            by_host.entry(host).or_default().push(index);
        }
    }
    let mut held: Vec<Vec<String>> = vec![Vec::new(); withdrawals.len()];
    let all = (!withdrawals.is_empty()).then(|| snapshot.newest_first(Kind::HttpsEdge, None, u64::MAX));
    for entry in all.into_iter().flatten() {
        yield_to_requests();
        let Some((theirs, owner)) = entry.spec_as::<HttpsEdge>().zip(entry.source()).filter(|it| it.1 != source) else {
            continue;
        };
        for (_, text, (host, _)) in theirs.addresses() {
            let above = std::iter::once(host.clone()).chain(wider(&host)).filter_map(|host| by_host.get(&host));
            let met: BTreeSet<usize> = above.chain(by_wider.get(&host)).flatten().copied().collect();
            for index in met {
                let is_from = withdrawals.get(index).is_some_and(|(.., from)| from.contains(owner));
                if let Some(held) = held.get_mut(index).filter(|_| is_from) {
                    held.push(format!("`{}` of source `{}`", printable(text), printable(owner)));
                }
            }
        }
    }
    let held = withdrawals.into_iter().zip(held).filter(|(_, held)| !held.is_empty());
    let warning = |((wanted, edge, _), held): ((&Desired, &HttpsEdge, BTreeSet<&str>), Vec<String>)| {
        let held = first_of(held.iter().map(String::as_str), MOST_LISTED);
        let name = printable(&wanted.claim.name);
        let message = format!("HttpsEdge `{name}` no longer leaves hosts to edges that have them: {held}");
        let field = if edge.required_modules.is_some() { "required_modules" } else { "delegates_to" };
        let help = "these edges keep their hosts, without the modules that this edge requires, but get no more ports of \
                    them; ask their owners to remove them, or leave the edge as it was";
        (wanted.key.clone(), Fault::new(Code::NotDelegated, message).at(field).help(help))
    };
    held.map(warning).collect()
}
