//! The open connections, and which of them gives its place to a new one.
//!
//! A place is a permit of a semaphore, so that a new connection with a free place waits for nothing. Without one, it
//! waits in a short queue beside the loop that accepts connections, until others have been closed for it. Those are
//! ranked by what they are worth to their clients: no request ever, no request now, a response that nobody has taken
//! for a second, and for less. In a rank, the oldest goes first; of the last rank, one of the address that has the most
//! connections. A connection whose client takes the response to its request is never closed for another.
//!
//! A connection that is new, or has stalled for a moment only, is left alone that long; the search then says when to
//! look again. If all connections have requests, the new one is refused.

use std::cmp::Reverse;
use std::collections::hash_map::Entry;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{sleep, timeout};

use super::activity::{Activity, CloseReason};
use super::connection_metrics::{self, RefusalReason};
use super::limits::{ConnectionLimits, client_address};
use crate::server::prelude::*;

/// How long a new connection keeps its place at least, so that its first request can arrive.
const LEAST_AGE: Duration = Duration::from_millis(20);
/// How long a client that takes nothing keeps its connection when others need it.
const GRACE: Duration = Duration::from_secs(1);
/// How long such a client keeps its connection if all other connections have requests.
const SHORT_GRACE: Duration = Duration::from_millis(100);
/// How long to wait until a closed connection has left.
const LEAVING: Duration = Duration::from_secs(1);
/// How long a new connection waits for a place.
const LONGEST_WAIT: Duration = Duration::from_secs(2);
/// One in so many connections gives its place at once if none of them has a request: to look for them takes time.
const BATCH: usize = 64;
/// The most new connections that wait for a place. Each has a descriptor.
const MOST_WAITING: usize = 64;

/// The open connections of a server.
#[derive(Debug)]
pub(super) struct ConnectionTable {
    limits: ConnectionLimits,
    /// One permit for each connection that there may be.
    places: Arc<Semaphore>,
    /// One permit for each new connection that may wait for a place.
    queue: Arc<Semaphore>,
    most_waiting: usize,
    /// Has a reference for each waiting connection that any place would do for, and one.
    searching: Arc<()>,
    open: Lock<OpenConnections>,
}

#[derive(Debug, Default)]
struct OpenConnections {
    all: HashMap<u64, (IpAddr, Arc<Activity>)>,
    /// The connections of each address.
    of_address: HashMap<IpAddr, usize>,
    /// The connections of each address that wait for a place.
    waiting: HashMap<IpAddr, usize>,
    next: u64,
}

/// The result of the search for a place.
#[derive(Debug, PartialEq, Eq)]
enum MadeRoom {
    /// Connections are being closed.
    Soon,
    /// The oldest connections are so new that their first requests may still arrive, or have stalled for a moment only.
    After(Duration),
    /// All connections have a request.
    Never,
}

impl ConnectionTable {
    /// An empty table.
    pub(super) fn new(limits: ConnectionLimits) -> Arc<Self> {
        let most = limits.most.clamp(1, Semaphore::MAX_PERMITS);
        let most_waiting = (most / 8).clamp(1, MOST_WAITING);
        Arc::new(Self {
            limits,
            places: Arc::new(Semaphore::new(most)),
            queue: Arc::new(Semaphore::new(most_waiting)),
            most_waiting,
            searching: Arc::default(),
            open: Lock::default(),
        })
    }

    /// Returns a place for a connection, if one is free.
    pub(super) fn slot(self: &Arc<Self>, address: IpAddr) -> Option<ConnectionSlot> {
        let address = client_address(address);
        let most = self.limits.most_per_client(address);
        if most < self.limits.most && self.open.lock().of_address.get(&address).is_some_and(|count| *count >= most) {
            return None;
        }
        let permit = Arc::clone(&self.places).try_acquire_owned().ok()?;
        Some(self.enter(address, permit))
    }

