//! Edges: their Spec and the routes inside, and what they allow and require of the routes of all sources (D103).

use std::sync::Arc;

use super::{Body, Reader};
use crate::{
    manifest::{
        consent,
        declaration::Declaration,
        kinds::{DELEGATES_TO, REQUIRED_MODULES},
        origin::DocumentPart,
    },
    model::{
        fault::Path,
        kind::https_edge::{Delegation, HttpsEdge},
        resource::AnyResource,
    },
};

impl Reader<'_> {
    /// Reads an edge and the routes inside it.
    pub(in crate::manifest) fn edge(&mut self, body: &Body<'_>) {
        let Body { metadata, spec, .. } = *body;
        let delegates_to: Vec<Delegation> = self.field(spec, DocumentPart::Spec, DELEGATES_TO);
        for fault in consent::check(&delegates_to) {
            let path = fault.path.under(&Path::root().join(DELEGATES_TO));
            self.report_in(DocumentPart::Spec, fault.at(path));
        }
        let modules_from: Vec<String> = self.field(spec, DocumentPart::Spec, REQUIRED_MODULES);
        if let Some((kind, edge)) = self.spec_of(body) {
            let edge = delegating(edge, delegates_to);
            let declaration = self.declare(kind, metadata, None, edge, DocumentPart::Spec);
            self.declared.resources.push(Arc::new(Declaration { modules_from, ..declaration }));
        }
        self.routes(metadata, spec);
    }
}

/// An edge with its delegations.
fn delegating(edge: Arc<dyn AnyResource>, delegates_to: Vec<Delegation>) -> Arc<dyn AnyResource> {
    match edge.as_any().downcast_ref::<HttpsEdge>() {
        Some(spec) if !delegates_to.is_empty() => Arc::new(HttpsEdge { delegates_to, ..spec.clone() }),
        _ => edge,
    }
}
