//! The operations that no kind of resource has. Each has a file or folder of its own, with its handler and its declaration as
//! an [`ApiOperation`]; [`OPERATIONS`] lists them.
//!
//! [`checks`] has what is checked of every request before the handler gets it, and [`planned_change`] what operations have in
//! common that plan and apply.

pub(crate) mod backup;
pub(crate) mod checks;
pub(crate) mod export;
pub(crate) mod history;
pub(crate) mod hooks;
pub(crate) mod login;
pub(crate) mod operation;
pub(crate) mod origin;
pub(crate) mod owners;
pub(crate) mod planned_change;
mod probes;
pub(crate) mod proofs;
pub(crate) mod ready;
pub(crate) mod reconciliation;
pub(crate) mod rekey;
pub(crate) mod resource_names;
pub(crate) mod rollback;
pub(crate) mod routing_report;
pub(crate) mod routing_state;
pub(crate) mod saml;
pub(crate) mod sources;
pub(crate) mod trace;
pub(crate) mod transfer;
pub(crate) mod watch;
pub(crate) mod whoami;

use super::{auth::permission::Intent, gateway_feed};
use operation::ApiOperation;

/// All operations.
pub(in crate::server) static OPERATIONS: &[&ApiOperation] = &[
    &reconciliation::CREATE,
    &reconciliation::records::LIST,
    &reconciliation::records::GET,
    &rollback::CREATE,
    &history::LIST,
    &history::GET,
    &history::BLAME,
    &sources::LIST,
    &sources::GET,
    &sources::SUSPEND,
    &sources::RESUME,
    &sources::SYNC,
    &sources::destroy::CREATE,
    &resource_names::LIST,
    &origin::GET,
    &owners::LIST,
    &owners::GET,
    &owners::PATCH,
    &hooks::CREATE,
    &login::BEGIN,
    &login::ASK,
    &gateway_feed::GET,
    &backup::GET,
    &rekey::CREATE,
    &whoami::GET,
    &export::GET,
    &trace::CREATE,
    &routing_state::GET,
    &proofs::GET,
    &transfer::CREATE,
    &watch::GET,
    &saml::GET,
    &probes::HEALTH,
    &ready::GET,
    &probes::METRICS,
    &probes::DOCUMENT,
];

/// The callers who may use an endpoint, for the API reference. The endpoints of kinds only tell reads from changes.
pub(crate) fn callers(method: &str, path: &str) -> &'static str {
    let declared = OPERATIONS.iter().find(|operation| operation.path == path && operation.method_name() == method);
    match (declared, method) {
        (Some(operation), _) => operation.intent("").map_or("everybody, without an API key", Intent::callers),
        (None, "get") => Intent::Read.callers(),
        (None, _) => Intent::Change.callers(),
    }
}
