//! The end of a source in a local store, or by a server with `/sources/{name}/destroy`.

use super::change::StoreChange;
use crate::{
    cli::{Failure, output::progress::during},
    model::{
        diagnostics::code::Code,
        json::{self, JsonError},
        key::segment,
        operation::Author,
        secrets::secret::Secrets,
        snapshot::Snapshot,
    },
    reconcile::{ApplyError, Planned, run::destroy::Destroy},
    server::operations::sources::destroy::DestroyRequest,
    store::Store,
};

impl StoreChange for Destroy {
    const COMMAND: &'static str = "destroy";
    const UNCHANGED: &'static str = "Nothing was deleted.";
    const MISTAKES: &'static [Code] = &[Code::NotFound, Code::Conflict];

    type Basis = ();

    fn path(&self) -> String {
        format!("/sources/{}/destroy", segment(&self.source))
    }

    fn request(&self, expect: Option<String>) -> Result<Vec<u8>, JsonError> {
        let dry_run = expect.is_none();
        let request = DestroyRequest { dry_run, max_deletes: self.budget, expect: expect.unwrap_or_default() };
        json::bytes(&request, Secrets::Masked)
    }

    fn plan(&self, store: &Store) -> Result<(Planned, ()), Failure> {
        Ok((during("Planning", || Destroy::plan(self, &store.snapshot())), ()))
    }

    fn apply(&self, store: &Store, (): &()) -> Result<Option<u64>, ApplyError> {
        let accept = |_: &Snapshot, planned: Planned| Ok::<_, ApplyError>(planned);
        Destroy::apply(self, store, None, accept).map(|(_, revision)| revision)
    }

    fn author(&self) -> Author {
        Destroy::author(self, None)
    }
}
