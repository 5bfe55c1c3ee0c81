//! The options of commands that work on a store of their own, and how they open it.

use super::{master_key, retention_args::RetentionArgs};
use crate::cli::input::prompt::{self, Confirmation};
use crate::cli::output::diagnostics;
use crate::cli::prelude::*;
use crate::cli::serve::log;
use crate::files::folder_of;
use crate::plan::report::no_store_found;
use crate::store::local_copy::LocalCopy;
use crate::store::seal::{MasterKeySource, StoreId};
use crate::store::{MEMORY, OnDisk, is_in_database, on_disk, shown_address, store_exists};

/// The most entries of a folder among which a store is searched for that may be meant.
const MOST_COMPARED: usize = 1000;

/// The store that a command works on.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct StoreArgs {
    /// Store: a folder, or a `postgres://` URL.
    #[arg(help_heading = help::STORE, value_name = "STORE", hide_env_values = true)]
    #[arg(long, env = "EDGEWRIGHT_STORE", default_value = "edgewright.db")]
    pub(super) store: PathBuf,
    /// Whether the store is given on the command line.
    #[arg(skip)]
    pub(crate) is_by_flag: bool,
    #[command(flatten)]
    pub(super) master_key: master_key::MasterKeyArgs,
}

impl StoreArgs {
    pub(crate) fn check(&self) -> Result<(), Failure> {
        self.master_key.check()
    }

    /// Opens the store for this command.
    fn open(&self, retention: &RetentionArgs) -> Result<Store, Failure> {
        self.open_with(retention, &self.master_key.source()?)
    }

    /// Opens the store with another master key.
    pub(super) fn open_with(&self, retention: &RetentionArgs, source: &MasterKeySource) -> Result<Store, Failure> {
        log::start_for_command();
        opened(Store::open_briefly(&self.store, retention.retention(), source)?, retention, diagnostics::say)
    }

    /// Opens the store for as long as the server runs. If it is in a database and another server writes to it, opens it to follow
    /// that one. A server that has had a store open names it, and opens no other one.
    pub(crate) fn open_to_serve(&self, retention: &RetentionArgs, known: Option<StoreId>) -> Result<Store, Failure> {
        match self.open_to_write(retention, known) {
            Err(failure) if self.is_in_database() && failure.has_code(Code::StoreLocked) => {
                self.open_to_follow(known)?.ok_or(failure)
            }
            opened => opened,
        }
    }

    /// Opens the store to follow the server that writes to it, if there is one.
    pub(crate) fn open_to_follow(&self, known: Option<StoreId>) -> Result<Option<Store>, Failure> {
        Ok(Store::open_to_follow(&self.store, &self.master_key.source()?, known)?)
    }

    /// Opens the store as the server that writes to it.
    pub(crate) fn open_to_write(&self, retention: &RetentionArgs, known: Option<StoreId>) -> Result<Store, Failure> {
        let store = Store::open_known(&self.store, retention.retention(), &self.master_key.source()?, known)?;
        opened(store, retention, |warning| tracing::warn!("{warning}"))
    }

    /// Names the folder for a local copy of the store, which is in a database.
    pub(crate) fn local_copy(&self, folder: &Path, retention: &RetentionArgs) -> Result<LocalCopy, Failure> {
        Ok(LocalCopy::new(folder, &self.store, self.master_key.source()?, retention.retention())?)
    }

    /// Opens the store, which must exist.
    pub(crate) fn open_existing(&self, retention: &RetentionArgs) -> Result<Store, Failure> {
        self.require(self.open_if_there(retention)?)
    }

    /// Opens the store for reading; it must exist.
    pub(crate) fn read_existing(&self) -> Result<Store, Failure> {
        self.require(self.read_if_there()?)
    }

    pub(super) fn require(&self, store: Option<Store>) -> Result<Store, Failure> {
        store.ok_or_else(|| {
            let similar = self.similar_store().map(|store| format!("did you mean `--store {store}`?"));
            let help = similar.unwrap_or_else(|| "set --store to the folder of your store;".to_owned());
            let message = format!("no store found in `{}`", self.shown());
            let help = format!("{help} `edgewright reconcile` and `edgewright serve` create a store");
            Diagnostic::error(Code::StoreFormat, message).help(help).into()
        })
    }

    /// Opens the store if it exists: a run that applies nothing must not create one.
    pub(crate) fn open_if_there(&self, retention: &RetentionArgs) -> Result<Option<Store>, Failure> {
        store_exists(&self.store)?.then(|| self.open(retention)).transpose()
    }

    /// Opens the store, and creates it if it does not exist.
    pub(crate) fn open_or_create(&self, retention: &RetentionArgs) -> Result<Store, Failure> {
        self.open_if_there(retention)?.map_or_else(|| self.create(retention), Ok)
    }

