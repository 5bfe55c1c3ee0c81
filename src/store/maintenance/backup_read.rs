//! Reads a backup: verifies all of its bytes, and unpacks its parts (D100).

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::backup::{BackupManifest, FORMAT, HASH, MAGIC};
use super::backup_write::SUSPENSIONS;
use crate::files::fault;
use crate::model::Code;
use crate::store::commit::header::Retention;
use crate::store::database::state::Access;
use crate::store::disk::files::{self, Part};
use crate::store::disk::temp_dir::TempFolder;
use crate::store::error::{Doing, StoreError};
use crate::store::folder::key_copies::KEYS;
use crate::store::folder::{FolderReader, keys};
use crate::store::log::head::Head;
use crate::store::log::parts::KEPT;
use crate::store::open_store::{Store, is_in_database, shown_address};
use crate::store::postgres;
use crate::store::seal::{Keyring, MasterKeySource, StoreId, store_named};
use crate::store::session_kind::SessionKind;

/// The longest manifest: a store has some hundreds of files at most.
const MOST_MANIFEST: usize = 16 << 20;
/// The size of a read.
const PIECE: usize = 256 << 10;

/// A backup whose manifest was read.
pub(crate) struct BackupFile {
    path: PathBuf,
    manifest: BackupManifest,
    /// The offset of the first part.
    parts_at: u64,
    /// The hasher of the whole file, after the manifest.
    started: blake3::Hasher,
}

/// A store that was read from a backup. The files that it needs are removed with this value.
pub(crate) struct OpenBackup {
    /// The store, which is read only.
    pub store: Store,
    _folder: TempFolder,
}

/// Creates the file of a part by its name, or none if the part is only read.
type CreatePart<'c> = dyn FnMut(&str) -> Result<Option<(File, PathBuf)>, StoreError> + 'c;

impl BackupFile {
    /// Opens a backup and reads its manifest.
    pub(crate) fn open(path: &Path) -> Result<Self, StoreError> {
        let mut file = BufReader::new(file_at(path)?);
        let mut start = Vec::new();
        file.by_ref().take(MAGIC.len() as u64 + 4).read_to_end(&mut start).doing("read", path)?;
        let (magic, length) = start.split_at_checked(MAGIC.len()).unwrap_or((start.as_slice(), &[][..]));
        if magic != MAGIC {
            let message = match magic.starts_with(b"ewback") {
                true => format!("{} was written by a newer version of edgewright", path.display()),
                false => format!("{} is not a backup of a store", path.display()),
            };
            return Err(StoreError::new(Code::StoreFormat, message));
        }
        let damaged = || StoreError::corrupt(path, "its manifest cannot be read");
        let length = length.first_chunk::<4>().map(|length| u32::from_le_bytes(*length) as usize);
        let length = length.filter(|length| *length <= MOST_MANIFEST).ok_or_else(damaged)?;
        file.by_ref().take((length + HASH) as u64).read_to_end(&mut start).doing("read", path)?;
        let (hashed, hash) = start.split_at_checked(MAGIC.len() + 4 + length).ok_or_else(damaged)?;
        if blake3::hash(hashed).as_bytes() != hash {
            return Err(damaged());
        }
        let manifest: Option<BackupManifest> =
            hashed.get(MAGIC.len() + 4..).and_then(|manifest| serde_json::from_slice(manifest).ok());
        let manifest = manifest.ok_or_else(damaged)?;
        if manifest.format != FORMAT {
            let message =
                format!("{} has the unsupported format `{}`", path.display(), manifest.format.escape_default());
            return Err(StoreError::new(Code::StoreFormat, message));
        }
        if let Some(part) = manifest.parts.iter().find(|part| !is_part(&part.name)) {
            let found = format!("it has an unknown part `{}`", part.name.escape_default());
            return Err(StoreError::corrupt(path, found));
        }
        let mut started = blake3::Hasher::new();
        started.update(&start);
        Ok(Self { path: path.to_owned(), manifest, parts_at: start.len() as u64, started })
    }

    /// The manifest.
    pub(crate) fn manifest(&self) -> &BackupManifest {
        &self.manifest
    }

    /// The head of the store.
    pub(super) fn head(&self) -> Result<Head, StoreError> {
        let BackupManifest { store, position, hash, generation, state, .. } = &self.manifest;
        let damaged = || StoreError::corrupt(&self.path, "its manifest cannot be read");
        let hash = blake3::Hash::from_hex(hash).map_err(|_| damaged())?;
        let store = store_named(store).ok_or_else(damaged)?;
        Ok(Head { position: *position, generation: *generation, state: *state, hash: hash.into(), store })
    }

    /// Verifies every byte.
    pub(crate) fn verify(&self) -> Result<(), StoreError> {
        self.read(&mut |_| Ok(None))
    }

