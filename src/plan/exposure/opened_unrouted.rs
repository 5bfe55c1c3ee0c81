//! Changes that open access to what has no routes: a TLS edge, and the traffic of IP restrictions.

use std::collections::BTreeMap;

use super::Exposure;
use crate::model::kind::ip_restriction::Traffic;
use crate::model::module::admission::AccessChange;
use crate::model::module::ip_restriction::EndpointIpRestriction;
use crate::model::{Key, Kind, Module as _, Snapshot};
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

    /// Returns the IP restrictions that no longer restrict access or may admit others, and that no other one replaces, in execution
    /// order.
    pub(super) fn opened_restrictions(&self, before: &Snapshot, after: &Snapshot) -> Vec<Exposure> {
        let changed = || self.changes.iter().filter(|it| it.key.kind == Kind::IpRestriction);
        if changed().next().is_none() {
            return Vec::new();
        }
        let mut opened: BTreeMap<&Key, Option<AccessChange>> = BTreeMap::new();
        for traffic in Traffic::ALL {
            let of = |state| EnforcedRestrictions::new(RoutedState::stored(state, ""), traffic);
            let (then, now) = (of(before), of(after));
            opened.extend(now.opened_since(&then));
        }
        let exposures = changed().filter_map(|it| {
            let change = opened.get(&it.key)?.map(|change| (EndpointIpRestriction::SLOT, change));
            let access = AccessDifference { changed: change.into_iter().collect(), ..AccessDifference::default() };
            Some(exposure(it, &access))
        });
        exposures.collect()
    }
}

fn exposure(it: &Change, access: &AccessDifference) -> Exposure {
    Exposure::new(it.key.clone(), format!("{} {}", it.key.kind, printable(&it.name)), access)
}
