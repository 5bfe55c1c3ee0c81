//! The keys of a store on PostgreSQL.
//!
//! The wrapped data keys, with the root secret, are a row of the database, as they are the file `keys` of a folder: every
//! process that takes the store over needs them, and without the master key they open nothing. The master key is never in the
//! database. A folder has a place beside it where the key is looked for; a database has none, so the key has to be named.

use std::borrow::Cow;
use std::path::PathBuf;

use super::failure::damaged;
use super::link::{DatabaseLink, QuestionConnection};
use crate::model::Code;
use crate::store::error::StoreError;
use crate::store::ids;
use crate::store::seal::{EncryptedKeys, Keyring, MasterKey, MasterKeySource, SaveKeys, StoreId};

/// Makes the keys of a store that does not exist yet. They are written with its head.
pub(super) fn create(source: &MasterKeySource, shown: &str) -> Result<Keyring, StoreError> {
    Keyring::create(ids::random_secret(), master(source, shown)?, None, Box::new(|_: &[u8]| Ok(())))
}

/// Reads the wrapped keys of a store.
pub(super) fn read(link: &DatabaseLink, over: &QuestionConnection) -> Result<Vec<u8>, StoreError> {
    let keys = link.ask_over(over, |client| async move {
        let row = client.query_opt("SELECT keys FROM edgewright.secrets", &[]).await?;
        row.map(|row| row.try_get::<_, Vec<u8>>(0)).transpose()
    })?;
    keys.ok_or_else(|| damaged(link.shown(), "its data keys are missing"))
}

/// Names the keys in messages.
fn path_of(shown: &str) -> PathBuf {
    PathBuf::from(format!("{shown}/keys"))
}

/// Takes in the wrapped keys as the writer has changed them.
pub(super) fn renew(keyring: &Keyring, bytes: &[u8], shown: &str) -> Result<(), StoreError> {
    let path = path_of(shown);
    EncryptedKeys::read(bytes, &path, keyring.store())?.renew(&path, keyring)
}

/// Reads and opens the wrapped keys of a store.
pub(super) fn open(
    link: &DatabaseLink,
    store: StoreId,
    source: &MasterKeySource,
    save: SaveKeys,
) -> Result<Keyring, StoreError> {
    let (bytes, shown) = (read(link, link.questions())?, link.shown());
    let path = path_of(shown);
    let keyring = EncryptedKeys::read(&bytes, &path, store)?.decrypt(&path, master(source, shown)?, save)?;
    if matches!(source, MasterKeySource::Value(..)) {
        return Ok(keyring);
    }
    let (source, shown) = (source.clone(), shown.to_owned());
    Ok(keyring.with_source(Some(Box::new(move || master(&source, &shown)))))
}

/// Fails if nothing says where the master key is, before anything is created.
pub(crate) fn check_named(source: &MasterKeySource, shown: &str) -> Result<(), StoreError> {
    let help = format!(
        "{NAME}. Only if the store is new, make a key with `openssl rand -base64 32`: every process that opens the store must \
         have the same one"
    );
    if matches!(source, MasterKeySource::Beside) { Err(unnamed(shown, help)) } else { Ok(()) }
}

fn master(source: &MasterKeySource, shown: &str) -> Result<MasterKey, StoreError> {
    source.read(None)?.ok_or_else(|| unnamed(shown, NAME))
}

/// The help for a master key that nothing names. Another key would not open the store.
const NAME: &str = "set --master-key-file to the file with the master key of this store, or --master-key-command or \
                    EDGEWRIGHT_MASTER_KEY";

fn unnamed(shown: &str, help: impl Into<Cow<'static, str>>) -> StoreError {
    let message = format!("the store {shown} has no folder in which its master key could be looked for");
    StoreError::new(Code::MasterKey, message).help(help)
}
