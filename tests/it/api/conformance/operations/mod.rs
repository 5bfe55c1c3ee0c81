//! Everything but the endpoints of resources: who may ask, reconciliations, history, sources, administration.

mod access;
mod administration;
mod at_revision;
mod gateway;
mod history;
mod hooks;
mod owners;
mod permissions;
pub(super) mod reconciliations;
mod rekey;
pub(super) mod revisions;
pub(super) mod sources;
mod transfers;

use super::support::row::Row;

/// The rows that hold on a server which follows no source, but those of `access`, which ask the same of all endpoints.
pub(super) fn rows() -> Vec<Row> {
    [
        administration::rows(),
        history::rows(),
        hooks::rows(),
        owners::rows(),
        reconciliations::rows(),
        rekey::rows(),
        revisions::rows(),
        transfers::rows(),
    ]
    .concat()
}
