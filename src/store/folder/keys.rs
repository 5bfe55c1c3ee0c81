//! The file with the data keys of a store and its copy, and the master key beside the store's folder (D96).

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::key_copies::{self, KEYS, KEYS_COPY};
use crate::files::{appended, write_whole};
use crate::model::Code;
use crate::model::secrets::digest_key::DigestKey;
use crate::store::disk::files;
use crate::store::error::StoreError;
use crate::store::seal::{Keyring, MasterKey, MasterKeySource, NewMaster, ReadMaster, SaveKeys, StoreId};

/// The master key, where it cannot be beside the folder.
pub(crate) const MASTER: &str = "master.key";

/// Reads the data keys of a store.
pub(crate) fn open(folder: &Path, store: StoreId, source: &MasterKeySource) -> Result<Keyring, StoreError> {
    open_for(folder, folder, store, source)
}

/// Reads the data keys in a folder for a store that is, or will be, in another one: the master key is expected there.
pub(crate) fn open_for(
    folder: &Path,
    home: &Path,
    store: StoreId,
    source: &MasterKeySource,
) -> Result<Keyring, StoreError> {
    let (encrypted, _) = key_copies::read(folder, store)?;
    let keyring = encrypted.decrypt(&folder.join(KEYS), read_master(home, source)?, save(folder))?;
    Ok(keyring.with_source(reader_of_master(home, source)))
}

fn read_master(folder: &Path, source: &MasterKeySource) -> Result<MasterKey, StoreError> {
    let places = KeyPlaces::new(folder);
    source.read(places.existing()?.as_deref())?.ok_or_else(|| {
        let expected = places.preferred().display();
        StoreError::new(Code::MasterKey, format!("the master key of the store is missing: {expected} does not exist"))
    })
}

/// How the master key is read again, unless the source is a value, which never changes.
fn reader_of_master(folder: &Path, source: &MasterKeySource) -> Option<ReadMaster> {
    if matches!(source, MasterKeySource::Value(..)) {
        return None;
    }
    let (folder, source) = (folder.to_owned(), source.clone());
    Some(Box::new(move || read_master(&folder, &source)))
}

/// The file with the master key of a store, if it is where it is expected by default.
pub(crate) fn default_master_key(folder: &Path) -> Option<PathBuf> {
    KeyPlaces::new(folder).existing().ok()?
}

/// The file in which the master key of a store is expected by default.
pub(crate) fn expected_master_key(folder: &Path) -> PathBuf {
    let places = KeyPlaces::new(folder);
    places.existing().ok().flatten().unwrap_or_else(|| places.preferred().clone())
}

/// The key of digests that are kept beside a store, if its master key can be had for it. A command is not run for this:
/// what it would save can be less than it takes.
pub(super) fn digest_key(folder: &Path, source: &MasterKeySource) -> Option<DigestKey> {
    if matches!(source, MasterKeySource::Command(_)) || !files::exists(&folder.join(KEYS)).ok()? {
        return None;
    }
    // Whoever opens the store reports what is wrong with the key.
    let beside = KeyPlaces::new(folder).existing().ok()?;
    source.read(beside.as_deref()).ok()?.map(|master| master.digest_key())
}

/// Makes the data keys of a store with this root secret, and a master key if it is expected beside the store and does not
/// exist.
pub(super) fn create(folder: &Path, root_secret: [u8; 32], source: &MasterKeySource) -> Result<Keyring, StoreError> {
    let places = KeyPlaces::new(folder);
    let existing = places.existing()?;
    let (master, announced) = match source.read(existing.as_deref())? {
        // A process that made the key may have been killed before it made the data keys.
        Some(master) => (master, existing.filter(|_| has_default_place(source)).map(|path| (path, NewMaster::Found))),
        None => places.make().map(|(master, path)| (master, Some((path, NewMaster::Created))))?,
    };
    let (file, announce) = announced.unzip();
    let keyring = Keyring::create(root_secret, master, announce, save(folder))?;
    Ok(keyring.with_new_master(file).with_source(reader_of_master(folder, source)))
}

/// Adds the file of the master key to a keyring, for the case that nobody was told of it when the store was created.
pub(super) fn announcing(keyring: Keyring, folder: &Path, source: &MasterKeySource) -> Keyring {
    keyring.with_new_master(default_master_key(folder).filter(|_| has_default_place(source)))
}

fn has_default_place(source: &MasterKeySource) -> bool {
    matches!(source, MasterKeySource::Beside)
}

