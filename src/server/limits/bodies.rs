//! The bodies that are being received (D98): how many there are, how much memory they take, and whose goes first when either
//! is short.
//!
//! # The problem
//!
//! A body takes as long as its client likes, and memory for as long. A place for each would let some hundred clients that
//! send a byte a second stop all writes. A limit of time alone has to allow what an honest client on a bad line needs, and
//! 1,024 of these are enough for a flood.
//!
//! # The idea
//!
//! When there are too many, one that is being received ends, and which one decides it all. It is one of the sender with the
//! most bodies, an owner of keys or an address without a token, and of these the one that is furthest behind an ordinary
//! client, who sends a megabyte in a second:
//!
//! ```text
//! behind = seconds since it began × 1 MB − bytes that have come
//!
//! owner ci    body of 64 MB for 20 s, 30 MB have come        -10 MB: ahead
//! owner ci    body for 30 s, 900 bytes have come              30 MB behind    <- ends
//! ```
//!
//! Within that, an owner has a quarter, and all clients without a token have one together. So a flood of bodies that never
//! end pushes out itself, and a large body that moves stays.
//!
//! # What it never does
//!
//! A body that is complete is never taken away: its request is about to be answered. Its memory counts until then.

use tokio::{sync::oneshot, time::Instant};

use crate::server::http::api_error::ApiError;
use crate::server::prelude::*;

/// The counter of requests and bodies that are refused because there are too many.
pub(in crate::server) const SHED: &str = "edgewright_http_requests_shed_total";
/// The Retry-After of a shed request, in seconds.
pub(super) const RETRY_AFTER: u64 = 1;
/// The part of all bodies that one owner has, and that all clients without a token have together.
const SHARE: usize = 4;
/// The memory for bodies by default: that of more than a hundred of the largest ones of resources.
pub(super) const MOST_BYTES: usize = 256 << 20;
/// The bytes in a second of an ordinary client.
const ORDINARY: f64 = 1e6;

/// The limits of all bodies together.
#[derive(Debug, Clone, Copy)]
pub(in crate::server) struct BodyLimits {
    /// The number of bodies that are received at a time.
    pub(super) most: usize,
    /// The bytes of bodies that are received or worked on.
    pub(super) bytes: usize,
}

/// The sender of a body.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Sender {
    /// The owner of an API key.
    Owner(Id),
    /// A client without a token at an address.
    Subnet(Option<IpAddr>),
}

impl Sender {
    /// The owner whose share a body counts for: none for that of all clients without a token.
    fn share_owner(&self) -> Option<&Id> {
        match self {
            Sender::Owner(owner) => Some(owner),
            Sender::Subnet(_) => None,
        }
    }
}

/// The bodies that are received, and those whose requests are worked on.
#[derive(Debug)]
pub(super) struct Bodies {
    limits: BodyLimits,
    table: Lock<BodyTable>,
}

#[derive(Debug, Default)]
struct BodyTable {
    bodies: HashMap<u64, ReceivedBody>,
    next: u64,
    all: BodyTotals,
    shares: HashMap<Option<Id>, BodyTotals>,
}

#[derive(Debug)]
struct ReceivedBody {
    sender: Sender,
    began: Instant,
    bytes: usize,
    /// Ends it, while it is received.
    stop: Option<oneshot::Sender<Shortage>>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct BodyTotals {
    /// The bodies that are received.
    receiving: usize,
    /// The bytes of these and of those whose requests are worked on.
    bytes: usize,
}

impl BodyTotals {
    fn exceeds(self, limits: BodyLimits, part: usize) -> bool {
        self.receiving > (limits.most / part).max(1) || self.bytes > limits.bytes / part
    }
}

/// The reason for ending a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shortage {
    /// The owner has more than its share.
    Owner,
    /// All have more than there is, or the clients without a token have more than their share.
    All,
}

impl Shortage {
    fn error(self) -> ApiError {
        metrics::counter!(SHED).increment(1);
        let (code, message) = match self {
            Shortage::Owner => (Code::RateLimited, "the owner of the API key sends too many request bodies at a time"),
            Shortage::All => (
                Code::Unavailable,
                "the server is receiving too many request bodies, and this one was among the slowest",
            ),
        };
        ApiError::with_code(code, message).retry_after(RETRY_AFTER)
    }
}

impl Bodies {
    /// No bodies.
    pub(super) fn new(limits: BodyLimits) -> Self {
        Self { limits, table: Lock::default() }
    }

    /// The number of bodies that are being received.
    pub(super) fn count(&self) -> usize {
        self.table.lock().all.receiving
    }

