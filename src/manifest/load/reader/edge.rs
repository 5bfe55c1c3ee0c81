//! Edges: their Spec and the routes inside, and what they allow and require of the routes of all sources (D103).

use super::{Body, Reader};
use crate::manifest::load::kinds::{CERTIFICATES_FROM, DELEGATES_TO, REQUIRED_MODULES};
use crate::manifest::prelude::*;
use crate::manifest::resolve::origin::DocumentPart;
use crate::model::kind::https_edge::Delegation;
use crate::tenancy::delegation;

impl Reader<'_> {
    /// Reads an edge and the routes inside it.
    pub(super) fn edge(&mut self, body: &Body<'_>) {
        let Body { metadata, spec, .. } = *body;
        let delegates_to: Vec<Delegation> = self.field(spec, DocumentPart::Spec, DELEGATES_TO);
        for fault in delegation::check(&delegates_to) {
            self.report_in(DocumentPart::Spec, fault.under(&DELEGATES_TO.into()));
        }
        let certificates_from: Vec<String> = self.field(spec, DocumentPart::Spec, CERTIFICATES_FROM);
        for (index, _) in certificates_from.iter().enumerate().filter(|(_, name)| name.trim().is_empty()) {
            let fault = Fault::new(Code::Required, "the name of a source is required").at((CERTIFICATES_FROM, index));
            self.report_in(DocumentPart::Spec, fault.help("name the other source, or remove the entry"));
        }
        let modules_from: Vec<String> = self.field(spec, DocumentPart::Spec, REQUIRED_MODULES);
        if let Some(mut edge) = self.spec_of(body) {
            // A copy takes time, and few edges need one.
            if (!delegates_to.is_empty() || !certificates_from.is_empty())
                && let Some(spec) = edge.as_any().downcast_ref::<HttpsEdge>()
            {
                edge = Arc::new(HttpsEdge { delegates_to, certificates_from, ..spec.clone() });
            }
            self.declare(metadata, edge, DocumentPart::Spec, |it| it.modules_from = modules_from);
        }
        self.routes(metadata, spec);
    }
}
