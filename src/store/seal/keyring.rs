//! The data keys of a store. One encrypts; former ones only decrypt, until they are destroyed.
//!
//! A key that is due is retired by the checkpoint that writes the state with the next one, so that no state has secrets of
//! two keys. Commits between two checkpoints have what they wrote in the log, each value with the name of its key. Whoever
//! removes a key has to know what still needs it; that is decided elsewhere (`maintenance::resealing`), and this keeps the ID
//! of a destroyed key, so that what it encrypted is "destroyed" and not "damaged".
//!
//! Every change writes the whole file before it counts here. The keys are read without a lock: a change replaces all of them
//! at once.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arc_swap::ArcSwap;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use super::cipher::{self, KEY, context};
use super::ids::{KeyId, StoreId, id_of};
use super::lifetimes::KeyLifetimes;
use super::master::MasterKey;
use super::sealed::Sealed;
use crate::lock::Lock;
use crate::model::Code;
use crate::model::secrets::digest_key::DigestKey;
use crate::store::error::StoreError;
use crate::store::trusted_time::{KnownTime, TOLERANCE};
use crate::store::{clock, ids};

const PURPOSE: &str = "edgewright 2026 sealed bytes";
/// The purpose of the secrets of what passes.
const PASSING: &str = "edgewright 2026 secrets of what passes";
/// How long the secret of a former data key lasts: as long as anybody stays signed in.
const PASSES_AFTER: SignedDuration = SignedDuration::from_hours(8);

/// Writes the file of a keyring, durably.
pub(crate) type SaveKeys = Box<dyn Fn(&[u8]) -> Result<(), StoreError> + Send + Sync>;
/// Reads the master key again from where it came from.
pub(crate) type ReadMaster = Box<dyn Fn() -> Result<MasterKey, StoreError> + Send + Sync>;

/// The data keys of a store, which encrypt its secrets.
pub struct Keyring {
    store: StoreId,
    ring: ArcSwap<Ring>,
    /// Held while the keys change.
    changing: Lock<()>,
    /// Whether a new data key was asked for.
    rotation_requested: AtomicBool,
    /// Whether former data keys are destroyed without waiting.
    forgets: AtomicBool,
    /// The key of the digests of secrets, from the root secret: unlike data keys, it stays.
    secret_digests: DigestKey,
    /// The file of the master key, if nobody was told of it yet.
    new_master: Option<PathBuf>,
    /// None if the master key cannot change while the process runs.
    read_master: Option<ReadMaster>,
    /// Whether another keyring decides when the keys change.
    follows: bool,
    save: SaveKeys,
}

/// A former data key that still decrypts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FormerKey {
    pub(crate) id: KeyId,
    /// When it expires. It is destroyed at the next checkpoint after that.
    pub(crate) until: Timestamp,
}

/// The keys at one time.
#[derive(Clone)]
pub(super) struct Ring {
    pub(super) master: MasterKey,
    /// The random secret that was created with the store. It never changes.
    pub(super) root_secret: Zeroizing<[u8; KEY]>,
    /// Oldest first. The last one encrypts.
    pub(super) keys: Vec<DataKey>,
    /// Set until somebody was told of a master key that edgewright has made or found beside the store.
    pub(super) announce: Option<NewMaster>,
    pub(super) lifetimes: KeyLifetimes,
    pub(super) time: KnownTime,
}

/// An announcement of the master key beside a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum NewMaster {
    /// The key was made with the store.
    Created,
    /// The key was there before the store.
    Found,
}

#[derive(Clone)]
pub(super) struct DataKey {
    pub(super) id: KeyId,
    pub(super) created_at: Timestamp,
    /// When another one took its place.
    pub(super) retired_at: Option<Timestamp>,
    /// None if it is destroyed. Its id stays, to tell that from damage.
    pub(super) key: Option<Zeroizing<[u8; KEY]>>,
}

