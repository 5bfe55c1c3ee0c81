//! Tests of the data keys: what opens what, and what is on the disk at any time.

#![allow(clippy::unwrap_used, clippy::panic)]

use std::path::Path;
use std::sync::{Arc, Mutex};

use jiff::SignedDuration;

use super::*;
use crate::model::Code;
use crate::store::clock;
use crate::store::error::StoreError;
use crate::store::trusted_time::KnownTime;

const ROOT: [u8; 32] = [3; 32];

fn master(name: &str) -> MasterKey {
    MasterKey::random(name.to_owned())
}

/// A file in memory that fails from some write on.
#[derive(Clone)]
struct MemoryFile {
    bytes: Arc<Mutex<Vec<u8>>>,
    writes_left: Arc<Mutex<usize>>,
}

impl MemoryFile {
    fn new() -> Self {
        Self { bytes: Arc::default(), writes_left: Arc::new(Mutex::new(usize::MAX)) }
    }

    fn save(&self) -> SaveKeys {
        let file = self.clone();
        Box::new(move |bytes: &[u8]| {
            let mut left = file.writes_left.lock().unwrap();
            if *left == 0 {
                return Err(StoreError::new(Code::StoreFailed, "on purpose"));
            }
            *left -= 1;
            *file.bytes.lock().unwrap() = bytes.to_vec();
            Ok(())
        })
    }

    fn open(&self, master: &MasterKey) -> Result<Keyring, StoreError> {
        let bytes = self.bytes.lock().unwrap().clone();
        let path = Path::new("store/keys");
        EncryptedKeys::read(&bytes, path, id_of(&ROOT))?.decrypt(path, master.clone(), self.save())
    }
}

fn keyring(file: &MemoryFile, master: &MasterKey) -> Keyring {
    Keyring::create(ROOT, master.clone(), None, file.save()).unwrap()
}

#[test]
fn what_is_sealed_opens_only_where_it_was_sealed_for() {
    let (file, key) = (MemoryFile::new(), master("one"));
    let ring = keyring(&file, &key);
    let sealed = ring.seal(b"secret", &[b"record", b"a"]).unwrap();
    let text = serde_json::to_string(&sealed).unwrap();
    let again: Sealed = serde_json::from_str(&text).unwrap();
    assert_eq!(file.open(&key).unwrap().open(&again, &[b"record", b"a"]).unwrap().as_slice(), b"secret");
    for other in [[b"record".as_slice(), b"b".as_slice()], [b"recorda".as_slice(), b"".as_slice()]] {
        assert_eq!(ring.open(&sealed, &other), Err(NotOpened::Changed));
    }
    let foreign = keyring(&MemoryFile::new(), &key).seal(b"secret", &[]).unwrap();
    assert_eq!(ring.open(&foreign, &[]), Err(NotOpened::UnknownKey(foreign.key)));
    let bytes = file.bytes.lock().unwrap().clone();
    assert!(EncryptedKeys::read(&bytes, Path::new("keys"), [4; 16]).is_err(), "it is of another store");
    for at in 0..bytes.len() {
        let mut changed = bytes.clone();
        *changed.get_mut(at).unwrap() ^= 1;
        assert!(EncryptedKeys::read(&changed, Path::new("keys"), id_of(&ROOT)).is_err(), "byte {at}");
    }
}

#[test]
fn another_master_key_is_named_by_its_id() {
    let (file, key, other) = (MemoryFile::new(), master("one"), master("other.key"));
    keyring(&file, &key);
    let error = file.open(&other).err().unwrap();
    assert_eq!(error.code, Code::MasterKey);
    for told in ["other.key is not the master key", &other.id().to_string(), &key.id().to_string()] {
        assert!(error.message.contains(told), "{error}");
    }
}

#[test]
fn a_former_key_opens_until_it_is_destroyed() {
    let (file, key) = (MemoryFile::new(), master("one"));
    let ring = keyring(&file, &key);
    let (start, first) = (clock::now(), ring.current());
    let sealed = ring.seal(b"secret", &[]).unwrap();
    let hours = |hours: i64| start.checked_add(SignedDuration::from_hours(hours)).unwrap();
    assert!(!ring.is_due(hours(7 * 24 - 1)) && ring.is_due(hours(7 * 24 + 1)));
    ring.rotate(hours(7 * 24)).unwrap();
    assert_ne!(ring.current(), first);
    assert!(!ring.is_due(hours(8 * 24)));
    assert!(ring.open(&sealed, &[]).is_ok());
    assert!(!ring.has_expired(hours(36 * 24)) && ring.has_expired(hours(37 * 24)));
    ring.destroy_expired(hours(37 * 24), &|id| id == first).unwrap();
    assert!(ring.open(&sealed, &[]).is_ok(), "it is still used");
    ring.destroy_expired(hours(37 * 24), &|_| false).unwrap();
    assert_eq!(ring.open(&sealed, &[]), Err(NotOpened::Destroyed));
    assert_eq!(file.open(&key).unwrap().open(&sealed, &[]), Err(NotOpened::Destroyed), "also in the file");
    ring.request_rotation(true);
    assert!(ring.is_due(start));
    ring.rotate(start).unwrap();
    assert!(ring.has_expired(start), "without waiting");
}