    /// Opens a store that does not exist yet. Asks first if it may be a mistyped one and there is a terminal.
    pub(crate) fn create(&self, retention: &RetentionArgs) -> Result<Store, Failure> {
        let is_kept = !self.is_in_memory();
        let may_be_mistyped = is_kept && self.is_by_flag && !self.store.exists();
        let near = if may_be_mistyped { self.did_you_mean() } else { String::new() };
        if may_be_mistyped {
            let question = format!("No store found in `{}`.{near} Type `yes` to create it: ", self.shown());
            if matches!(prompt::ask(&question, "yes"), Confirmation::Other | Confirmation::Unseen) {
                let message = format!("no store found in `{}`, and creating one was not confirmed", self.shown());
                return Err(Diagnostic::error(Code::NotConfirmed, message)
                    .help("set --store to the folder of your store, or type `yes` to create one")
                    .into());
            }
        }
        let store = self.open(retention)?;
        if is_kept {
            diagnostics::say(&format!("New store: {}", self.shown()));
            // Nobody was asked without a terminal.
            if !near.is_empty() {
                diagnostics::say(near.trim_start());
            }
        }
        Ok(store)
    }

    /// Opens the store for a dry run, and tells if there is none: its path may be mistyped.
    pub(crate) fn read_for_plan(&self) -> Result<Option<Store>, Failure> {
        let store = self.read_if_there()?;
        if let Some(path) = self.new_store(store.as_ref()) {
            diagnostics::say(&(no_store_found(&path) + &self.did_you_mean()));
        }
        Ok(store)
    }

    /// The store that may be meant: the one with the most similar name beside this path, or beside the first folder on it
    /// that does not exist.
    fn similar_store(&self) -> Option<String> {
        if self.is_in_database() {
            return None;
        }
        let is_missing = |path: &&Path| !path.as_os_str().is_empty() && !path.exists();
        let missing = self.store.ancestors().take_while(is_missing).last().unwrap_or(&self.store);
        let name = missing.file_name()?.to_str()?;
        let entries = fs::read_dir(folder_of(missing)).ok()?;
        let is_store = |path: &PathBuf| path.is_dir() && Store::exists(path).unwrap_or_default();
        let stores = entries.flatten().take(MOST_COMPARED).map(|entry| entry.path()).filter(is_store);
        let names: Vec<String> = stores.filter_map(|path| Some(path.file_name()?.to_str()?.to_owned())).collect();
        let near = nearest(name, names.iter().map(String::as_str))?;
        Some(printable(&missing.with_file_name(near).display().to_string()))
    }

    fn did_you_mean(&self) -> String {
        self.similar_store().map(|store| format!(" Did you mean `--store {store}`?")).unwrap_or_default()
    }

    /// The path of the store if none was opened there.
    pub(crate) fn new_store(&self, opened: Option<&Store>) -> Option<String> {
        (opened.is_none() && !self.is_in_memory()).then(|| self.shown())
    }

    fn is_in_memory(&self) -> bool {
        self.store.as_os_str() == MEMORY
    }

    /// The path or address as a message shows it: without a password.
    pub(crate) fn shown(&self) -> String {
        escaped(&shown_address(&self.store)).to_string()
    }

    /// The folder of the store, or its address if it is in a database.
    pub(crate) fn folder(&self) -> &Path {
        &self.store
    }

    pub(crate) fn is_in_database(&self) -> bool {
        is_in_database(&self.store)
    }

    /// Refuses what only a store in a folder has; `help` says what to do instead.
    pub(super) fn require_folder(&self, command: &str, help: &str) -> Result<(), Failure> {
        if !self.is_in_database() {
            return Ok(());
        }
        let message = format!("`{command}` requires a store in a folder; {} is in a database", self.shown());
        Err(Diagnostic::error(Code::Parameter, message).help(help).into())
    }

    /// Returns the store on the disk, if it exists, without reading its state.
    pub(crate) fn on_disk(&self) -> Result<Option<OnDisk>, Failure> {
        if self.is_in_database() {
            return Ok(None);
        }
        Ok(on_disk(&self.store, &self.master_key.source()?)?)
    }

    /// Opens the store for reading if it exists.
    pub(crate) fn read_if_there(&self) -> Result<Option<Store>, Failure> {
        if !store_exists(&self.store)? {
            return Ok(None);
        }
        let store = Store::open_encrypted_to_read(&self.store, &self.master_key.source()?)?;
        announce_opened(&store, diagnostics::say);
        Ok(Some(store))
    }
}

/// Tells what people must know of a store that was opened to write, and sets what the options say.
fn opened(store: Store, retention: &RetentionArgs, say: impl Fn(&str)) -> Result<Store, Failure> {
    announce_opened(&store, say);
    store.set_key_lifetimes(retention.lifetimes())?;
    Ok(store)
}

/// Tells what people must know of a store that was opened: its damage, and a new master key.
fn announce_opened(store: &Store, say: impl Fn(&str)) {
    store.warnings().iter().for_each(|warning| say(warning));
    master_key::announce(store, say);
}

/// The store's snapshot, or an empty one if the store does not exist yet.
pub(crate) fn snapshot_of(store: Option<&Store>) -> Snapshot {
    store.map(|store| Snapshot::clone(&store.snapshot())).unwrap_or_default()
}