    /// Begins to receive a body. Others end if there are too many.
    pub(super) fn begin(bodies: &Arc<Self>, sender: Sender) -> Result<Reception, ApiError> {
        let (stop, stopped) = oneshot::channel();
        let mut table = bodies.table.lock();
        let number = table.next;
        table.next += 1;
        table.change_totals(&sender, |totals| totals.receiving += 1);
        table.bodies.insert(number, ReceivedBody { sender, began: Instant::now(), bytes: 0, stop: Some(stop) });
        let shortage = table.make_room(bodies.limits, number);
        drop(table);
        let reception = Reception { bodies: Arc::clone(bodies), number, stopped };
        shortage.map_or(Ok(reception), |shortage| Err(shortage.error()))
    }
}

impl BodyTable {
    fn change_totals(&mut self, sender: &Sender, change: impl Fn(&mut BodyTotals)) {
        let share = self.shares.entry(sender.share_owner().cloned()).or_default();
        change(share);
        if *share == BodyTotals::default() {
            self.shares.remove(&sender.share_owner().cloned());
        }
        change(&mut self.all);
    }

    fn grow(&mut self, number: u64, bytes: usize) {
        let Some(body) = self.bodies.get_mut(&number) else { return };
        body.bytes += bytes;
        let sender = body.sender.clone();
        self.change_totals(&sender, |totals| totals.bytes += bytes);
    }

    /// Notes that a body is no longer received. Returns what ends it.
    fn complete(&mut self, number: u64) -> Option<oneshot::Sender<Shortage>> {
        let body = self.bodies.get_mut(&number)?;
        let stop = body.stop.take()?;
        let sender = body.sender.clone();
        self.change_totals(&sender, |totals| totals.receiving -= 1);
        Some(stop)
    }

    fn remove(&mut self, number: u64) -> Option<oneshot::Sender<Shortage>> {
        let stop = self.complete(number);
        let ReceivedBody { sender, bytes, .. } = self.bodies.remove(&number)?;
        self.change_totals(&sender, |totals| totals.bytes -= bytes);
        stop
    }

    /// Ends bodies until there is room for one that has begun or grown. Returns why that one cannot stay, if it cannot.
    fn make_room(&mut self, limits: BodyLimits, number: u64) -> Option<Shortage> {
        while let Some((shortage, of)) = self.shortage(limits, number) {
            let victim = self.slowest(of.as_ref(), Instant::now()).unwrap_or(number);
            let stop = self.remove(victim);
            if victim == number {
                return Some(shortage);
            }
            // Its request may be ending by itself.
            let _ = stop.map(|stop| stop.send(shortage));
        }
        None
    }

    /// The shortage, and the owner whom it concerns; none if it concerns everybody.
    fn shortage(&self, limits: BodyLimits, number: u64) -> Option<(Shortage, Option<Sender>)> {
        let sender = &self.bodies.get(&number)?.sender;
        let share = self.shares.get(&sender.share_owner().cloned()).copied().unwrap_or_default();
        if share.exceeds(limits, SHARE) {
            let shortage = if sender.share_owner().is_some() { Shortage::Owner } else { Shortage::All };
            return Some((shortage, Some(sender.clone())));
        }
        self.all.exceeds(limits, 1).then_some((Shortage::All, None))
    }

    /// The slowest body that is being received of those that share with a sender, or of all: of the sender that has the
    /// most.
    fn slowest(&self, of: Option<&Sender>, now: Instant) -> Option<u64> {
        let mut crowds: HashMap<&Sender, usize> = HashMap::new();
        let received = || {
            let all = self.bodies.iter().filter(|(_, body)| body.stop.is_some());
            all.filter(|(_, body)| of.is_none_or(|of| of.share_owner() == body.sender.share_owner()))
        };
        // All bodies of an owner's share have one sender.
        if of.is_none_or(|of| of.share_owner().is_none()) {
            received().for_each(|(_, body)| *crowds.entry(&body.sender).or_default() += 1);
        }
        let rank = |body: &ReceivedBody| {
            let behind = now.saturating_duration_since(body.began).as_secs_f64() * ORDINARY - body.bytes as f64;
            (crowds.get(&body.sender).copied().unwrap_or_default(), behind)
        };
        let slowest = received().max_by(|(number, one), (other_number, other)| {
            let ((crowd, behind), (other_crowd, other_behind)) = (rank(one), rank(other));
            // The older one of two that have sent the same.
            crowd.cmp(&other_crowd).then(behind.total_cmp(&other_behind)).then(other_number.cmp(number))
        });
        slowest.map(|(number, _)| *number)
    }
}

