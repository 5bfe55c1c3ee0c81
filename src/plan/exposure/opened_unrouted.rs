//! Changes that open access to what has no routes: a TLS edge, and the traffic of IP restrictions.

use std::collections::BTreeSet;

use super::Exposure;
use crate::model::kind::ip_restriction::Traffic;
use crate::model::{Key, Kind, Snapshot};
use crate::plan::change::{Change, Plan};
use crate::routing::behaviour::AccessDifference;
use crate::routing::enforced_restrictions::EnforcedRestrictions;
use crate::routing::routed_state::RoutedState;
use crate::syntax::text::printable;

impl Plan {
    /// Returns the TLS edges that the plan opens, in execution order. One that is deleted belongs to another system, and continues
    /// without its modules.
    pub(super) fn opened_tls_edges(&self, before: &Snapshot, after: &Snapshot) -> Vec<Exposure> {
        let edges = self.changes.iter().filter(|it| it.key.kind == Kind::TlsEdge);
        let opened = edges.filter_map(|it| {
            let access = AccessDifference::of_resource([before.get(&it.key), after.get(&it.key)]);
            access.opens(false).then(|| exposure(it, &access))
        });
        opened.collect()
    }

    /// Returns the IP restrictions that no longer restrict access, and that no other one replaces, in execution order.
    pub(super) fn lost_restrictions(&self, before: &Snapshot, after: &Snapshot) -> Vec<Exposure> {
        let changed = || self.changes.iter().filter(|it| it.key.kind == Kind::IpRestriction);
        if changed().next().is_none() {
            return Vec::new();
        }
        let mut lost: BTreeSet<&Key> = BTreeSet::new();
        for traffic in Traffic::ALL {
            let of = |state| EnforcedRestrictions::new(RoutedState::stored(state, ""), traffic);
            let (then, now) = (of(before), of(after));
            lost.extend(now.lost_since(&then));
        }
        let lost = changed().filter(|it| lost.contains(&it.key));
        lost.map(|it| exposure(it, &AccessDifference::default())).collect()
    }
}

fn exposure(it: &Change, access: &AccessDifference) -> Exposure {
    Exposure::new(it.key.clone(), format!("{} {}", it.key.kind, printable(&it.name)), access)
}