    /// Lets a connection wait for a place, beside the loop that accepts others. An address with a limit can take a quarter
    /// of the queue; more of its connections are refused at once. None if the connection is refused.
    pub(super) async fn queue(self: &Arc<Self>, address: IpAddr) -> Option<WaitingConnection> {
        let address = client_address(address);
        let is_limited = self.limits.most_per_client(address) < self.limits.most;
        let share = if is_limited { (self.most_waiting / 4).max(1) } else { self.most_waiting };
        let waiting = self.open.lock().waiting.get(&address).copied().unwrap_or_default();
        if share < self.most_waiting && waiting >= share {
            return None;
        }
        let permit = Arc::clone(&self.queue).acquire_owned().await.ok()?;
        *self.open.lock().waiting.entry(address).or_default() += 1;
        Some(WaitingConnection { table: Arc::clone(self), address, _permit: permit })
    }

    /// Closes a connection without a request, if there is one: the process needs its descriptor.
    pub(super) fn shed(&self) {
        self.make_room(None, 1, Instant::now());
    }

    /// The connections of an address that are not being closed.
    fn staying(&self, address: IpAddr) -> usize {
        let open = self.open.lock();
        open.all.values().filter(|(other, it)| *other == address && it.close_reason().is_none()).count()
    }

    fn enter(self: &Arc<Self>, address: IpAddr, permit: OwnedSemaphorePermit) -> ConnectionSlot {
        let activity = Arc::new(Activity::new(Instant::now()));
        let mut open = self.open.lock();
        let number = open.next;
        open.next += 1;
        open.all.insert(number, (address, Arc::clone(&activity)));
        *open.of_address.entry(address).or_default() += 1;
        drop(open);
        metrics::counter!(connection_metrics::ACCEPTED).increment(1);
        metrics::gauge!(connection_metrics::OPEN).increment(1.0);
        ConnectionSlot { table: Arc::clone(self), number, activity, _permit: permit }
    }

    /// Closes as many connections as are searching for a place, unless others are being closed already.
    fn make_places(&self) -> MadeRoom {
        let closing = self.open.lock().all.values().filter(|(_, it)| it.close_reason().is_some()).count();
        let expected = closing + self.places.available_permits();
        let searching = Arc::strong_count(&self.searching) - 1;
        match searching.saturating_sub(expected) {
            0 => MadeRoom::Soon,
            needed => self.make_room(None, needed, Instant::now()),
        }
    }

    /// Closes the connections that need their places least: those that have been without a request for the longest.
    fn make_room(&self, of: Option<IpAddr>, needed: usize, now: Instant) -> MadeRoom {
        let open = self.open.lock();
        let mut free = Vec::new();
        let (mut silent_left, mut stalled_left): (Option<Duration>, Option<Duration>) = (None, None);
        for (address, activity) in open.all.values() {
            if of.is_some_and(|of| of != *address) {
                continue;
            }
            let Some((reason, since)) = activity.eviction() else { continue };
            let age = now.saturating_duration_since(since);
            let (least, left) = match reason {
                CloseReason::EvictedSilent => (LEAST_AGE, &mut silent_left),
                CloseReason::EvictedStalled => (SHORT_GRACE, &mut stalled_left),
                _ => (Duration::ZERO, &mut stalled_left),
            };
            if age < least {
                *left = Some(left.map_or(least - age, |left| left.min(least - age)));
                continue;
            }
            let rank = rank(reason, age);
            // Whoever has the most connections loses one first.
            let crowd = if rank == LAST { open.of_address.get(address).copied().unwrap_or_default() } else { 0 };
            free.push((rank, Reverse(crowd), since, reason, activity));
        }
        free.sort_unstable_by_key(|(rank, crowd, since, ..)| (*rank, *crowd, *since));
        let first = match free.first() {
            // A silent connection is soon old enough, and is worth less than one with a response.
            Some((LAST, ..)) if silent_left.is_some() => return silent_left.map_or(MadeRoom::Never, MadeRoom::After),
            Some((rank, ..)) => *rank,
            None => {
                let left = silent_left.into_iter().chain(stalled_left).min();
                return left.map_or(MadeRoom::Never, MadeRoom::After);
            }
        };
        let batch = if first <= IDLE { (open.all.len() / BATCH).max(needed) } else { needed };
        for (number, (rank, _, _, reason, activity)) in free.iter().take(batch).enumerate() {
            if number < needed || *rank == first {
                activity.close(*reason);
            }
        }
        MadeRoom::Soon
    }
}

