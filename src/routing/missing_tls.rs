//! Where a module lacks TLS: where it does not end at the edge, or at a port without it (D120).
//!
//! A module that checks the connection, such as `mutual_tls`, has an unknown effect there. One that reads requests, such as a login,
//! also reads those of plain HTTP: traces and comparisons take its effect for certain, and only invariants call it a doubt. Rules
//! refuse most of the other modules on an edge that passes TLS through, but not on one whose `tls_termination` is disabled.

use crate::model::module::tls_termination::{TerminateAt, TlsTermination};
use crate::model::traffic::{PLAIN_HTTP, Stage};
use crate::model::{AnyResource, Module as _, Slot};

/// The TLS that a module lacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MissingTls {
    /// The edge does not terminate TLS.
    AtEdge,
    /// The port has no TLS.
    AtPort,
}

impl MissingTls {
    /// Finds the TLS that the module in a slot lacks on an edge, or on a route of it, for requests to a port. It acts at
    /// a stage.
    pub(super) fn for_module(slot: &Slot, stage: Stage, edge: &dyn AnyResource, port: u16) -> Option<Self> {
        if slot.needs_termination && !terminates(edge) {
            return Some(Self::AtEdge);
        }
        (stage == Stage::Connection && port == PLAIN_HTTP).then_some(Self::AtPort)
    }

    /// Like [`for_module`](Self::for_module), for modules that check the connection only: the others also read requests
    /// without TLS.
    pub(super) fn for_connection(slot: &Slot, stage: Stage, edge: &dyn AnyResource, port: u16) -> Option<Self> {
        if stage == Stage::Connection { Self::for_module(slot, stage, edge, port) } else { None }
    }

    /// Why nobody can tell, for the note of a step.
    pub(super) fn note(self) -> &'static str {
        match self {
            Self::AtEdge => "the edge does not terminate TLS",
            Self::AtPort => "port 80 has no TLS",
        }
    }
}

/// Whether an edge terminates TLS.
fn terminates(edge: &dyn AnyResource) -> bool {
    let module = edge.modules().find(|(slot, _)| slot.name == TlsTermination::SLOT);
    let tls = module.and_then(|(_, module)| module.as_any().downcast_ref::<TlsTermination>());
    tls.is_none_or(|tls| tls.enabled && tls.terminate_at == TerminateAt::Edge)
}