#[test]
fn the_secret_of_what_passes_is_that_of_the_newest_data_key_and_for_some_hours_of_those_before() {
    let (file, key) = (MemoryFile::new(), master("one"));
    let (ring, start) = (keyring(&file, &key), clock::now());
    let hours = |hours: i64| start.checked_add(SignedDuration::from_hours(hours)).unwrap();
    let secrets_at = |hour: i64| {
        ring.set_known_time(KnownTime::at(hours(hour))).unwrap();
        ring.passing_secrets()
    };
    let before = secrets_at(0);
    assert_eq!(before.len(), 1);
    ring.rotate(hours(1)).unwrap();
    let after = secrets_at(2);
    assert!(after.len() == 2 && after.last() == before.first());
    assert_eq!(file.open(&key).unwrap().passing_secrets(), after, "every server has the same");
    assert_eq!(secrets_at(9), after.get(..1).unwrap());
    ring.request_rotation(true);
    ring.rotate(hours(10)).unwrap();
    ring.destroy_expired(hours(10), &|_| false).unwrap();
    let newest = secrets_at(10);
    assert!(newest.len() == 1 && !after.contains(newest.first().unwrap()), "those of destroyed keys end at once");
}

#[test]
fn a_data_key_that_is_replaced_while_the_clock_is_not_trusted_signs_nobody_out() {
    let (file, key) = (MemoryFile::new(), master("one"));
    let ring = keyring(&file, &key);
    // The store was not used for a year, or the clock is a year ahead.
    let trusted = clock::now().checked_sub(SignedDuration::from_hours(365 * 24)).unwrap();
    ring.set_known_time(KnownTime::at(trusted)).unwrap();
    let before = ring.passing_secrets();
    ring.rotate(trusted).unwrap();
    let after = ring.passing_secrets();
    assert!(after.len() == 2 && after.last() == before.first());
}

#[test]
fn what_is_to_be_forgotten_does_not_wait_for_the_clock() {
    let (file, key) = (MemoryFile::new(), master("one"));
    let ring = keyring(&file, &key);
    let (start, first) = (clock::now(), ring.current());
    let later = start.checked_add(SignedDuration::from_hours(48)).unwrap();
    ring.rotate(later).unwrap();
    let until = later.checked_add(SignedDuration::from_hours(30 * 24)).unwrap();
    assert_eq!(ring.former(), [FormerKey { id: first, until }]);
    // The clock has gone back since.
    ring.request_rotation(true);
    assert!(ring.is_due(start) && ring.has_expired(start));
    ring.cancel_rotation();
    assert!(!ring.has_expired(start));
    ring.request_rotation(true);
    ring.destroy_expired(start, &|_| false).unwrap();
    assert!(ring.former().is_empty());
}

#[test]
fn the_master_key_is_read_again_from_where_it_came_from() {
    let (file, key, other) = (MemoryFile::new(), master("one"), master("other"));
    let now = Arc::new(Mutex::new(key.clone()));
    let source = Arc::clone(&now);
    let ring = keyring(&file, &key);
    assert!(ring.master_again().unwrap().is_none(), "without a source");
    let ring = ring.with_source(Some(Box::new(move || Ok(source.lock().unwrap().clone()))));
    assert!(ring.master_again().unwrap().is_none(), "it is the same");
    *now.lock().unwrap() = other.clone();
    let found = ring.master_again().unwrap().unwrap();
    assert_eq!((found.id(), ring.master()), (other.id(), key.id()));
}

#[test]
fn whoever_follows_reads_a_master_key_again_that_was_replaced() {
    let (file, former, newer) = (MemoryFile::new(), master("former"), master("newer"));
    let leading = keyring(&file, &former);
    let now = Arc::new(Mutex::new(former.clone()));
    let source = Arc::clone(&now);
    let following = file.open(&former).unwrap().with_source(Some(Box::new(move || Ok(source.lock().unwrap().clone()))));
    let renew = || {
        let (bytes, path) = (file.bytes.lock().unwrap().clone(), Path::new("store/keys"));
        EncryptedKeys::read(&bytes, path, id_of(&ROOT)).unwrap().renew(path, &following)
    };
    // Between the two writes, both keys open the store.
    *file.writes_left.lock().unwrap() = 1;
    assert!(leading.change_master(newer.clone()).is_err());
    renew().unwrap();
    assert_eq!(following.master(), former.id());
    *file.writes_left.lock().unwrap() = usize::MAX;
    leading.change_master(newer.clone()).unwrap();
    let error = renew().err().unwrap();
    assert!(error.code == Code::MasterKey && error.message.contains(&newer.id().to_string()), "{error}");
    assert_eq!(following.master(), former.id(), "it is not here yet");
    *now.lock().unwrap() = newer.clone();
    renew().unwrap();
    assert_eq!(following.master(), newer.id());
    leading.rotate(clock::now()).unwrap();
    renew().unwrap();
    assert_eq!(following.current(), leading.current());
}

