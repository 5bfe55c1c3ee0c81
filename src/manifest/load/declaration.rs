//! What a document declares: a resource with unresolved references, a module set, or a route test.

use foldhash::{HashMap, HashSet};

use super::lint_facts::LintFacts;
use crate::manifest::prelude::*;
use crate::manifest::resolve::origin::Origin;
use crate::manifest::resolve::transfer_markers::TransferMarkers;
use crate::model::route_test::RouteTest;
use crate::model::{SharedModule, Slot};

/// A resource as a manifest declares it.
#[derive(Debug, Clone)]
pub(crate) struct Declaration {
    pub kind: Kind,
    /// The name, unique per kind and parent.
    pub name: Arc<str>,
    /// The edge or subscription that contains it, by name or id.
    pub parent: Option<Arc<str>>,
    pub id: Option<String>,
    pub renamed_from: Option<String>,
    pub prevent_destroy: bool,
    /// The sources that it moves between.
    pub transfer: TransferMarkers,
    pub spec: Arc<dyn AnyResource>,
    /// Module sets to use, by name.
    pub modules_from: Vec<String>,
    pub token_file: Option<PathBuf>,
    /// The origin of the spec.
    pub origin: Origin,
    pub facts: LintFacts,
    /// Whether its document has errors, so that the declaration may be incomplete.
    pub faulty: bool,
}

impl Declaration {
    /// Whether the manifest states the ID of the resource, or that of the subscription of an event source.
    pub(crate) fn states_id(&self) -> bool {
        self.id.is_some() || self.states_subscription()
    }

    /// Whether the manifest of an event source states the ID of its subscription. Names have no `_`.
    pub(crate) fn states_subscription(&self) -> bool {
        self.kind == Kind::EventSource && self.parent.as_deref().is_some_and(|parent| parent.contains('_'))
    }

    /// Adds the facts about the resource to those about all manifests.
    pub(crate) fn note_facts(&self, key: &Key, all: &mut ManifestFacts) {
        let sets = &self.modules_from;
        if sets.len() > 1 && sets.iter().collect::<HashSet<_>>().len() < sets.len() {
            all.repeated_module_sets.push((key.clone(), sets.clone()));
        }
        self.facts.note(|| Subject::Resource(key.clone()), all);
    }

    /// Whether another declaration has the same identity, and neither has a fault.
    pub(super) fn has_shape_of(&self, other: &Self) -> bool {
        !self.faulty
            && !other.faulty
            && (self.kind, &self.name, &self.parent) == (other.kind, &other.name, &other.parent)
            && (&self.id, &self.renamed_from, &self.token_file) == (&other.id, &other.renamed_from, &other.token_file)
            && self.transfer == other.transfer
    }
}

/// The declaration of each resource.
pub(crate) type Origins = HashMap<Key, Arc<Declaration>>;

/// A set of modules for routes.
#[derive(Debug, Clone)]
pub(crate) struct ModuleSet {
    pub modules: Vec<(&'static Slot, SharedModule)>,
    /// The origin of the `spec`.
    pub origin: Origin,
    pub facts: LintFacts,
    /// Whether its document has errors.
    pub faulty: bool,
}

impl ModuleSet {
    /// Whether another set has equal modules.
    pub(crate) fn has_same_modules(&self, other: &Self) -> bool {
        let mut pairs = self.modules.iter().zip(&other.modules);
        self.modules.len() == other.modules.len()
            && pairs.all(|((slot, one), (other_slot, other))| slot == other_slot && one.same(other.as_ref()))
    }
}

/// A route test of a source.
#[derive(Debug, Clone)]
pub(crate) struct DeclaredTest {
    pub name: String,
    pub test: RouteTest,
    /// The origin of the `spec`.
    pub origin: Origin,
}
