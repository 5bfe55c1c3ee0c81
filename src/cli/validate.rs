//! `edgewright validate`.

use super::{Exit, Outcome, show, source::Manifests};
use crate::{
    manifest::{self, resolve::resolve},
    model::{
        diagnostic::{Severity, sort},
        snapshot::Snapshot,
    },
};

/// Check manifests with nothing but the files.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    manifests: Manifests,
}

impl Args {
    /// Runs the command.
    pub fn run(self) -> Outcome {
        let loaded = manifest::load(&self.manifests.load_options());
        let resolved = resolve(&loaded, &Snapshot::default(), "default");
        let mut diagnostics = loaded.diagnostics;
        diagnostics.extend(resolved.diagnostics);
        sort(&mut diagnostics);
        show::diagnostics(&diagnostics);
        show::count(&diagnostics, loaded.files);
        let invalid = diagnostics.iter().any(|it| it.severity == Severity::Error);
        Ok(if invalid { Exit::Invalid } else { Exit::Done })
    }
}
