//! Plans and what is done with them: reviews, budgets, rollbacks, transfers, destroyed sources, traces.

pub(crate) mod base;
pub(crate) mod destroy;
pub(crate) mod diff;
#[cfg(feature = "otlp")]
pub(crate) mod exposure;
pub(crate) mod formats;
pub(crate) mod moved_routes;
pub(crate) mod plan_cache;
pub(crate) mod refused_changes;
pub(crate) mod replay;
pub(crate) mod report_limits;
pub(crate) mod review;
pub(crate) mod review_server;
pub(crate) mod rollback;
pub(crate) mod rollback_holds;
pub(crate) mod safety;
pub(crate) mod saved_plans;
pub(crate) mod scenarios;
pub(crate) mod storefront;
pub(crate) mod trace;
pub(crate) mod trace_in_nginx;
pub(crate) mod transfer;
pub(crate) mod transfer_advice;
pub(crate) mod transfer_content;
pub(crate) mod transfer_rollbacks;
