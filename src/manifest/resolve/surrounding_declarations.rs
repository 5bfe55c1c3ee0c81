//! The declarations of the manifests that surround a source (D107).

use crate::manifest::load::{declaration::ModuleSet, declarations::Declarations};
use crate::manifest::prelude::*;

/// The declarations of the surrounding manifests.
#[derive(Debug, Default)]
pub(crate) struct SurroundingDeclarations {
    pub(super) declared: Declarations,
    /// The module sets of the source and, under other names, those of the surrounding manifests.
    pub(super) sets: OnceLock<BTreeMap<String, Arc<ModuleSet>>>,
    /// The names of module sets that several files declare.
    pub(super) ambiguous: BTreeSet<String>,
}

impl SurroundingDeclarations {
    /// The surrounding declarations of some files.
    pub(crate) fn from_files(files: impl IntoIterator<Item = Declarations>) -> Self {
        let (mut all, mut ambiguous) = (Declarations::default(), BTreeSet::new());
        for declared in files {
            ambiguous.extend(declared.sets.keys().filter(|name| all.sets.contains_key(*name)).cloned());
            all.append(declared);
        }
        for name in &ambiguous {
            if let Some(set) = all.sets.get_mut(name) {
                Arc::make_mut(set).faulty = true;
            }
        }
        Self { declared: all, sets: OnceLock::new(), ambiguous }
    }
}