/// Why something sealed cannot be opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NotOpened {
    /// The data key is destroyed.
    Destroyed,
    /// The data key does not belong to the store.
    UnknownKey(KeyId),
    /// The bytes were changed, or were sealed for something else.
    Changed,
}

impl DataKey {
    fn random(now: Timestamp) -> Self {
        let key = Zeroizing::new(ids::random_secret());
        let id = context("edgewright 2026 id of a data key", &[key.as_slice()]);
        let id = KeyId(id.first_chunk::<8>().map_or(0, |start| u64::from_be_bytes(*start)));
        Self { id, created_at: now, retired_at: None, key: Some(key) }
    }

    fn has_expired(&self, now: Timestamp, lifetimes: KeyLifetimes, forgets: bool) -> bool {
        // The clock may have gone back since a key was retired, which must not keep one that is to be forgotten.
        let has_expired = |retired: Timestamp| forgets || now.duration_since(retired) >= lifetimes.decrypts_for();
        self.key.is_some() && self.retired_at.is_some_and(has_expired)
    }
}

impl Ring {
    fn decrypts(&self, id: KeyId) -> bool {
        self.keys.iter().any(|key| key.id == id && key.key.is_some())
    }
}

impl Keyring {
    pub(super) fn new(store: StoreId, ring: Ring, save: SaveKeys) -> Self {
        let digests = context("edgewright 2026 digests of sealed secrets", &[ring.root_secret.as_slice()]);
        Self {
            store,
            secret_digests: DigestKey::new(digests),
            ring: ArcSwap::from_pointee(ring),
            changing: Lock::default(),
            rotation_requested: AtomicBool::new(false),
            forgets: AtomicBool::new(false),
            new_master: None,
            read_master: None,
            follows: false,
            save,
        }
    }

    /// Leaves it to another keyring when the keys change ([`Keyring::follow`]).
    pub(crate) fn following(self) -> Self {
        Self { follows: true, ..self }
    }

    /// Sets how the master key is read again.
    pub(crate) fn with_source(self, read_master: Option<ReadMaster>) -> Self {
        Self { read_master, ..self }
    }

    /// Reads the master key again from where it came from. Returns none if it cannot have changed.
    pub(crate) fn master_again(&self) -> Result<Option<MasterKey>, StoreError> {
        let Some(read) = &self.read_master else { return Ok(None) };
        let master = read()?;
        Ok(Some(master).filter(|master| master.id() != self.master()))
    }

    /// Notes the file of the master key, for whoever tells of it.
    pub(crate) fn with_new_master(self, file: Option<PathBuf>) -> Self {
        Self { new_master: file, ..self }
    }

    /// Returns the file of a master key that nobody was told of yet.
    pub(crate) fn new_master(&self) -> Option<(&Path, NewMaster)> {
        Some((self.new_master.as_deref()?, self.ring.load().announce?))
    }

    /// Notes that somebody was told of the master key. Until then, each start tells of it: one can be killed before it does.
    pub(crate) fn set_announced(&self) -> Result<(), StoreError> {
        self.change(|ring| ring.announce = None)
    }

    /// Changes the lifetimes of data keys that are set in `wanted`.
    pub(crate) fn set_lifetimes(&self, wanted: KeyLifetimes) -> Result<(), StoreError> {
        let former = self.ring.load().lifetimes;
        if wanted.with_defaults(former) == former {
            return Ok(());
        }
        self.change(|ring| ring.lifetimes = wanted.with_defaults(ring.lifetimes))
    }

    /// The time as the store knows it.
    pub(crate) fn known_time(&self) -> KnownTime {
        self.ring.load().time
    }

    /// Saves what the store knows of the time.
    pub(crate) fn set_known_time(&self, time: KnownTime) -> Result<(), StoreError> {
        self.change(|ring| ring.time = time)
    }

