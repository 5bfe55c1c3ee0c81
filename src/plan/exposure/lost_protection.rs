//! Changes that take what restricts access from resources that have no routes: a TLS edge, and IP restrictions.

use std::collections::BTreeSet;

use super::Exposure;
use crate::lint::Level;
use crate::model::kind::ip_restriction::Traffic;
use crate::model::{AnyModule, AnyResource, Key, Kind, Operation, Slot, Snapshot};
use crate::plan::change::{Change, Plan};
use crate::plan::effect::Effect;
use crate::routing::behaviour::{missing_protections, protections};
use crate::routing::enforced_restrictions::EnforcedRestrictions;
use crate::routing::routed_state::RoutedState;
use crate::syntax::text::printable;

impl Plan {
    /// Returns the resources without HTTP requests that lose modules which restrict access, in execution order.
    pub(crate) fn lost_protections(&self) -> Vec<Exposure> {
        let judged = self.changes.iter();
        let judged = judged.filter(|it| !matches!(it.key.kind, Kind::HttpsEdge | Kind::HttpsEdgeRoute));
        judged.filter_map(Change::lost_modules).collect()
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
        changed().filter(|it| lost.contains(&it.key)).map(|it| it.exposure(Vec::new(), Vec::new())).collect()
    }
}

impl Change {
    fn exposure(&self, lost: Vec<&'static str>, left: Vec<&'static str>) -> Exposure {
        let name = format!("{} {}", self.key.kind, printable(&self.name));
        let key = self.key.clone();
        let (successor, unknown, example) = Default::default();
        Exposure { key, level: Level::Warn, name, successor, lost, left, unknown, example }
    }

    fn lost_modules(&self) -> Option<Exposure> {
        let before = self.before.as_deref()?;
        // What is gone serves nobody. An implicit resource belongs to another system, and continues without its modules.
        let goes = matches!(self.effect, Effect::Delete | Effect::Replaced);
        if goes && !self.key.kind.info().implicit {
            return None;
        }
        let had = protections(before.modules());
        let has = protections(before.slots().iter().filter_map(|slot| Some((slot, self.module_after(before, slot)?))));
        let lost = missing_protections(&had, &has);
        (!lost.is_empty()).then(|| self.exposure(lost, has.into_values().collect()))
    }

    /// The module that the changed resource has in a slot.
    fn module_after<'c>(&'c self, before: &'c dyn AnyResource, slot: &Slot) -> Option<&'c dyn AnyModule> {
        let written = self.operations.iter().rev().find_map(|operation| match operation {
            Operation::PutModule { slot: at, module, .. } if at.name == slot.name => Some(Some(module.as_ref())),
            Operation::DeleteModule { slot: at, .. } if at.name == slot.name => Some(None),
            _ => None,
        });
        written.unwrap_or_else(|| before.module(slot))
    }
}
