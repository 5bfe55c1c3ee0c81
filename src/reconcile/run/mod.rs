//! One run: it plans the manifests, decides what may happen, applies it, and reports.
//!
//! # The problem
//!
//! While a plan is computed, others commit, suspend the source, or roll back. What is applied must be right for the
//! state at the moment of the commit.
//!
//! # The idea
//!
//! Stages are functions from one value to the next ([`stages`]), and depend only on the manifests and a Snapshot, so they can
//! be repeated on another Snapshot. The decision is a list of checks, each of which passes the plan on or stops the run:
//! errors, a rollback, safety limits, a suspension, drift (`PlannedRun::decide`). If others commit meanwhile, the plan and the
//! decision are repeated, at last under the lock of the store ([`apply::apply_current`]).
//!
//! For example, a plan that deletes 40 routes is stopped by the deletion limit; its report is [`RunReport::Failed`](report::RunReport::Failed), and the
//! condition of the source is `Refused`.
//!
//! A rollback, a transfer and the destruction of a source are plans without manifests ([`planned_change`]), and take the same
//! way.
//!
//! # What it never does
//!
//! A run commits no part of a plan, unless the source is isolated (D44) or leaves drift as it is (D85). While manifests
//! have errors, nothing is deleted.

pub(crate) mod apply;
pub(crate) mod apply_error;
pub(crate) mod cancel;
pub(super) mod decision;
pub(crate) mod destroy;
pub(super) mod fault_message;
mod lint_stage;
mod memo;
pub(crate) mod options;
pub(crate) mod plan_cache;
pub(crate) mod plan_result;
pub(crate) mod planned_change;
mod proof_stage;
pub(crate) mod report;
pub(super) mod result;
pub(crate) mod rollback;
pub(crate) mod spans;
pub(super) mod speculative;
pub(crate) mod stages;
pub(crate) mod test_stage;
pub(crate) mod token;
pub(crate) mod transfer;
mod validation;