    /// Makes the first data key of a store with this root secret. `announce` says what to tell of the master key.
    pub(crate) fn create(
        root_secret: [u8; KEY],
        master: MasterKey,
        announce: Option<NewMaster>,
        save: SaveKeys,
    ) -> Result<Self, StoreError> {
        let now = clock::now();
        let (keys, lifetimes, time) = (vec![DataKey::random(now)], KeyLifetimes::default(), KnownTime::at(now));
        let (store, root_secret) = (id_of(&root_secret), Zeroizing::new(root_secret));
        let ring = Ring { master, root_secret, keys, announce, lifetimes, time };
        save(&ring.bytes(&store, &[&ring.master])?)?;
        Ok(Self::new(store, ring, save))
    }

    /// The data keys and the root secret, wrapped by the master key, as they are saved.
    pub(crate) fn wrapped(&self) -> Result<Vec<u8>, StoreError> {
        let ring = self.ring.load();
        ring.bytes(&self.store, &[&ring.master])
    }

    /// The keys as they are now, for a copy of the store: they do not change any more.
    pub(crate) fn frozen(&self) -> Self {
        let save: SaveKeys = Box::new(|_: &[u8]| Err(StoreError::internal("the keys of a copy cannot change")));
        Self::new(self.store, Ring::clone(&self.ring.load()), save)
    }

    /// The id of the store.
    pub(crate) fn store(&self) -> StoreId {
        self.store
    }

    /// The random secret that was created with the store.
    pub(crate) fn root_secret(&self) -> [u8; KEY] {
        *self.ring.load().root_secret
    }

    /// The secrets for what lasts some hours, such as sessions: that of the data key that encrypts, and then those of the keys that
    /// it has replaced in these hours. A secret ends with its key.
    pub(crate) fn passing_secrets(&self) -> Vec<[u8; KEY]> {
        let ring = self.ring.load();
        // The trusted time has dated the keys, and the clock may be far from it: by the clock, a key that was replaced a moment ago
        // could seem to be years old, and everybody would be signed out.
        let now = ring.time.reached();
        let lasts = |key: &&DataKey| key.retired_at.is_none_or(|at| now.duration_since(at).abs() < PASSES_AFTER);
        let keys = ring.keys.iter().rev().filter(lasts).filter_map(|key| key.key.as_ref());
        keys.map(|key| context(PASSING, &[self.store.as_slice(), key.as_slice()])).collect()
    }

    /// Whether a data key was destroyed: what was sealed with it is in the log, but cannot be opened.
    pub(crate) fn has_destroyed(&self) -> bool {
        self.ring.load().keys.iter().any(|key| key.key.is_none())
    }

    /// The digest of a secret of a record, which tells whether another state has the same one after its data key is
    /// destroyed.
    pub(crate) fn secret_digest(&self, record: &str, secret: &str) -> blake3::Hash {
        self.secret_digests.digest("secret", &[record.as_bytes(), secret.as_bytes()])
    }

    /// Encrypts bytes, and binds them to the store and to `bound_to`.
    pub(crate) fn seal(&self, bytes: &[u8], bound_to: &[&[u8]]) -> Result<Sealed, StoreError> {
        let ring = self.ring.load();
        self.sealed(ring.keys.last(), bound_to, |key, context| cipher::seal(key, context, bytes))
    }

    /// Encrypts the bytes of `former` for something else, with the same data key: they must not outlive it. The result is always
    /// the same.
    pub(crate) fn seal_again(&self, former: &Sealed, bytes: &[u8], bound_to: &[&[u8]]) -> Result<Sealed, StoreError> {
        let ring = self.ring.load();
        let key = ring.keys.iter().find(|key| key.id == former.key);
        self.sealed(key, bound_to, |key, context| cipher::seal_again(key, context, bytes, &former.bytes))
    }

    fn sealed(
        &self,
        key: Option<&DataKey>,
        bound_to: &[&[u8]],
        seal: impl FnOnce(&[u8; KEY], &[u8; 32]) -> Option<Vec<u8>>,
    ) -> Result<Sealed, StoreError> {
        let sealed = key.and_then(|DataKey { id, key, .. }| {
            Some(Sealed { key: *id, bytes: seal(key.as_ref()?, &self.context(*id, bound_to))? })
        });
        sealed.ok_or_else(|| StoreError::new(Code::Internal, "a secret cannot be encrypted"))
    }

