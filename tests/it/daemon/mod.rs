//! `edgewright serve` as a process that follows sources.

pub(crate) mod activation;
pub(crate) mod drift;
pub(crate) mod failed_syncs;
pub(crate) mod lint_levels;
pub(crate) mod local_copy;
pub(crate) mod logs;
pub(crate) mod memory;
pub(crate) mod monitoring;
pub(crate) mod notify;
#[cfg(feature = "otlp")]
pub(crate) mod otlp;
pub(crate) mod reload;
pub(crate) mod replicas;
pub(crate) mod resilience;
pub(crate) mod rolling_upgrade;
pub(crate) mod serve;
pub(crate) mod service;
pub(crate) mod simulation;
pub(crate) mod slow_start;
pub(crate) mod source_values;
pub(crate) mod sources;
pub(crate) mod sources_surrounding;
pub(crate) mod status;
pub(crate) mod suspensions;
pub(crate) mod write_quiescence;
