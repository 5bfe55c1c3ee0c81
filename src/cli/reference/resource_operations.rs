//! What the operations on resources and modules have in common, and what only some of them do.

use std::collections::BTreeMap;

use super::markdown::{SharedRows, code};
use super::operation::DocumentedOperation;

const RESOURCES: &str = "\
## Resources

This is what operations on resources and modules share. The sections have what only some of them do and, after `Instead:`,
what replaces this. All but those that delete return the resource or the module. PATCH takes the fields of POST.";

const MODULES: &str = "\
## Modules

A response has the fields of the request, unless its type is another one.";

/// The actions on resources and modules.
const ACTIONS: [&str; 8] =
    ["List", "Create", "Get", "Change", "Delete", "Get a module", "Set a module", "Remove a module"];

/// The actions, each with what more than half of its operations do.
pub(super) struct CommonFacts([(&'static str, Vec<String>); 8]);

impl CommonFacts {
    pub(super) fn new(operations: &[DocumentedOperation<'_>], shared: &SharedRows) -> Self {
        Self(ACTIONS.map(|action| {
            let same = operations.iter().filter(|operation| operation.action() == Some(action));
            (action, common(&same.map(|operation| operation.facts(shared)).collect::<Vec<_>>()))
        }))
    }

    pub(super) fn list(&self) -> String {
        let lines: String =
            self.0.iter().map(|(action, facts)| format!("- **{action}**: {}\n", facts.join(" "))).collect();
        format!("{RESOURCES}\n\n{lines}\n")
    }

    /// The line of an operation, if it differs from others or has bodies that the list does not name.
    pub(super) fn difference(&self, operation: &DocumentedOperation<'_>, shared: &SharedRows) -> Option<String> {
        let (action, common) = self.0.iter().find(|(action, _)| operation.action() == Some(*action))?;
        let mut own = operation.facts(shared);
        let is_different = common.iter().any(|fact| !own.contains(fact));
        own.retain(|fact| !common.contains(fact));
        if is_different {
            own.insert(0, "Instead:".to_owned());
        }
        match (*action, operation.request(), operation.response()) {
            ("Create", Some(request), _) => own.insert(0, format!("Takes {request}.")),
            ("List", _, Some(response)) => own.insert(0, format!("Returns a {response}.")),
            _ => {}
        }
        (!own.is_empty()).then(|| format!("- {}: {}\n", operation.name(), own.join(" ")))
    }
}

/// The facts that more than half of the operations have.
fn common(all: &[Vec<String>]) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for fact in all.iter().flatten() {
        let count = all.iter().filter(|facts| facts.contains(fact)).count();
        if 2 * count > all.len() && !found.contains(fact) {
            found.push(fact.clone());
        }
    }
    found
}

/// The sections of all modules, each with the request and response of one of its paths.
pub(super) fn modules(operations: &[DocumentedOperation<'_>]) -> String {
    let bodies = operations.iter().filter_map(|operation| {
        let (name, request) = (operation.module()?, operation.request()?);
        let response = operation.response().filter(|response| *response != request);
        let response = response.map(|response| format!(" Response: {response}.")).unwrap_or_default();
        Some((name, format!("### {}\n\nRequest: {request}.{response}\n\n{}", code(name), operation.example())))
    });
    let sections: BTreeMap<&str, String> = bodies.collect();
    format!("{MODULES}\n\n{}", sections.into_values().collect::<String>())
}