    /// Decrypts what [`Keyring::seal`] returned for the same `bound_to`.
    pub(crate) fn open(&self, sealed: &Sealed, bound_to: &[&[u8]]) -> Result<Zeroizing<Vec<u8>>, NotOpened> {
        let ring = self.ring.load();
        // Most of what is opened was sealed with the newest key.
        let found = ring.keys.iter().rev().find(|key| key.id == sealed.key);
        let key = found.ok_or(NotOpened::UnknownKey(sealed.key))?.key.as_ref().ok_or(NotOpened::Destroyed)?;
        cipher::open(key, &self.context(sealed.key, bound_to), &sealed.bytes).ok_or(NotOpened::Changed)
    }

    fn context(&self, id: KeyId, bound_to: &[&[u8]]) -> [u8; 32] {
        let id = id.bytes();
        let own: [&[u8]; 2] = [&self.store, &id];
        context(PURPOSE, &[own.as_slice(), bound_to].concat())
    }

    /// The id of the master key.
    pub(crate) fn master(&self) -> KeyId {
        self.ring.load().master.id()
    }

    /// The master key.
    pub(super) fn master_key(&self) -> MasterKey {
        self.ring.load().master.clone()
    }

    /// Takes the keys of another keyring of the same store.
    pub(super) fn take_keys(&self, newer: &Self) {
        self.ring.store(newer.ring.load_full());
    }

    /// Takes the keys of the keyring that this one follows, in the file first. Returns the data keys that are gone there: here, they
    /// decrypt until [`Keyring::destroy`], because a state may need them.
    pub(crate) fn follow(&self, leading: &Self) -> Result<Vec<KeyId>, StoreError> {
        let _changing = self.changing.lock();
        let (known, newer) = (self.ring.load_full(), leading.ring.load_full());
        if Arc::ptr_eq(&known, &newer) {
            return Ok(Vec::new());
        }
        let gone: Vec<DataKey> =
            known.keys.iter().filter(|key| key.key.is_some() && !newer.decrypts(key.id)).cloned().collect();
        let ids: Vec<KeyId> = gone.iter().map(|key| key.id).collect();
        let next = if gone.is_empty() {
            newer
        } else {
            // The last one encrypts.
            let kept = newer.keys.iter().filter(|key| !ids.contains(&key.id)).cloned();
            let keys = gone.into_iter().chain(kept).collect();
            Arc::new(Ring { keys, ..Ring::clone(&newer) })
        };
        (self.save)(&next.bytes(&self.store, &[&next.master])?)?;
        self.ring.store(next);
        Ok(ids)
    }

    /// Whether a data key of another keyring of the same store is destroyed here.
    pub(crate) fn has_destroyed_key_of(&self, other: &Self) -> bool {
        let other = other.ring.load();
        self.ring.load().keys.iter().any(|key| key.key.is_none() && other.decrypts(key.id))
    }

    /// Destroys data keys, of which none encrypts.
    pub(crate) fn destroy(&self, ids: &[KeyId]) -> Result<(), StoreError> {
        self.change(|ring| {
            for key in ring.keys.iter_mut().filter(|key| ids.contains(&key.id)) {
                key.key = None;
            }
        })
    }

    /// The former data keys that still decrypt, oldest first.
    pub(crate) fn former(&self) -> Vec<FormerKey> {
        let ring = self.ring.load();
        let lasting = ring.lifetimes.decrypts_for();
        let former = ring.keys.iter().filter(|key| key.key.is_some()).filter_map(|key| {
            let until = key.retired_at?.checked_add(lasting).unwrap_or(Timestamp::MAX);
            Some(FormerKey { id: key.id, until })
        });
        former.collect()
    }