/// A new connection that waits for its place.
#[derive(Debug)]
pub(super) struct WaitingConnection {
    table: Arc<ConnectionTable>,
    address: IpAddr,
    _permit: OwnedSemaphorePermit,
}

impl WaitingConnection {
    /// Finds a place. If there is none, others without a request are closed.
    pub(super) async fn slot(self) -> Result<ConnectionSlot, RefusalReason> {
        timeout(LONGEST_WAIT, self.find()).await.unwrap_or(Err(RefusalReason::Full))
    }

    async fn find(&self) -> Result<ConnectionSlot, RefusalReason> {
        let (table, address) = (&self.table, self.address);
        let most = table.limits.most_per_client(address);
        // The places of others are not touched. A new connection may wait a moment, so that it does not close one that
        // has just come.
        if most < table.limits.most {
            loop {
                let excess = (table.staying(address) + 1).saturating_sub(most);
                if excess == 0 {
                    break;
                }
                match table.make_room(Some(address), excess, Instant::now()) {
                    MadeRoom::Soon => break,
                    MadeRoom::After(time) => sleep(time).await,
                    MadeRoom::Never => return Err(RefusalReason::Address),
                }
            }
        }
        let _search = Arc::clone(&table.searching);
        loop {
            let wait = match table.make_places() {
                MadeRoom::Soon => LEAVING,
                MadeRoom::After(time) => time,
                MadeRoom::Never => return Err(RefusalReason::Full),
            };
            if let Ok(Ok(permit)) = timeout(wait, Arc::clone(&table.places).acquire_owned()).await {
                return Ok(table.enter(address, permit));
            }
        }
    }
}

impl Drop for WaitingConnection {
    fn drop(&mut self) {
        remove_one(&mut self.table.open.lock().waiting, self.address);
    }
}

/// Takes a connection from the count of its address.
fn remove_one(counts: &mut HashMap<IpAddr, usize>, address: IpAddr) {
    if let Entry::Occupied(mut count) = counts.entry(address) {
        *count.get_mut() -= 1;
        if *count.get() == 0 {
            count.remove();
        }
    }
}

/// The ranks of idle connections, and of those that have stalled for a moment.
const IDLE: u8 = 1;
const LAST: u8 = 3;

/// The order in which connections are closed.
fn rank(reason: CloseReason, age: Duration) -> u8 {
    match reason {
        CloseReason::EvictedSilent => 0,
        CloseReason::EvictedIdle => IDLE,
        _ if age >= GRACE => 2,
        _ => LAST,
    }
}

/// The place of a connection, until it is dropped. It must be dropped after the connection's socket.
#[derive(Debug)]
pub(super) struct ConnectionSlot {
    table: Arc<ConnectionTable>,
    number: u64,
    activity: Arc<Activity>,
    _permit: OwnedSemaphorePermit,
}

impl ConnectionSlot {
    /// The state of the connection.
    pub(super) fn activity(&self) -> &Arc<Activity> {
        &self.activity
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        let mut open = self.table.open.lock();
        if let Some((address, _)) = open.all.remove(&self.number) {
            remove_one(&mut open.of_address, address);
        }
        drop(open);
        metrics::gauge!(connection_metrics::OPEN).decrement(1.0);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
