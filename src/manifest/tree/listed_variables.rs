//! The manifests of a configured source, which read only the environment variables that its entry lists (D28).
//!
//! The sources of a server share its environment. Without a list, whoever can merge into one repository could read the
//! secrets of all others, because an author chooses the name of a variable and sees the secrets of their own resources.

use super::manifest_tree::{Tree, TreeFiles};
use super::variables::check_variable;
use crate::manifest::prelude::*;
use crate::manifest::resolve::origin::ManifestFile;
use crate::model::secrets::redact::quotable_variable;

/// The tree of a source with the variables that it can read.
#[derive(Debug)]
pub(crate) struct ListedVariables {
    tree: Arc<dyn Tree>,
    /// The name of the source, for errors.
    source: String,
    names: BTreeSet<String>,
}

impl ListedVariables {
    /// Limits the manifests of a source, and its surrounding ones, to the variables with these names, if there is a list.
    pub(crate) fn wrap(tree: Arc<dyn Tree>, source: &str, names: Option<BTreeSet<String>>) -> Arc<dyn Tree> {
        match names {
            Some(names) => Arc::new(Self { tree, source: source.to_owned(), names }),
            None => tree,
        }
    }
}

impl Tree for ListedVariables {
    fn manifests(&self) -> TreeFiles {
        self.tree.manifests()
    }

    fn inner(&self) -> Option<&dyn Tree> {
        Some(self.tree.as_ref())
    }

    fn file(&self, manifest: &ManifestFile, name: &str) -> Result<String, Fault> {
        self.tree.file(manifest, name)
    }

    fn variable(&self, manifest: &ManifestFile, name: &str) -> Result<String, Fault> {
        if self.names.contains(name) {
            return self.tree.variable(manifest, name);
        }
        // What no source can list has a help of its own.
        check_variable(name)?;
        let (shown, source) = (printable(quotable_variable(name)), printable(&self.source));
        let help = match self.names.is_empty() {
            true => format!("add `variables: [{shown}]` to the source in the configuration file"),
            false => format!("add `{shown}` to `variables` of the source in the configuration file"),
        };
        let message = format!("source `{source}` cannot read the environment variable `{shown}`");
        Err(Fault::new(Code::Forbidden, message).help(help))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::manifest::loader::{Loaded, load, load_again};
    use crate::manifest::tree::{Disk, Recorder};

    #[test]
    fn a_source_reads_what_its_entry_lists_and_what_was_read_before_does_not_count() {
        let folder = tempfile::tempdir().unwrap();
        let text = "apiVersion: edgewright/v1\nkind: CertificateAuthority\nmetadata: {name: a}\n\
                    spec: {ca_pem: {from_env: PATH}}\n";
        std::fs::write(folder.path().join("a.yaml"), text).unwrap();
        let tree = |names: &[&str]| {
            let names = names.iter().map(|name| (*name).to_owned()).collect();
            Recorder::new(ListedVariables::wrap(Arc::new(Disk::new([folder.path()])), "docs", Some(names)))
        };
        let refused = |loaded: &Loaded| {
            let help = loaded.diagnostics.iter().find(|it| it.code == Code::Forbidden.into()).map(|it| it.help.clone());
            help.flatten()
        };
        let listed = tree(&["OTHER", "PATH"]);
        let loaded = load(&listed);
        assert_eq!(refused(&loaded), None);
        assert!(listed.unchanged());
        for (names, expected) in [
            (&[][..], "add `variables: [PATH]` to the source in the configuration file"),
            (&["OTHER"][..], "add `PATH` to `variables` of the source in the configuration file"),
        ] {
            assert_eq!(refused(&load_again(&tree(names), &loaded)).as_deref(), Some(expected));
        }
    }
}