    /// The data key that encrypts.
    pub(crate) fn current(&self) -> KeyId {
        self.ring.load().keys.last().map_or(KeyId(0), |current| current.id)
    }

    /// The key of digests that are kept beside the store.
    pub(crate) fn digest_key(&self) -> DigestKey {
        self.ring.load().master.digest_key()
    }

    /// Asks for a new data key at the next checkpoint. If `forgets` is set, former ones are destroyed then.
    pub(crate) fn request_rotation(&self, forgets: bool) {
        self.forgets.fetch_or(forgets, Ordering::AcqRel);
        self.rotation_requested.store(true, Ordering::Release);
    }

    /// Takes back what was asked for and is not done.
    pub(crate) fn cancel_rotation(&self) {
        self.rotation_requested.store(false, Ordering::Release);
        self.forgets.store(false, Ordering::Release);
    }

    /// Whether another data key should encrypt from now on.
    pub(crate) fn is_due(&self, now: Timestamp) -> bool {
        let ring = self.ring.load();
        let lasting = ring.lifetimes.encrypts_for();
        // A key from the future, made while the clock was wrong, would not be replaced before that time.
        let is_old = |current: &DataKey| {
            let age = now.duration_since(current.created_at);
            age < -TOLERANCE || age >= lasting
        };
        !self.follows && (self.rotation_requested.load(Ordering::Acquire) || ring.keys.last().is_none_or(is_old))
    }

    /// Makes the data key that encrypts from now on.
    pub(crate) fn rotate(&self, now: Timestamp) -> Result<(), StoreError> {
        self.change(|ring| {
            if let Some(current) = ring.keys.last_mut() {
                current.retired_at = Some(now);
            }
            for retired in ring.keys.iter_mut().filter_map(|key| key.retired_at.as_mut()) {
                *retired = now.min(*retired);
            }
            ring.keys.push(DataKey::random(now));
        })?;
        self.rotation_requested.store(false, Ordering::Release);
        Ok(())
    }

    /// Whether a former data key can be destroyed.
    pub(crate) fn has_expired(&self, now: Timestamp) -> bool {
        let forgets = self.forgets.load(Ordering::Acquire);
        let ring = self.ring.load();
        !self.follows && ring.keys.iter().any(|key| key.has_expired(now, ring.lifetimes, forgets))
    }

    /// Destroys the former data keys that have expired, except those that are used.
    pub(crate) fn destroy_expired(&self, now: Timestamp, is_used: &dyn Fn(KeyId) -> bool) -> Result<(), StoreError> {
        let forgets = self.forgets.load(Ordering::Acquire);
        self.change(|ring| {
            let lifetimes = ring.lifetimes;
            for key in ring.keys.iter_mut().filter(|key| key.has_expired(now, lifetimes, forgets) && !is_used(key.id)) {
                key.key = None;
            }
        })?;
        if forgets {
            self.forgets.store(false, Ordering::Release);
        }
        Ok(())
    }

    /// Replaces the master key. Whenever this is interrupted, the former key or the new one opens the store.
    pub(crate) fn change_master(&self, master: MasterKey) -> Result<(), StoreError> {
        let _changing = self.changing.lock();
        let mut ring = Ring { master, ..Ring::clone(&self.ring.load()) };
        let former = self.ring.load();
        if former.master.id() != ring.master.id() {
            ring.announce = None;
            (self.save)(&ring.bytes(&self.store, &[&former.master, &ring.master])?)?;
        }
        (self.save)(&ring.bytes(&self.store, &[&ring.master])?)?;
        self.ring.store(Arc::new(ring));
        Ok(())
    }

    /// Changes the keys, in the file first.
    fn change(&self, change: impl FnOnce(&mut Ring)) -> Result<(), StoreError> {
        let _changing = self.changing.lock();
        let mut ring = Ring::clone(&self.ring.load());
        change(&mut ring);
        (self.save)(&ring.bytes(&self.store, &[&ring.master])?)?;
        self.ring.store(Arc::new(ring));
        Ok(())
    }
}
