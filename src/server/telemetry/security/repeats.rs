//! Events that a client can repeat as often as it likes: the first of an interval is logged at once, the others are counted.
//!
//! Whoever wants to hide one line sends a million others. So what is the same (event, address, key and reason) has two lines
//! a minute at most: the first one when it happens, and one with the count, the first and the last time at the end. The
//! number of clients that are told apart is limited for each event by itself: with many addresses, the rest have one line for
//! each API key, and one without a key. Failures of strangers thus hide neither another event nor what a key does.

use super::event::{Repeated, SecurityEvent, SecurityRecord};
use crate::server::prelude::*;
use crate::{model::id::Id, server::http::proxy::subnet_of};

/// How long events are counted before their number is logged.
const INTERVAL: Duration = Duration::from_secs(60);
/// The most clients that are told apart in an interval, for each event: one that anybody can cause must not hide others.
const MOST: usize = 100;
/// The reason in the line about all other clients.
const OTHERS: &str = "other clients";

/// What is the same in the repetitions of an event.
type RepeatKey = (Option<IpAddr>, Option<Id>, Cow<'static, str>);

/// The repeated events of an interval.
#[derive(Debug, Default)]
pub(super) struct Repeats {
    ends: Option<Instant>,
    /// The clients of each event whose first one was logged, with the last one since then.
    by_client: HashMap<SecurityEvent, HashMap<RepeatKey, Option<SecurityRecord>>>,
    /// All others, of each key.
    by_key: HashMap<(SecurityEvent, Option<Id>), Option<SecurityRecord>>,
}

impl Repeats {
    /// Counts an event. Returns it if it is to be logged now.
    pub(super) fn add(&mut self, record: SecurityRecord, now: Instant) -> Option<SecurityRecord> {
        if !record.event.is_repeatable() {
            return Some(record);
        }
        self.ends.get_or_insert(now + INTERVAL);
        let same = (record.peer.map(subnet_of), record.key.clone(), record.reason.clone());
        let clients = self.by_client.entry(record.event).or_default();
        if let Some(counted) = clients.get_mut(&same) {
            count(counted, record);
            return None;
        }
        if clients.len() < MOST {
            clients.insert(same, None);
            return Some(record);
        }
        // Only what is the same for all of them may stand for all.
        let SecurityRecord { at, event, key, owner, .. } = record;
        let event_and_key = (event, key.clone());
        let other = SecurityRecord { at, key, owner, reason: Cow::Borrowed(OTHERS), ..SecurityRecord::new(event) };
        count(self.by_key.entry(event_and_key).or_default(), other);
        None
    }

    /// When the interval ends, if there is one.
    pub(super) fn ends(&self) -> Option<Instant> {
        self.ends
    }

    /// Ends the interval, and returns what was counted in it.
    pub(super) fn end(&mut self) -> Vec<SecurityRecord> {
        let Self { by_client, by_key, .. } = std::mem::take(self);
        let of_clients = by_client.into_values().flat_map(HashMap::into_values);
        let mut counted: Vec<SecurityRecord> = of_clients.chain(by_key.into_values()).flatten().collect();
        counted.sort_by_key(|record| record.repeated.map(|repeated| repeated.last));
        counted
    }
}

/// Counts an event after the others of its kind.
fn count(counted: &mut Option<SecurityRecord>, record: SecurityRecord) {
    let last = record.at;
    let before = counted.as_ref().and_then(|counted| counted.repeated);
    let (count, first) = before.map_or((1, last), |before| (before.count + 1, before.first));
    *counted = Some(SecurityRecord { repeated: Some(Repeated { count, first, last }), ..record });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failed(address: [u8; 4]) -> SecurityRecord {
        let peer = Some(IpAddr::from(address));
        SecurityRecord { peer, ..SecurityRecord::new(SecurityEvent::AuthenticationFailed) }
    }

    #[test]
    fn a_flood_is_one_line_and_a_count() {
        let (mut repeats, now) = (Repeats::default(), Instant::now());
        assert!(repeats.add(failed([192, 0, 2, 1]), now).is_some());
        assert!((0..999).all(|_| repeats.add(failed([192, 0, 2, 1]), now).is_none()));
        assert!(repeats.add(failed([192, 0, 2, 2]), now).is_some(), "another client");
        assert_eq!(repeats.ends(), Some(now + INTERVAL));
        let counted = repeats.end();
        assert_eq!(counted.len(), 1);
        let repeated = counted.first().and_then(|record| record.repeated);
        assert_eq!(repeated.map(|it| it.count), Some(999));
        assert!(repeats.ends().is_none() && repeats.end().is_empty());
        assert!(repeats.add(failed([192, 0, 2, 1]), now).is_some(), "a new interval");
    }

    #[test]
    fn many_clients_have_one_line_together() {
        let (mut repeats, now) = (Repeats::default(), Instant::now());
        let logged = (0..=u8::MAX).filter(|last| repeats.add(failed([192, 0, 2, *last]), now).is_some()).count();
        assert_eq!(logged, MOST);
        let counted = repeats.end();
        let repeated = counted.first().and_then(|record| record.repeated);
        assert_eq!((counted.len(), repeated.map(|it| it.count)), (1, Some(256 - MOST as u64)));
        assert!(counted.iter().all(|record| record.peer.is_none() && record.reason == OTHERS));
    }

    #[test]
    fn a_flood_of_one_event_hides_no_other_and_no_key() {
        let (mut repeats, now) = (Repeats::default(), Instant::now());
        for last in 0..=u8::MAX {
            repeats.add(failed([192, 0, 2, last]), now);
        }
        let read = |last: u8| {
            let (key, owner) = (Some(Id::new("ak_gateway")), Some(Id::new("bot_gateway")));
            SecurityRecord { key, owner, event: SecurityEvent::GatewayRead, ..failed([198, 51, 100, last]) }
        };
        let logged = (0..=u8::MAX).filter(|last| repeats.add(read(*last), now).is_some()).count();
        assert_eq!(logged, MOST);
        let counted = repeats.end();
        let reads: Vec<_> = counted.iter().filter(|it| it.event == SecurityEvent::GatewayRead).collect();
        assert_eq!((counted.len(), reads.len()), (2, 1));
        assert!(reads.iter().all(|it| it.key == read(0).key && it.owner == read(0).owner));
    }

    #[test]
    fn a_change_is_always_logged() {
        let (mut repeats, now) = (Repeats::default(), Instant::now());
        assert!((0..1000).all(|_| repeats.add(SecurityRecord::new(SecurityEvent::KeyDeleted), now).is_some()));
        assert!(repeats.ends().is_none());
    }
}
