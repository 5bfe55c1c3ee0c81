//! The open connections, and which of them gives its place to a new one.

use std::{
    collections::HashMap,
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::timeout,
};

use super::{
    activity::{Activity, CloseReason},
    counts::{self, RefusedFor},
    limits::{ConnectionLimits, counted},
};

/// How long a new connection keeps its place at least, so that its first request can arrive.
const LEAST_AGE: Duration = Duration::from_millis(20);
/// How long to wait until a closed connection has left.
const LEAVING: Duration = Duration::from_secs(1);
/// One in so many connections gives its place at once if none of them has had a request: to look for them takes time.
const BATCH: usize = 64;

/// The open connections of a server.
#[derive(Debug)]
pub(super) struct ConnectionTable {
    limits: ConnectionLimits,
    /// One permit for each connection that there may be.
    places: Arc<Semaphore>,
    open: Mutex<OpenConnections>,
}

#[derive(Debug, Default)]
struct OpenConnections {
    all: HashMap<u64, (IpAddr, Arc<Activity>)>,
    /// The connections of each address.
    of_address: HashMap<IpAddr, usize>,
    next: u64,
}

/// What became of the search for a place.
#[derive(Debug, PartialEq, Eq)]
enum MadeRoom {
    /// Connections are being closed.
    Soon,
    /// The oldest connections are so new that their first requests may still arrive.
    After(Duration),
    /// All connections have a request.
    Never,
}

impl ConnectionTable {
    /// An empty table.
    pub(super) fn new(limits: ConnectionLimits) -> Arc<Self> {
        let places = Arc::new(Semaphore::new(limits.most.clamp(1, Semaphore::MAX_PERMITS)));
        Arc::new(Self { limits, places, open: Mutex::default() })
    }

    fn open(&self) -> MutexGuard<'_, OpenConnections> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Finds a place for a connection. If there is none, others without a request are closed.
    pub(super) async fn admit(self: &Arc<Self>, address: IpAddr) -> Result<Seat, RefusedFor> {
        let address = counted(address);
        let most = self.limits.most_of(address);
        if most < self.limits.most && self.open().of_address.get(&address).is_some_and(|count| *count >= most) {
            // The places of others are not touched. A new connection may wait a moment, so that it does not close one
            // that has just come.
            while let MadeRoom::After(time) = self.make_room(Some(address)) {
                tokio::time::sleep(time).await;
            }
            if self.is_full_of_requests(address, most) {
                return Err(RefusedFor::Address);
            }
            // The place of the connection that is being closed, so that no other one is closed as well.
            if let Ok(Ok(permit)) = timeout(LEAVING, Arc::clone(&self.places).acquire_owned()).await {
                return Ok(self.enter(address, permit));
            }
        }
        loop {
            if let Ok(permit) = Arc::clone(&self.places).try_acquire_owned() {
                return Ok(self.enter(address, permit));
            }
            let patience = match self.make_room(None) {
                MadeRoom::Soon => LEAVING,
                MadeRoom::After(time) => time,
                MadeRoom::Never => return Err(RefusedFor::Full),
            };
            if let Ok(Ok(permit)) = timeout(patience, Arc::clone(&self.places).acquire_owned()).await {
                return Ok(self.enter(address, permit));
            }
        }
    }

    /// Closes a connection without a request, if there is one: the process needs its descriptor.
    pub(super) fn shed(&self) {
        self.make_room(None);
    }

    /// Whether an address has as many connections as it may, and none of them is being closed.
    fn is_full_of_requests(&self, address: IpAddr, most: usize) -> bool {
        let open = self.open();
        let staying = open.all.values().filter(|(other, it)| *other == address && it.close_reason().is_none());
        staying.count() >= most
    }

    fn enter(self: &Arc<Self>, address: IpAddr, permit: OwnedSemaphorePermit) -> Seat {
        let activity = Arc::new(Activity::new(Instant::now()));
        let mut open = self.open();
        let number = open.next;
        open.next += 1;
        open.all.insert(number, (address, Arc::clone(&activity)));
        *open.of_address.entry(address).or_default() += 1;
        drop(open);
        counts::opened();
        Seat { table: Arc::clone(self), number, activity, _permit: permit }
    }

    /// Closes the connections that need their places least: those that have been without a request for the longest.
    fn make_room(&self, of: Option<IpAddr>) -> MadeRoom {
        let (open, now) = (self.open(), Instant::now());
        let asked = open.all.values().filter(|(address, _)| of.is_none_or(|of| of == *address));
        let free =
            asked.filter_map(|(_, it)| it.eviction(now).map(|(reason, since)| (rank(reason), since, reason, it)));
        let mut free: Vec<_> = free.collect();
        free.sort_unstable_by_key(|(rank, since, ..)| (*rank, *since));
        let Some((_, since, first, _)) = free.first() else { return MadeRoom::Never };
        let (is_silent, age) = (*first == CloseReason::EvictedSilent, now.saturating_duration_since(*since));
        if is_silent && age < LEAST_AGE {
            return MadeRoom::After(LEAST_AGE - age);
        }
        let most = if is_silent { (open.all.len() / BATCH).max(1) } else { 1 };
        for (_, since, reason, activity) in free.iter().take(most) {
            if reason == first && (!is_silent || now.saturating_duration_since(*since) >= LEAST_AGE) {
                activity.close(*reason);
            }
        }
        MadeRoom::Soon
    }
}

/// The order in which connections are closed.
fn rank(reason: CloseReason) -> u8 {
    match reason {
        CloseReason::EvictedSilent => 0,
        CloseReason::EvictedIdle => 1,
        _ => 2,
    }
}

/// The place of a connection, until it is dropped. It must be dropped after the connection's socket.
#[derive(Debug)]
pub(super) struct Seat {
    table: Arc<ConnectionTable>,
    number: u64,
    activity: Arc<Activity>,
    _permit: OwnedSemaphorePermit,
}

impl Seat {
    /// The state of the connection.
    pub(super) fn activity(&self) -> &Arc<Activity> {
        &self.activity
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut open = self.table.open();
        if let Some((address, _)) = open.all.remove(&self.number)
            && let Some(count) = open.of_address.get_mut(&address)
        {
            *count -= 1;
            if *count == 0 {
                open.of_address.remove(&address);
            }
        }
        drop(open);
        counts::ended();
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
