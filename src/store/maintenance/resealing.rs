//! When a state is written because of a new data key, and when former data keys are destroyed (D96); and the time that this
//! counts by (D58).
//!
//! Data keys get old although nobody commits, so a server asks every half hour whether a checkpoint is due: because the current
//! key has encrypted for long enough, because a former one has expired, or because the state on the disk is encrypted with
//! another key than the current one. Only a checkpoint destroys keys, as only then it is known what still needs them: those
//! of the newest state, of the previous one, and of the log after that. If the secrets are to be forgotten, only what the
//! newest state needs counts.
//!
//! Because of its age, only a quarter of the former keys goes at once, and then none for a day: if the trusted time were
//! wrong nevertheless, somebody could still notice it. [`TrustedTime`] decides what is old.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;

use crate::lock::Lock;
use crate::store::clock;
use crate::store::commit::record;
use crate::store::database::state;
use crate::store::disk::files::Part;
use crate::store::error::StoreError;
use crate::store::log::reader::LogReader;
use crate::store::seal::{KeyId, Keyring};
use crate::store::trusted_time::{KnownTime, REMOVAL, TrustedMoment, TrustedTime, most_at_once};

/// How long to wait before another state is written only because of a new data key. A disk can be full.
const RETRY: Duration = Duration::from_secs(30);

/// Whether the secrets of the state on the disk are encrypted with the newest data key, and what is old.
pub(crate) struct Resealing {
    keyring: Arc<Keyring>,
    state: Lock<StateKey>,
    time: Lock<TrustedTime>,
    opened: Instant,
}

struct StateKey {
    /// The data key of the newest state.
    key: KeyId,
    /// When another one may be written.
    after: Option<Instant>,
}

impl Resealing {
    /// Starts with the data key of the newest state, and the time that was saved with the keys.
    pub(crate) fn new(key: KeyId, keyring: Arc<Keyring>) -> Self {
        let (state, time) = (StateKey { key, after: None }, TrustedTime::new(keyring.known_time()));
        Self { keyring, state: Lock::new(state), time: Lock::new(time), opened: Instant::now() }
    }

    /// Reads the clock, and saves from time to time what the store knows of the time.
    pub(crate) fn moment(&self) -> TrustedMoment {
        let (moment, unsaved) = {
            let mut time = self.time.lock();
            (time.read(clock::now(), self.opened.elapsed()), time.unsaved())
        };
        if let Some(known) = unsaved {
            if let Some((reached, clock)) = known.disagreement() {
                tracing::info!(
                    "The clock shows {clock}, but the store last recorded {reached}: history records and former secrets \
                     do not expire by this time until the clock has shown it for a day."
                );
            }
            self.save(known);
        }
        moment
    }

    /// Notes that something was removed because of its age: nothing more is for a day.
    pub(crate) fn note_removal(&self) {
        let unsaved = {
            let mut time = self.time.lock();
            time.note_removal();
            time.unsaved()
        };
        if let Some(known) = unsaved {
            self.save(known);
        }
    }

    fn save(&self, known: KnownTime) {
        if let Err(error) = self.keyring.set_known_time(known) {
            tracing::warn!(code = %error.code, "cannot save the last time that the store recorded: {error}");
        }
    }

    /// Makes the next data key, if that is due: what is prepared from now on is sealed with it.
    pub(crate) fn rotate_if_due(&self) -> Result<(), StoreError> {
        let now = self.moment().now;
        if self.keyring.is_due(now) { self.keyring.rotate(now) } else { Ok(()) }
    }

    /// Whether a state should be written with another data key.
    pub(crate) fn is_due(&self) -> bool {
        let TrustedMoment { now, ages } = self.moment();
        let state = self.state.lock();
        // Only a checkpoint destroys the keys that have expired.
        let is_due = self.keyring.is_due(now) || self.keyring.has_expired(ages) || state.key != self.keyring.current();
        is_due && state.after.is_none_or(|after| Instant::now() >= after)
    }

    /// Notes that a state is about to be written.
    pub(crate) fn begin(&self) {
        self.state.lock().after = Some(Instant::now() + RETRY);
    }

    /// The data key of the newest state.
    pub(crate) fn state_key(&self) -> KeyId {
        self.state.lock().key
    }

    /// Notes the data key of a state that was written.
    pub(crate) fn written(&self, key: KeyId) {
        self.state.lock().key = key;
    }