/// A body that is being received, until it is dropped.
#[derive(Debug)]
pub(in crate::server) struct Reception {
    bodies: Arc<Bodies>,
    number: u64,
    stopped: oneshot::Receiver<Shortage>,
}

impl Reception {
    /// Notes bytes that have come. Returns the error if there is no memory for them.
    pub(in crate::server) fn grow(&self, bytes: usize) -> Result<(), ApiError> {
        let mut table = self.bodies.table.lock();
        table.grow(self.number, bytes);
        let shortage = table.make_room(self.bodies.limits, self.number);
        shortage.map_or(Ok(()), |shortage| Err(shortage.error()))
    }

    /// Completes when the body must end, because others need its room.
    pub(in crate::server) async fn stopped(&mut self) -> ApiError {
        (&mut self.stopped).await.unwrap_or(Shortage::All).error()
    }

    /// The body is there. It keeps its memory, and cannot be ended any more.
    pub(super) fn complete(&self) {
        self.bodies.table.lock().complete(self.number);
    }
}

impl Drop for Reception {
    fn drop(&mut self) {
        self.bodies.table.lock().remove(self.number);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// Sixteen bodies of 100 bytes each: an owner has four bodies, and 400 bytes.
    fn bodies() -> Arc<Bodies> {
        Arc::new(Bodies::new(BodyLimits { most: 16, bytes: 1600 }))
    }

    fn owner(name: &str) -> Sender {
        Sender::Owner(Id::new(name))
    }

    fn subnet(last: u8) -> Sender {
        Sender::Subnet(Some(IpAddr::from([192, 0, 2, last])))
    }

    /// The code that a body was ended with, if it was.
    fn ended(reception: &mut Reception) -> Option<Code> {
        reception.stopped.try_recv().ok().map(|shortage| shortage.error().code())
    }

    #[tokio::test(start_paused = true)]
    async fn the_slowest_body_of_an_owner_goes_first() {
        let bodies = bodies();
        let mut held: Vec<Reception> = (0..4).map(|_| Bodies::begin(&bodies, owner("usr_a")).unwrap()).collect();
        let mut other = Bodies::begin(&bodies, owner("usr_b")).unwrap();
        tokio::time::advance(Duration::from_micros(50)).await;
        for (number, reception) in held.iter().enumerate() {
            reception.grow(if number == 2 { 1 } else { 40 }).unwrap();
        }
        let newest = Bodies::begin(&bodies, owner("usr_a")).unwrap();
        let reasons: Vec<_> = held.iter_mut().map(ended).collect();
        assert_eq!(reasons, [None, None, Some(Code::RateLimited), None]);
        assert_eq!((ended(&mut other), bodies.count()), (None, 5));
        drop((held, other, newest));
        let table = bodies.table.lock();
        assert_eq!((table.all, table.shares.len()), (BodyTotals::default(), 0));
    }

    #[tokio::test(start_paused = true)]
    async fn clients_without_a_token_have_one_share_and_the_address_with_the_most_loses_first() {
        let bodies = bodies();
        let mut forge = Bodies::begin(&bodies, subnet(1)).unwrap();
        let mut owned = Bodies::begin(&bodies, owner("usr_a")).unwrap();
        tokio::time::advance(Duration::from_secs(1)).await;
        let mut flood: Vec<Reception> = (0..50).map(|_| Bodies::begin(&bodies, subnet(2)).unwrap()).collect();
        let ended_of_flood = flood.iter_mut().filter_map(ended).collect::<Vec<_>>();
        assert_eq!(ended_of_flood, vec![Code::Unavailable; 47]);
        assert_eq!((ended(&mut forge), ended(&mut owned), bodies.count()), (None, None, 5));
    }

    #[tokio::test(start_paused = true)]
    async fn memory_counts_until_the_request_is_answered() {
        let bodies = bodies();
        let worked_on = Bodies::begin(&bodies, owner("usr_a")).unwrap();
        worked_on.grow(390).unwrap();
        worked_on.complete();
        let growing = Bodies::begin(&bodies, owner("usr_a")).unwrap();
        assert_eq!(growing.grow(11).unwrap_err().code(), Code::RateLimited);
        assert!(Bodies::begin(&bodies, owner("usr_b")).unwrap().grow(11).is_ok());
        drop(worked_on);
        let again = Bodies::begin(&bodies, owner("usr_a")).unwrap();
        assert!(again.grow(400).is_ok());
    }
}