    /// Writes all parts to a folder, durably, and verifies every byte.
    pub(super) fn unpack(&self, folder: &Path) -> Result<(), StoreError> {
        self.read(&mut |name| {
            let path = folder.join(name);
            path.parent().map_or(Ok(()), files::create_folder)?;
            let created = files::private().write(true).create_new(true).open(&path);
            created.map(|file| Some((file, path.clone()))).doing("write", &path)
        })?;
        files::sync_folder(&folder.join(KEYS))
    }

    /// Reads and verifies all parts, and writes each to the file that `create` returns.
    fn read(&self, create: &mut CreatePart<'_>) -> Result<(), StoreError> {
        let mut file = file_at(&self.path)?;
        file.seek(SeekFrom::Start(self.parts_at)).doing("read", &self.path)?;
        let mut whole = self.started.clone();
        let mut piece = vec![0; PIECE];
        for part in &self.manifest.parts {
            let mut output = create(&part.name)?;
            let (mut hasher, mut left) = (blake3::Hasher::new(), part.length);
            while left > 0 {
                let wanted = left.min(PIECE as u64) as usize;
                let read = file.read(piece.get_mut(..wanted).unwrap_or_default()).doing("read", &self.path)?;
                let bytes = piece.get(..read).unwrap_or_default();
                if bytes.is_empty() {
                    return Err(StoreError::corrupt(&self.path, format!("it ends within its part `{}`", part.name)));
                }
                hasher.update(bytes);
                whole.update(bytes);
                if let Some((file, path)) = &mut output {
                    file.write_all(bytes).doing("write", path)?;
                }
                left -= read as u64;
            }
            if hasher.finalize().to_hex().as_str() != part.blake3 {
                let found = format!("the checksum of its part `{}` does not match its content", part.name);
                return Err(StoreError::corrupt(&self.path, found));
            }
            if let Some((file, path)) = output {
                fault::point("file.sync").and_then(|()| file.sync_all()).doing("sync", &path)?;
            }
        }
        let mut end = Vec::with_capacity(HASH + 1);
        file.take(HASH as u64 + 1).read_to_end(&mut end).doing("read", &self.path)?;
        match end.as_slice() == whole.finalize().as_bytes() {
            true => Ok(()),
            false => Err(StoreError::corrupt(&self.path, "its checksum does not match its content")),
        }
    }

    /// Reads the store in the backup. The master key is expected where that of the store in `home` is.
    pub(crate) fn open_store(&self, home: &Path, source: &MasterKeySource) -> Result<OpenBackup, StoreError> {
        let temp = TempFolder::new()?;
        self.unpack(temp.path())?;
        let store = open_unpacked(temp.path(), home, self.head()?, source)?;
        Ok(OpenBackup { store, _folder: temp })
    }
}

/// Opens what was unpacked into a folder, for reading. A master key that is kept beside the store is at `home`.
pub(super) fn open_unpacked(
    folder: &Path,
    home: &Path,
    head: Head,
    source: &MasterKeySource,
) -> Result<Store, StoreError> {
    let keyring = open_keys(folder, home, head.store, source)?;
    let reader = FolderReader::over(folder, head, keyring, Access::Alone, Vec::new())?;
    Store::load_from(Arc::new(reader), Retention::default(), SessionKind::Brief)
}

/// Opens the keys that were unpacked into a folder.
pub(super) fn open_keys(
    folder: &Path,
    home: &Path,
    store: StoreId,
    source: &MasterKeySource,
) -> Result<Keyring, StoreError> {
    if !is_in_database(home) {
        return keys::open_for(folder, home, store, source);
    }
    // Nothing is beside a database.
    postgres::check_named(source, &shown_address(home))?;
    keys::open(folder, store, source)
}

fn file_at(path: &Path) -> Result<File, StoreError> {
    // A FIFO is opened without waiting for its other end; a link to a backup is fine.
    let file = File::open(path).doing("read", path)?;
    match file.metadata().doing("read", path)?.is_file() {
        true => Ok(file),
        false => Err(io::Error::other("not a regular file")).doing("read", path),
    }
}

/// Whether a part of a backup has a name that files of a store have.
fn is_part(name: &str) -> bool {
    let is_plain =
        |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'.');
    match name.split_once('/') {
        // A file of the database with the state, which can be in a folder of it.
        Some((folder, file)) => {
            Part::parse(folder).is_some_and(|(part, _)| part == Part::State)
                && file.split('/').all(|part| is_plain(part) && !part.starts_with('.'))
        }
        None => {
            Part::parse(name).is_some_and(|(part, _)| part == Part::Log) || [KEPT, KEYS, SUSPENSIONS].contains(&name)
        }
    }
}
