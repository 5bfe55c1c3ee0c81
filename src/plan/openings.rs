//! Plans that open access: resources that lose a restriction of access, and routes that take requests from more
//! restricted ones (D113).
//!
//! # The problem
//!
//! One removed line among many opens an admin page to everyone, and reviewers miss it.
//!
//! # The idea
//!
//! Each module says whether it restricts access, and of which sort it is. A resource that has fewer sorts after its
//! change than before is an [`Opening`]. So one login in the place of another opens nothing. `takeover` asks the same
//! of requests that change hands.
//!
//! For example, a route that loses `oauth` and keeps `ip_restriction` opens, and the message names both.
//!
//! # What it never does
//!
//! It never refuses a plan: whoever may apply a source may open it. It does not compare what a list or an address range
//! lets in; the plan shows that field by field.

pub(super) mod takeover;

use std::{
    collections::BTreeMap,
    fmt::{self, Display, Formatter},
};

use super::{Change, Effect, Plan};
use crate::{
    model::{AnyModule, AnyResource, Key, Operation, Slot},
    syntax::text::printable,
};

/// The restrictions of access, by their sort: a login that replaces another one opens nothing.
type Protections = BTreeMap<&'static str, &'static str>;

/// A resource that loses what restricts access to it, or whose requests another one takes with less of that.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Opening {
    /// The resource that has the requests once the plan is applied.
    pub key: Key,
    /// The kind, and the name in the manifests.
    name: String,
    /// The kind and name of the other resource that takes the requests, if one does.
    taker: Option<String>,
    /// The modules that no longer restrict access; none if the resource itself did.
    lost: Vec<&'static str>,
    /// The modules that still do.
    left: Vec<&'static str>,
}

impl Plan {
    /// The openings of the plan, in execution order.
    pub(crate) fn openings(&self) -> Vec<Opening> {
        self.changes.iter().filter_map(Change::opening).chain(self.takeovers.iter().cloned()).collect()
    }
}

impl Change {
    fn opening(&self) -> Option<Opening> {
        let before = self.before.as_deref()?;
        let opening = |lost, left| {
            let name = format!("{} {}", self.key.kind, printable(&self.name));
            Opening { key: self.key.clone(), name, taker: None, lost, left }
        };
        if before.slots().is_empty() {
            return (is_enforced(before) && !self.keeps_enforcing()).then(|| opening(Vec::new(), Vec::new()));
        }
        // `takeover` judges who takes its requests. An implicit resource belongs to another system, and continues
        // without its modules.
        let goes = matches!(self.effect, Effect::Delete | Effect::Replaced);
        if goes && !self.key.kind.info().implicit {
            return None;
        }
        let had = protections(before.modules());
        let has = protections(before.slots().iter().filter_map(|slot| Some((slot, self.module_after(before, slot)?))));
        let lost: Vec<&str> =
            had.iter().filter(|(sort, _)| !has.contains_key(*sort)).map(|(_, module)| *module).collect();
        (!lost.is_empty()).then(|| opening(lost, has.into_values().collect()))
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

fn protections<'m>(modules: impl Iterator<Item = (&'static Slot, &'m dyn AnyModule)>) -> Protections {
    let restricting = modules.filter(|(_, module)| module.enabled() && module.restricts_access());
    restricting.map(|(slot, _)| (if slot.is_login { "login" } else { slot.name }, slot.name)).collect()
}

impl Display for Opening {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let quoted = |modules: &[&str]| modules.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
        let Self { name, taker, lost, left, .. } = self;
        if let Some(taker) = taker {
            write!(f, "this opens access: {taker} takes requests from {name} without {}", quoted(lost))?;
            return match left.as_slice() {
                [] => f.write_str(", and nothing else restricts it"),
                left => write!(f, "; {} stays", quoted(left)),
            };
        }
        match (lost.as_slice(), left.as_slice()) {
            ([], _) => write!(f, "this opens access: {name} no longer restricts anything"),
            (lost, []) => {
                write!(f, "this opens access: {name} loses {}, and nothing else restricts it", quoted(lost))
            }
            (lost, left) => {
                write!(f, "this opens access: {name} loses {}; {} stays", quoted(lost), quoted(left))
            }
        }
    }
}