    /// Destroys the former data keys that have expired, unless the state of a generation or the log from there on needs them: a
    /// part of them at once, or all but those of the newest state if they are to be forgotten. Returns whether one was destroyed
    /// because of its age.
    pub(crate) fn destroy_expired(
        &self,
        folder: &Path,
        needed: NeededStates,
        moment: TrustedMoment,
    ) -> Result<bool, StoreError> {
        if !self.keyring.has_expired(moment.ages) {
            return Ok(false);
        }
        // Nothing is old at the earliest of all times.
        let forgets = self.keyring.has_expired(Timestamp::MIN);
        let mut used = BTreeSet::from([self.state_key()]);
        let first = if forgets { needed.newest } else { needed.previous };
        if !forgets && first > 0 {
            // One that cannot be read does not lead anywhere.
            used.extend(state::key_of(folder, first));
        }
        for generation in Part::Log.generations(folder)?.into_iter().filter(|generation| *generation >= first) {
            let mut reader = LogReader::open(&Part::Log.path(folder, generation))?;
            while let Some(framed) = reader.batch()? {
                // The values before it lead nowhere.
                used.extend(framed.batch.entries.iter().filter_map(|entry| record::key_of(entry.after?)));
            }
        }
        self.destroy_unused(&used, moment)
    }

    /// Destroys the former data keys that have expired and are not used, as [`Resealing::destroy_expired`] does.
    pub(crate) fn destroy_unused(&self, used: &BTreeSet<KeyId>, moment: TrustedMoment) -> Result<bool, StoreError> {
        let forgets = self.keyring.has_expired(Timestamp::MIN);
        let former = self.keyring.former();
        let most = if forgets { former.len() } else { most_at_once(former.len() as u64) as usize };
        let may_go: BTreeSet<KeyId> =
            former.iter().map(|key| key.id).filter(|id| !used.contains(id)).take(most).collect();
        self.keyring.destroy_expired(moment.ages, &|id| !may_go.contains(&id))?;
        let left = self.keyring.former();
        for key in former.iter().filter(|key| !left.contains(key)) {
            let (id, until) = (key.id, key.until);
            match forgets {
                // Whoever asked for it is told in the answer.
                true => tracing::info!("Destroyed the former data key {id} (valid until {until}) on request."),
                false => tracing::info!(
                    target: REMOVAL,
                    "Destroyed the former data key {id} (valid until {until}): expired."
                ),
            }
        }
        Ok(!forgets && left.len() < former.len())
    }
}

/// The generations of the states from which the log leads to the present.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NeededStates {
    /// The newest state.
    pub newest: u64,
    /// The state before that, or 0 if that is the beginning of the log.
    pub previous: u64,
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::store::seal::MasterKey;

    fn keyring() -> Arc<Keyring> {
        let master = MasterKey::random("a test".into());
        Arc::new(Keyring::create([5; 32], master, None, Box::new(|_: &[u8]| Ok(()))).unwrap())
    }

    #[test]
    fn a_key_that_has_expired_makes_a_checkpoint_due() {
        let keyring = keyring();
        keyring.request_rotation(true);
        keyring.rotate(clock::now()).unwrap();
        let resealing = Resealing::new(keyring.current(), Arc::clone(&keyring));
        assert!(resealing.is_due());
        keyring.destroy_expired(clock::now(), &|_| false).unwrap();
        assert!(!resealing.is_due());
    }

    #[test]
    fn a_part_of_the_keys_that_have_expired_is_destroyed_at_once() {
        let (folder, keyring) = (tempfile::tempdir().unwrap(), keyring());
        for _ in 0..8 {
            keyring.rotate(clock::now()).unwrap();
        }
        let resealing = Resealing::new(keyring.current(), Arc::clone(&keyring));
        let needed = NeededStates { newest: 2, previous: 1 };
        let destroy = |ages: Timestamp| {
            let moment = TrustedMoment { now: ages.max(clock::now()), ages };
            let has_aged = resealing.destroy_expired(folder.path(), needed, moment).unwrap();
            (has_aged, keyring.former().len())
        };
        let later = clock::now().checked_add(jiff::SignedDuration::from_hours(31 * 24)).unwrap();
        let oldest = keyring.former().first().copied().unwrap();
        assert_eq!(destroy(clock::now()), (false, 8));
        assert_eq!(destroy(Timestamp::MIN), (false, 8));
        assert_eq!(destroy(later), (true, 6));
        assert!(!keyring.former().contains(&oldest));
        assert_eq!([destroy(later), destroy(later), destroy(later)], [(true, 5), (true, 4), (true, 3)]);
        // What is to be forgotten waits for nothing.
        keyring.request_rotation(true);
        assert_eq!(destroy(Timestamp::MIN), (false, 0));
    }
}
