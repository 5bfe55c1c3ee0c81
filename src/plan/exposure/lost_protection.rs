//! Changes that take what restricts access from a resource that has no routes, such as a TLS edge.

use super::Exposure;
use crate::lint::Level;
use crate::model::{AnyModule, AnyResource, Kind, Operation, Slot};
use crate::plan::change::{Change, Plan};
use crate::plan::effect::Effect;
use crate::routing::behaviour::{missing_protections, protections};
use crate::syntax::text::printable;

impl Plan {
    /// Returns what the plan opens apart from HTTP requests, in execution order.
    pub(crate) fn lost_protections(&self) -> Vec<Exposure> {
        let judged = self.changes.iter();
        let judged = judged.filter(|it| !matches!(it.key.kind, Kind::HttpsEdge | Kind::HttpsEdgeRoute));
        judged.filter_map(Change::exposure).collect()
    }
}

impl Change {
    fn exposure(&self) -> Option<Exposure> {
        let before = self.before.as_deref()?;
        let exposure = |lost, left| {
            let name = format!("{} {}", self.key.kind, printable(&self.name));
            let key = self.key.clone();
            let (successor, unknown, example) = Default::default();
            Exposure { key, level: Level::Warn, name, successor, lost, left, unknown, example }
        };
        if before.slots().is_empty() {
            return (is_enforced(before) && !self.keeps_enforcing()).then(|| exposure(Vec::new(), Vec::new()));
        }
        // What is gone serves nobody. An implicit resource belongs to another system, and continues without its modules.
        let goes = matches!(self.effect, Effect::Delete | Effect::Replaced);
        if goes && !self.key.kind.info().implicit {
            return None;
        }
        let had = protections(before.modules());
        let has = protections(before.slots().iter().filter_map(|slot| Some((slot, self.module_after(before, slot)?))));
        let lost = missing_protections(&had, &has);
        (!lost.is_empty()).then(|| exposure(lost, has.into_values().collect()))
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

    /// Whether a resource without modules still restricts access.
    fn keeps_enforcing(&self) -> bool {
        self.operations.iter().all(|operation| match operation {
            Operation::Patch { spec, fields, .. } if fields.iter().any(|field| field == "enforced") => {
                is_enforced(spec.as_ref())
            }
            Operation::Delete { .. } => false,
            _ => true,
        })
    }
}

fn is_enforced(spec: &dyn AnyResource) -> bool {
    spec.access_lists().iter().any(|list| list.enforced)
}
