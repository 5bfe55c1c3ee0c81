//! `edgewright resume`: a suspended source is applied again (D84), or goes on from a commit that it refuses (D89).

use ureq::http::Method;

use super::suspend::SEE_SUSPENSION;
use crate::cli::command_prelude::*;
use crate::cli::target::source_action;
use crate::manifest::tree::whole_commit;
use crate::reconcile::sync_loop::suspension::SourceRecords;
use crate::server::operations::sources::drift_view::held;
use crate::server::operations::sources::view::{SourceResume, SourceView};

/// Resume a suspended source: `serve` applies it again.
///
/// With --accept-commit, a source with `verify` applies a commit that it refuses with `REWOUND`. Works through a server
/// with --server, or on an offline store.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Name of the source.
    #[arg(value_name = "SOURCE", value_parser = source_name)]
    source: String,
    /// Continue from this commit, although it does not descend from the last applied one.
    #[arg(long, value_name = "COMMIT", value_parser = whole_commit)]
    accept_commit: Option<String>,
    #[command(flatten)]
    pub place: StoreOrServer,
    #[command(flatten)]
    retention: RetentionArgs,
}

impl Args {
    pub(crate) fn run(self) -> CommandResult {
        let (was_suspended, is_held) = match self.place.client()? {
            Some(client) => {
                let path = source_action(&self.source, "resume");
                let body = match &self.accept_commit {
                    None => Vec::new(),
                    commit => json::bytes(&SourceResume { accept_commit: commit.clone() }, Secrets::Masked)?,
                };
                let resumed = client.change::<SourceView>(&Method::POST, &path, Some(&body), SEE_SUSPENSION)?;
                (resumed.replaced_suspension.is_some(), resumed.is_held())
            }
            None => {
                let store = Arc::new(self.place.store.open_existing(&self.retention)?);
                let is_held = !store.snapshot().rejected(&self.source).is_empty();
                let records = SourceRecords::open(store)?;
                if let Some(commit) = &self.accept_commit {
                    records.applied.accept(&self.source, None, commit, Author::Local)?;
                }
                (records.set_suspension(&self.source, None, Author::Local)?.is_some(), is_held)
            }
        };
        if let Some(commit) = &self.accept_commit {
            say(&format!("Source {} continues from commit {commit}.", self.source));
        }
        match was_suspended {
            true => say(&format!("Resumed source {}.", self.source)),
            false if self.accept_commit.is_none() && is_held => {
                say(&format!("Source {} was not suspended. Its manifests are {}.", self.source, held(&self.source)));
            }
            false if self.accept_commit.is_none() => say(&format!("Source {} was not suspended.", self.source)),
            false => {}
        }
        Ok(Exit::Done)
    }
}
