//! Reads route tests.

use std::sync::Arc;

use super::{Body, Reader};
use crate::manifest::load::declaration::DeclaredTest;
use crate::manifest::resolve::origin::DocumentPart;
use crate::model::Path;
use crate::model::decode::decode_with;
use crate::model::diagnostics::{Check as _, check};
use crate::model::route_test::RouteTest;

impl Reader<'_> {
    /// Reads a route test.
    pub(super) fn route_test(&mut self, body: &Body<'_>) {
        let (test, faults) = decode_with::<RouteTest>(body.spec, &[], Some(self.values));
        self.warn_of_null_entries(DocumentPart::Spec, &Path::root());
        self.check(DocumentPart::Spec, &Path::root(), test.as_ref(), faults, |test, found| {
            test.check(found);
            check::tokens(found, "spec", test);
        });
        let Some(test) = test else { return };
        let origin = self.origin.part(DocumentPart::Spec);
        self.declared.tests.push(Arc::new(DeclaredTest { name: body.metadata.name.clone(), test, origin }));
    }
}
