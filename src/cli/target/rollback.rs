//! Rollbacks in a local store, or by a server with `/rollbacks`.

use std::sync::Arc;

use super::change::{ChangeTarget, StoreChange};
use crate::{
    cli::{
        Failure,
        operate::revision::{revision_in, revision_through, unreached},
        output::progress::during,
    },
    model::{
        json::{self, JsonError},
        operation::Author,
        secrets::secret::Secrets,
        snapshot::Snapshot,
    },
    reconcile::{ApplyError, Planned, run::rollback::Rollback},
    server::operations::rollback::RollbackRequest,
    store::{Store, history::commits::RevisionName},
};

/// Where a rollback is planned and applied.
pub(crate) type RollbackTarget = ChangeTarget<Rollback>;

impl RollbackTarget {
    /// Finds the number of a revision.
    pub(crate) fn revision(&self, name: &RevisionName) -> Result<u64, Failure> {
        match self {
            ChangeTarget::Store { store, .. } => revision_in(store, name),
            ChangeTarget::Server { client, .. } => revision_through(client, name),
        }
    }
}

impl StoreChange for Rollback {
    const COMMAND: &'static str = "rollback";
    const REMARK: Option<&'static str> =
        Some("A server that follows a source holds its manifests until they change; `reconcile` applies them again.");

    /// The state to bring back.
    type Basis = Arc<Snapshot>;

    fn path(&self) -> String {
        "/rollbacks".to_owned()
    }

    fn request(&self, expect: Option<String>) -> Result<Vec<u8>, JsonError> {
        let request = RollbackRequest {
            to: self.to,
            source: self.source.clone().unwrap_or_default(),
            dry_run: expect.is_none(),
            max_deletes: self.budget,
            expect,
        };
        json::bytes(&request, Secrets::Masked)
    }

    fn plan(&self, store: &Store) -> Result<(Planned, Arc<Snapshot>), Failure> {
        let target = during("Reading", || store.snapshot_at(self.to)).map_err(unreached)?;
        let planned = during("Planning", || Rollback::plan(self, &store.snapshot(), &target));
        Ok((planned, target))
    }

    fn apply(&self, store: &Store, target: &Arc<Snapshot>) -> Result<Option<u64>, ApplyError> {
        let accept = |_: &Snapshot, planned: Planned| Ok::<_, ApplyError>(planned);
        Rollback::apply(self, store, target, None, accept).map(|(_, revision)| revision)
    }

    fn author(&self) -> Author {
        self.attempted(None)
    }
}