#[test]
fn keys_from_the_future_are_replaced_and_get_no_more_time_than_others() {
    let (file, key) = (MemoryFile::new(), master("one"));
    let ring = keyring(&file, &key);
    let start = clock::now();
    let days = |days: i64| start.checked_add(SignedDuration::from_hours(24 * days)).unwrap();
    ring.rotate(days(400)).unwrap();
    // The clock is right again.
    assert!(ring.is_due(start));
    ring.rotate(start).unwrap();
    assert!(!ring.is_due(start));
    assert_eq!(ring.former().len(), 2);
    ring.destroy_expired(days(31), &|_| false).unwrap();
    assert_eq!(ring.former().len(), 0);
}

#[test]
fn keys_that_are_forgotten_are_destroyed_whatever_the_clock_says() {
    let ring = keyring(&MemoryFile::new(), &master("one"));
    let start = clock::now();
    ring.request_rotation(true);
    ring.rotate(start).unwrap();
    ring.destroy_expired(start.checked_sub(SignedDuration::from_hours(1)).unwrap(), &|_| false).unwrap();
    assert_eq!(ring.former().len(), 0);
}

#[test]
fn a_change_of_the_master_key_that_is_interrupted_leaves_one_that_opens() {
    for writes in 0..=2 {
        let (file, former, new) = (MemoryFile::new(), master("former"), master("new"));
        let ring = keyring(&file, &former);
        let sealed = ring.seal(b"secret", &[]).unwrap();
        *file.writes_left.lock().unwrap() = writes;
        assert_eq!(ring.change_master(new.clone()).is_ok(), writes == 2);
        *file.writes_left.lock().unwrap() = usize::MAX;
        let opens = [&former, &new].map(|key| file.open(key).is_ok_and(|ring| ring.open(&sealed, &[]).is_ok()));
        assert_eq!(opens, [writes < 2, writes > 0], "after {writes} writes");
        // The change is repeated with whichever key opens the file.
        let ring = file.open(if writes == 2 { &new } else { &former }).unwrap();
        ring.change_master(new.clone()).unwrap();
        assert!(file.open(&former).is_err() && file.open(&new).is_ok());
    }
}

#[test]
fn a_key_that_could_not_be_saved_is_not_used() {
    let (file, key) = (MemoryFile::new(), master("one"));
    let ring = keyring(&file, &key);
    let first = ring.current();
    *file.writes_left.lock().unwrap() = 0;
    assert!(ring.rotate(clock::now()).is_err());
    assert_eq!((ring.current(), ring.open(&ring.seal(b"a", &[]).unwrap(), &[]).is_ok()), (first, true));
}

#[test]
fn lifetimes_that_were_set_stay_until_others_are_set() {
    let (file, key) = (MemoryFile::new(), master("one"));
    let ring = keyring(&file, &key);
    let start = clock::now();
    let days = |days: i64| start.checked_add(SignedDuration::from_hours(days * 24)).unwrap();
    ring.set_lifetimes(KeyLifetimes { encrypts: Some(1), decrypts: Some(90) }).unwrap();
    // A command without the options changes nothing, and writes nothing.
    *file.writes_left.lock().unwrap() = 0;
    ring.set_lifetimes(KeyLifetimes::default()).unwrap();
    *file.writes_left.lock().unwrap() = usize::MAX;
    let ring = file.open(&key).unwrap();
    assert!(ring.is_due(days(2)));
    ring.rotate(days(2)).unwrap();
    assert!(!ring.has_expired(days(91)) && ring.has_expired(days(92)));
    let until = days(92);
    assert!(ring.former().iter().all(|former| former.until == until), "{:?}", ring.former());
    ring.set_lifetimes(KeyLifetimes { encrypts: None, decrypts: Some(10) }).unwrap();
    let ring = file.open(&key).unwrap();
    assert!(ring.has_expired(days(12)) && ring.is_due(days(3)) && !ring.is_due(days(2)));
}

#[test]
fn a_master_key_is_announced_until_somebody_was_told() {
    let (file, key) = (MemoryFile::new(), master("one"));
    let told = |ring: &Keyring| ring.new_master().map(|(_, new)| new);
    let at = |ring: Keyring| ring.with_new_master(Some("one.master.key".into()));
    Keyring::create(ROOT, key.clone(), Some(NewMaster::Created), file.save()).unwrap();
    for _ in 0..2 {
        // The process was killed before it told of the key.
        assert_eq!(told(&at(file.open(&key).unwrap())), Some(NewMaster::Created));
    }
    let ring = at(file.open(&key).unwrap());
    ring.set_announced().unwrap();
    assert_eq!((told(&ring), told(&at(file.open(&key).unwrap()))), (None, None));
    // Whoever replaces the key knows of the new one.
    let ring = Keyring::create(ROOT, key, Some(NewMaster::Found), file.save()).unwrap();
    ring.change_master(master("two")).unwrap();
    assert_eq!(told(&at(ring)), None);
}
