//! Conflicting writers: the loop reverts a field, and another writer changes it again, over and over (D85).
//!
//! If two controllers want different values, neither stops, and each round is a commit with a history record.
//! [`Repairs`] counts the repairs of each field. The third one within ten minutes is a fight, as Config Sync calls it:
//! the loop leaves drift as it is for 30 seconds, and twice as long after each further repair, up to ten minutes.
//! Everything that is not drift is applied meanwhile.
//!
//! For example, an autoscaler sets a threshold each minute. The loop reverts it three times, and then less and less
//! often, down to once in ten minutes, while the status and the log have the time of the next repair.
//!
//! Rests are in memory: after a restart the loop starts with a repair, which is harmless.

use crate::reconcile::prelude::*;

/// How long repairs of a field count.
const WINDOW: Duration = Duration::from_secs(600);
/// How many repairs of a field are a fight.
const REPEATS: usize = 3;
/// The first rest, which doubles with each further repair.
const FIRST_REST: Duration = Duration::from_secs(30);
/// The longest rest.
const LONGEST_REST: Duration = Duration::from_secs(600);

/// The repairs of a source's resources.
#[derive(Debug, Default)]
pub(super) struct Repairs {
    /// The recent times at which each field was reverted.
    times: HashMap<(Key, String), Vec<Instant>>,
    /// How many repairs of a fight there were.
    rounds: u32,
    /// When the rest ends, also as the time of day.
    until: Option<(Instant, Timestamp)>,
}

/// A fight over a field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fight {
    /// The resource.
    pub key: Key,
    /// JSON pointer to the field.
    pub field: String,
    /// Until when drift is left as it is.
    pub until: Timestamp,
}

impl Repairs {
    /// The remaining time in which drift is left as is.
    pub(super) fn rests(&self, now: Instant) -> Option<Duration> {
        self.until?.0.checked_duration_since(now).filter(|left| !left.is_zero())
    }

    /// Until when drift is still left as it is.
    pub(super) fn rests_until(&self, now: Instant) -> Option<Timestamp> {
        self.rests(now)?;
        self.until.map(|(_, until)| until)
    }

    /// Records that fields were reverted now, also as the time of day. Returns the fight that they are part of.
    pub(super) fn note(
        &mut self,
        fields: impl Iterator<Item = (Key, String)>,
        (now, time): (Instant, Timestamp),
    ) -> Option<Fight> {
        // Rests must not make a fight look like single repairs.
        let memory = WINDOW + 2 * rest(self.rounds);
        self.times.retain(|_, times| {
            times.retain(|time| now.saturating_duration_since(*time) <= memory);
            !times.is_empty()
        });
        if self.times.is_empty() {
            self.rounds = 0;
        }
        let mut fought = None;
        for field in fields {
            let times = self.times.entry(field.clone()).or_default();
            times.push(now);
            if times.len() >= REPEATS && fought.is_none() {
                fought = Some(field);
            }
        }
        let (key, field) = fought?;
        self.rounds = self.rounds.saturating_add(1);
        let rest = rest(self.rounds);
        let until = time.checked_add(rest).unwrap_or(time);
        self.until = Some((now + rest, until));
        Some(Fight { key, field, until })
    }
}

/// The fields that an applied plan has reverted.
pub(super) fn reverted(plan: &Plan) -> impl Iterator<Item = (Key, String)> {
    plan.changes.iter().flat_map(|change| {
        let fields = change.drift.iter().flat_map(Drift::reverted);
        fields.map(move |field| (change.key.clone(), field.field.clone()))
    })
}

/// The rest after a number of repairs of a fight.
fn rest(rounds: u32) -> Duration {
    match rounds {
        0 => Duration::ZERO,
        _ => FIRST_REST.saturating_mul(1_u32 << (rounds - 1).min(10)).min(LONGEST_REST),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Id, Kind};

    fn field(name: &str) -> (Key, String) {
        (Key::new(Kind::HttpsEdge, Id::new("edghts_1")), name.to_owned())
    }

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn repairs_of_one_field_are_a_fight_that_backs_off() {
        let (mut repairs, mut now, time) = (Repairs::default(), Instant::now(), Timestamp::UNIX_EPOCH);
        let mut rests = Vec::new();
        for _ in 0..10 {
            let fight = repairs.note([field("/description")].into_iter(), (now, time));
            let rest = repairs.rests(now);
            rests.push(rest.map(|rest| rest.as_secs()));
            assert_eq!(fight.map(|fight| fight.until), rest.map(|rest| time + rest));
            assert_eq!(repairs.rests_until(now), rest.map(|rest| time + rest));
            // The other one changes the field right away, and the loop syncs every 30 seconds.
            now += repairs.rests(now).unwrap_or_default() + seconds(30);
            assert_eq!(repairs.rests(now), None);
        }
        let expected =
            [None, None, Some(30), Some(60), Some(120), Some(240), Some(480), Some(600), Some(600), Some(600)];
        assert_eq!(rests, expected);
        now += seconds(3600);
        assert_eq!(repairs.note([field("/description")].into_iter(), (now, time)), None, "the fight is over");
        assert_eq!(repairs.times.len(), 1);
    }

    #[test]
    fn repairs_of_other_fields_and_rare_ones_are_no_fight() {
        let (mut repairs, mut now, time) = (Repairs::default(), Instant::now(), Timestamp::UNIX_EPOCH);
        for name in ["/a", "/b", "/c", "/d"] {
            assert_eq!(repairs.note([field(name)].into_iter(), (now, time)), None);
        }
        for _ in 0..10 {
            now += seconds(301);
            assert_eq!(repairs.note([field("/a")].into_iter(), (now, time)), None, "two within ten minutes");
        }
        assert_eq!(repairs.rests(now), None);
    }
}
