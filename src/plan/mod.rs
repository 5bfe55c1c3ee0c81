//! Planning: the operations that turn a snapshot into the desired state.
//!
//! # The problem
//!
//! A reviewer must see what a run will do before it does it, and the run must do exactly that.
//!
//! # The idea
//!
//! A [`Plan`] is a list of [`Change`]s, one for each resource, with the operations that a REST request would make.
//! Whoever shows a plan and whoever applies it read the same operations. There is one planner for each reason: `diff`
//! (manifests), `revert` (a rollback), `transfer` and `destroy`. A [`RedactedPlan`] is
//! the plan without secrets, from which `format/` makes every output.
//!
//! # An example
//!
//! A manifest adds `/cart` to the edge `shop`, and another one is deleted. The plan creates `HttpsEdgeRoute shop/cart`,
//! then deletes `HttpsEdgeRoute shop/old`: creations go forward through the kinds and deletions backward, so that
//! references resolve after each operation.
//!
//! # What it never does
//!
//! It does no IO, and reads no clock and no random number: the same input gives the same plan. It never deletes what
//! another source uses (`kept_resources.rs`), nor more than the limit allows (`deletion_budget.rs`).

pub(crate) mod behaviour;
mod calls;
mod change;
mod changed_lines;
pub(crate) mod deletion_budget;
mod destroy;
mod diff;
mod effect;
pub(crate) mod exposure;
pub(crate) mod format;
mod kept_resources;
mod near_source;
mod plan_effects;
pub(crate) mod proof_report;
pub(crate) mod redacted_plan;
pub(crate) mod report;
mod revert;
pub(crate) mod saved_plan;
mod summary;
pub(crate) mod test_report;
#[cfg(test)]
mod tests;
pub(crate) mod transfer;
pub(crate) mod weakened_invariant;

pub use behaviour::{BehaviourChange, BehaviourDiff, RequestPattern};
pub use change::{Change, Plan};
pub(crate) use deletion_budget::DeletionBudget;
pub(crate) use destroy::destroy;
pub(crate) use diff::{diff, full_name};
pub use effect::Effect;
pub use kept_resources::KeptResource;
pub use plan_effects::{AccessWarning, PlanEffects};
pub(crate) use redacted_plan::{Detail, RedactedPlan};
pub(crate) use revert::revert;
pub(crate) use saved_plan::{DigestProtection, PlanConditions, SavedPlan};
pub use summary::Summary;
