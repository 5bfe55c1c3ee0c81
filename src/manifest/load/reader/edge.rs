//! Edges: their Spec and the routes inside, what they allow and require of the routes of all sources (D103), and whose
//! certificates they present (D112).

use super::{Body, Reader};
use crate::manifest::load::kinds::{CERTIFICATES_FROM, DELEGATES_TO, REQUIRED_MODULES, SHARED_WITH};
use crate::manifest::prelude::*;
use crate::manifest::resolve::origin::DocumentPart;
use crate::model::TlsCertificate;
use crate::model::kind::https_edge::Delegation;
use crate::syntax::yaml::Node;
use crate::tenancy::delegation;

impl Reader<'_> {
    /// Reads an edge and the routes inside it.
    pub(super) fn edge(&mut self, body: &Body<'_>) {
        let Body { metadata, spec, .. } = *body;
        let delegates_to: Vec<Delegation> = self.list(spec, DocumentPart::Spec, DELEGATES_TO);
        for fault in delegation::check(&delegates_to) {
            self.report_in(DocumentPart::Spec, fault.under(&DELEGATES_TO.into()));
        }
        let certificates_from = self.source_names(spec, CERTIFICATES_FROM);
        let modules_from: Vec<String> = self.list(spec, DocumentPart::Spec, REQUIRED_MODULES);
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

    /// Reads a certificate, and the sources whose edges may present it.
    pub(super) fn certificate(&mut self, body: &Body<'_>) {
        // Null is probably a list that was not finished, which must not share the certificate with everybody.
        let shared_with = body.spec.get(SHARED_WITH).map(|_| self.source_names(body.spec, SHARED_WITH));
        let Some(mut certificate) = self.spec_of(body) else { return };
        if shared_with.is_some()
            && let Some(spec) = certificate.as_any().downcast_ref::<TlsCertificate>()
        {
            certificate = Arc::new(TlsCertificate { shared_with, ..spec.clone() });
        }
        self.declare(body.metadata, certificate, DocumentPart::Spec, |_| {});
    }

    /// Reads a list of sources.
    fn source_names(&mut self, spec: Node<'_>, field: &'static str) -> Vec<String> {
        let names: Vec<String> = self.list(spec, DocumentPart::Spec, field);
        for (index, _) in names.iter().enumerate().filter(|(_, name)| name.trim().is_empty()) {
            let fault = Fault::new(Code::Required, "the name of a source is required").at((field, index));
            self.report_in(DocumentPart::Spec, fault.help("name the other source, or remove the entry"));
        }
        names
    }
}
