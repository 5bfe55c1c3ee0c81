//! The limit of requests that are handled at a time (D98): overload sheds new ones early, and answers those it took.
//!
//! A request has its place while the server works for it, and gives it back while it waits for the client's body: clients
//! that send slowly hold no place. The place follows the task of the request, so that whoever learns of the owner, or reads
//! the body, need not be given it.

use std::{
    cell::{Cell, OnceCell},
    collections::HashMap,
    net::IpAddr,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use axum::http::{HeaderValue, header};

use super::{
    bodies::{Bodies, BodyLimits, Reception, Sender},
    guards::SHED,
    rates,
};
use crate::{
    model::{diagnostics::code::Code, id::Id},
    server::http::response::ApiError,
};

/// The default limit. A request that is handled costs little but its body, and those have limits of their own.
pub(crate) const DEFAULT_IN_FLIGHT: usize = 1024;
/// The Retry-After of a shed request, in seconds.
pub(super) const RETRY_AFTER: u64 = 1;
/// The part of all places that one owner has, and that all clients without a token have together.
pub(super) const SHARE: usize = 4;
/// What must be answered under any load: an orchestrator would restart an overloaded server, and nobody would see why.
const ALWAYS: [&str; 3] = ["/healthz", "/readyz", "/metrics"];

tokio::task_local! {
    static PLACE: RequestPlace;
}

/// Counts the requests that are being handled.
#[derive(Debug)]
pub(crate) struct InFlight {
    now: AtomicUsize,
    /// Those that are always answered. They are no reason to shed others.
    exempt: AtomicUsize,
    most: usize,
    /// The requests of each owner.
    owners: Mutex<HashMap<Id, usize>>,
    bodies: Arc<Bodies>,
}

/// The place of a request, until it is dropped.
pub(in crate::server) struct RequestPlace {
    limit: Arc<InFlight>,
    is_exempt: bool,
    /// Whether it is counted: it is not while the body is received.
    is_held: Cell<bool>,
    /// Where the request comes from.
    site: Option<IpAddr>,
    owner: OnceCell<Id>,
    /// Whether it counts for its owner.
    is_counted: Cell<bool>,
    /// The memory of the body, which counts until the request is answered.
    body: Cell<Option<Reception>>,
}

impl InFlight {
    /// Creates a limit of requests, and of bodies that are received beside them.
    pub(super) fn new(most: usize, bodies: BodyLimits) -> Arc<Self> {
        Arc::new(Self {
            now: AtomicUsize::new(0),
            exempt: AtomicUsize::new(0),
            most,
            owners: Mutex::default(),
            bodies: Arc::new(Bodies::new(bodies)),
        })
    }

    /// Takes a place for a request, or returns the error for a client that must retry.
    pub(in crate::server) fn enter(
        self: &Arc<Self>,
        path: &str,
        site: Option<IpAddr>,
    ) -> Result<RequestPlace, ApiError> {
        let place = RequestPlace {
            limit: Arc::clone(self),
            is_exempt: ALWAYS.contains(&path),
            is_held: Cell::new(false),
            site,
            owner: OnceCell::new(),
            is_counted: Cell::new(false),
            body: Cell::new(None),
        };
        place.take()?;
        Ok(place)
    }

    /// The number of requests that are being handled.
    pub(in crate::server) fn count(&self) -> usize {
        self.now.load(Ordering::Relaxed) + self.exempt.load(Ordering::Relaxed)
    }

    /// The number of bodies that are being received.
    pub(in crate::server) fn bodies(&self) -> usize {
        self.bodies.count()
    }

    fn owners(&self) -> MutexGuard<'_, HashMap<Id, usize>> {
        self.owners.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RequestPlace {
    /// Handles the request in its place.
    pub(in crate::server) async fn hold<A: Future>(self, handling: A) -> A::Output {
        PLACE.scope(self, handling).await
    }

    /// Notes the owner of the API key of the current request. An owner that has its share gets no more places while others
    /// need them. Without effect outside a request.
    pub(in crate::server) fn note_owner(owner: &Id) -> Result<(), ApiError> {
        PLACE.try_with(|place| place.count_owner(owner)).unwrap_or(Ok(()))
    }

    /// Begins to receive the body of the current request, which has no place until [`Self::received`]. None outside a
    /// request.
    pub(in crate::server) fn receive() -> Option<Result<Reception, ApiError>> {
        PLACE.try_with(RequestPlace::begin_body).ok()
    }

    /// Takes a place again once the body is there, or returns the error for a client that must retry.
    pub(in crate::server) fn received(reception: Reception) -> Result<(), ApiError> {
        let ended = PLACE.try_with(|place| {
            reception.complete();
            place.body.set(Some(reception));
            place.take()
        });
        ended.unwrap_or(Ok(()))
    }

    fn begin_body(&self) -> Result<Reception, ApiError> {
        let sender = match self.owner.get() {
            Some(owner) => Sender::Owner(owner.clone()),
            None => Sender::Site(self.site),
        };
        let reception = Bodies::begin(&self.limit.bodies, sender)?;
        self.give_back();
        Ok(reception)
    }

    fn counter(&self) -> &AtomicUsize {
        if self.is_exempt { &self.limit.exempt } else { &self.limit.now }
    }

    fn take(&self) -> Result<(), ApiError> {
        let most = self.limit.most;
        let before = self.counter().fetch_add(1, Ordering::Relaxed);
        self.is_held.set(true);
        if !self.is_exempt && before >= most {
            self.give_back();
            metrics::counter!(SHED).increment(1);
            let message = format!("the server handles {most} requests already");
            let wait = HeaderValue::from(RETRY_AFTER);
            return Err(ApiError::of(Code::Unavailable, message).with_header(header::RETRY_AFTER, wait));
        }
        self.owner.get().map_or(Ok(()), |owner| self.count_owner(owner))
    }

    fn give_back(&self) {
        if !self.is_held.replace(false) {
            return;
        }
        self.counter().fetch_sub(1, Ordering::Relaxed);
        let Some(owner) = self.owner.get().filter(|_| self.is_counted.replace(false)) else { return };
        let mut owners = self.limit.owners();
        if let Some(count) = owners.get_mut(owner) {
            *count -= 1;
            if *count == 0 {
                owners.remove(owner);
            }
        }
    }

    fn count_owner(&self, owner: &Id) -> Result<(), ApiError> {
        // A request that is checked again is counted already.
        if self.is_counted.get() {
            return Ok(());
        }
        let InFlight { now, most, .. } = &*self.limit;
        let is_short = now.load(Ordering::Relaxed) > most / 2;
        let mut owners = self.limit.owners();
        let count = owners.get(owner).copied().unwrap_or_default();
        if is_short && count >= (most / SHARE).max(1) {
            metrics::counter!(SHED).increment(1);
            let message = format!(
                "the owner of the API key has {count} requests of the {most} that the server handles, and others need them"
            );
            return Err(rates::too_many(&message, RETRY_AFTER));
        }
        *owners.entry(owner.clone()).or_default() += 1;
        self.is_counted.set(true);
        let _ = self.owner.set(owner.clone());
        Ok(())
    }
}

impl Drop for RequestPlace {
    fn drop(&mut self) {
        self.give_back();
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn limit(most: usize) -> Arc<InFlight> {
        InFlight::new(most, BodyLimits { most: 8, bytes: 1 << 20 })
    }

    #[test]
    fn a_request_over_the_limit_is_shed_and_a_probe_is_not() {
        let limit = limit(2);
        let enter = |path: &str| limit.enter(path, None);
        let held = (enter("/api_keys"), enter("/api_keys"));
        assert!(held.0.is_ok() && held.1.is_ok());
        let shed = enter("/api_keys").err().map(|error| error.code());
        assert_eq!((shed, limit.count()), (Some(Code::Unavailable), 2));
        let probes: Vec<_> = ALWAYS.iter().map(|path| enter(path)).collect();
        assert!(probes.iter().all(Result::is_ok));
        assert_eq!(limit.count(), 5);
        drop(held);
        // Probes that are on their way shed nothing.
        assert!(enter("/api_keys").is_ok());
        drop(probes);
        assert!(enter("/api_keys").is_ok());
        assert_eq!(limit.count(), 0);
    }

    #[test]
    fn a_request_has_no_place_while_its_body_comes() {
        let limit = limit(1);
        let slow = limit.enter("/trace", None).unwrap();
        let reception = slow.begin_body().unwrap();
        assert_eq!((limit.count(), limit.bodies()), (0, 1));
        let other = limit.enter("/trace", None).unwrap();
        assert_eq!(slow.take().unwrap_err().code(), Code::Unavailable);
        drop(other);
        assert!(slow.take().is_ok());
        drop((slow, reception));
        assert_eq!((limit.count(), limit.bodies()), (0, 0));
    }

    #[test]
    fn an_owner_with_its_share_gets_no_more_while_others_need_places() {
        let limit = limit(8);
        let enter = |owner: &str| {
            let place = limit.enter("/edges/https", None)?;
            place.count_owner(&Id::new(owner)).map(|()| place)
        };
        let mut held: Vec<_> = (0..4).map(|_| enter("usr_a").unwrap()).collect();
        assert_eq!(enter("usr_a").err().unwrap().code(), Code::RateLimited);
        held.extend((0..2).map(|_| enter("usr_b").unwrap()));
        assert_eq!(enter("usr_b").err().unwrap().code(), Code::RateLimited);
        assert!(enter("usr_c").is_ok());
        drop(held);
        assert!(enter("usr_a").is_ok() && limit.owners().is_empty());
    }
}