/// Writes the wrapped keys of another store.
pub(super) fn write(folder: &Path, wrapped: &[u8]) -> Result<(), StoreError> {
    save(folder)(wrapped)
}

/// Writes both files. A key that is destroyed is in neither of them then.
fn save(folder: &Path) -> SaveKeys {
    let paths = [KEYS, KEYS_COPY].map(|name| folder.join(name));
    Box::new(move |bytes: &[u8]| {
        paths.iter().try_for_each(|path| files::write_whole(path, |writer| writer.write_all(bytes)))
    })
}

/// Where the master key of a store is expected.
struct KeyPlaces {
    /// Beside the folder, whose copies do not have it then. The root folder has no place beside it.
    beside: Option<PathBuf>,
    inside: PathBuf,
    folder: PathBuf,
}

impl KeyPlaces {
    fn new(folder: &Path) -> Self {
        // The key is found whatever link leads to the folder.
        let folder = fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned());
        let beside = folder.file_name().map(|_| appended(&folder, ".master.key"));
        Self { beside, inside: folder.join(MASTER), folder }
    }

    fn existing(&self) -> Result<Option<PathBuf>, StoreError> {
        for path in self.beside.iter().chain([&self.inside]) {
            if files::exists(path)? {
                return Ok(Some(path.clone()));
            }
        }
        Ok(None)
    }

    /// Makes a master key. It is inside the folder if that is a volume, because nothing beside a volume lasts, or if this
    /// user cannot write beside it.
    fn make(&self) -> Result<(MasterKey, PathBuf), StoreError> {
        let mut path = self.preferred();
        let mut made = make_at(path);
        if made.as_ref().is_err_and(is_forbidden) && *path != self.inside {
            path = &self.inside;
            made = make_at(path);
        }
        let master = made.map_err(|error| StoreError::io("write the master key", self.preferred(), &error))?;
        Ok((master, path.clone()))
    }

    fn preferred(&self) -> &PathBuf {
        let device = |path: &Path| fs::metadata(path).ok().map(|facts| facts.dev());
        let is_volume = self.folder.parent().is_some_and(|parent| device(parent) != device(&self.folder));
        self.beside.as_ref().filter(|_| !is_volume).unwrap_or(&self.inside)
    }
}

fn is_forbidden(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem)
}

/// Writes a new master key, durably.
fn make_at(path: &Path) -> io::Result<MasterKey> {
    let master = MasterKey::random(path.display().to_string());
    write_whole(path, &appended(path, ".tmp"), |writer| writer.write_all(master.text().as_bytes()))?;
    Ok(master)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::store::seal::id_of;

    #[test]
    fn a_master_key_is_made_once_beside_the_folder() {
        let outer = tempfile::tempdir().unwrap();
        let folder = outer.path().join("edge.db");
        fs::create_dir(&folder).unwrap();
        let source = MasterKeySource::Beside;
        let made = create(&folder, [1; 32], &source).unwrap();
        let (path, new) = made.new_master().map(|(path, new)| (path.to_owned(), new)).unwrap();
        assert_eq!(new, NewMaster::Created);
        assert_eq!(path, fs::canonicalize(outer.path()).unwrap().join("edge.db.master.key"));
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let sealed = made.seal(b"secret", &[]).unwrap();
        let again = open(&folder, id_of(&[1; 32]), &source).unwrap();
        assert!(again.open(&sealed, &[]).is_ok() && again.new_master().is_none());
        // The store is made again, for example after its folder was deleted.
        let key = fs::read(&path).unwrap();
        let again = create(&folder, [2; 32], &source).unwrap();
        assert_eq!(again.new_master(), Some((path.as_path(), NewMaster::Found)));
        let elsewhere = create(&folder, [2; 32], &MasterKeySource::File(path.clone())).unwrap();
        assert_eq!(elsewhere.new_master(), None);
        assert_eq!(fs::read(&path).unwrap(), key);
        assert_eq!(open(&folder, id_of(&[1; 32]), &source).err().unwrap().code, Code::StoreCorrupt);
        fs::rename(&path, folder.join(MASTER)).unwrap();
        assert!(open(&folder, id_of(&[2; 32]), &source).is_ok(), "it is found inside");
        fs::remove_file(folder.join(MASTER)).unwrap();
        let error = open(&folder, id_of(&[2; 32]), &source).err().unwrap();
        assert_eq!(error.code, Code::MasterKey);
        assert!(error.message.contains("edge.db.master.key"), "{error}");
    }
}
