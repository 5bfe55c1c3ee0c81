//! Reads sets of modules for routes.

use std::sync::Arc;

use super::{Body, Reader};
use crate::manifest::load::declaration::ModuleSet;
use crate::manifest::resolve::origin::DocumentPart;
use crate::model::decode::unknown_field;
use crate::model::{HttpsEdgeRoute, Kind, Path, Resource};

impl Reader<'_> {
    /// Reads a set of modules.
    pub(super) fn module_set(&mut self, body: &Body<'_>) {
        let Body { metadata, spec, .. } = *body;
        let slots = HttpsEdgeRoute::INFO.slots;
        let (mut modules, mut secrets) = (Vec::new(), Vec::new());
        for (key, node) in spec.entries().into_iter().flatten() {
            let Some(slot) = slots.iter().find(|slot| slot.name == key) else {
                let names: Vec<&str> = slots.iter().map(|slot| slot.name).collect();
                let fault = || unknown_field(key, &names).at(key);
                self.findings.error(|| self.origin.part(DocumentPart::Spec).diagnostic(fault()));
                continue;
            };
            if node.is_null() {
                continue;
            }
            let (path, (module, faults)) = (Path::from(slot.name), (slot.decode)(node, Some(self.values)));
            self.warn_of_null_entries(DocumentPart::Spec, &path);
            secrets.extend(self.values.take_plain_secrets().iter().map(|secret| secret.under(&path)));
            self.check(DocumentPart::Spec, &path, module.as_deref(), faults, |module, found| module.check(found));
            modules.extend(module.map(|module| (slot, module)));
        }
        self.warn_of_null_modules(Kind::HttpsEdgeRoute, spec, DocumentPart::Spec, &mut []);
        let mut facts = self.facts.clone();
        facts.plain_secrets = secrets;
        let origin = self.origin.part(DocumentPart::Spec);
        let set = ModuleSet { modules, origin, facts, faulty: false };
        self.declared.sets.entry(metadata.name.clone()).or_insert_with(|| Arc::new(set));
    }
}
