//! Transfers in a local store, or by a server with `/transfers`.

use super::change::StoreChange;
use crate::{
    cli::{Failure, output::progress::during},
    model::{
        json::{self, JsonError},
        operation::Author,
        secrets::secret::Secrets,
        snapshot::Snapshot,
    },
    plan::transfer::Transfer,
    reconcile::{
        ApplyError, Planned,
        run::transfer::{apply_transfer, plan_transfer},
    },
    server::operations::transfer::{PATH, TransferRequest},
    store::Store,
};

impl StoreChange for Transfer {
    const COMMAND: &'static str = "transfer";

    type Basis = ();

    fn path(&self) -> String {
        PATH.to_owned()
    }

    fn request(&self, expect: Option<String>) -> Result<Vec<u8>, JsonError> {
        let Transfer { from, to, resources } = self.clone();
        let (all, dry_run) = (resources.is_empty(), expect.is_none());
        let request = TransferRequest { from, to, resources, all, dry_run, expect };
        json::bytes(&request, Secrets::Masked)
    }

    fn plan(&self, store: &Store) -> Result<(Planned, ()), Failure> {
        Ok((during("Planning", || plan_transfer(self, &store.snapshot())), ()))
    }

    fn apply(&self, store: &Store, (): &()) -> Result<Option<u64>, ApplyError> {
        let accept = |_: &Snapshot, planned: Planned| Ok::<_, ApplyError>(planned);
        apply_transfer(self, store, &Author::Local, accept).map(|(_, revision)| revision)
    }

    fn author(&self) -> Author {
        Author::Local
    }
}
