//! The limit of requests that are handled at a time (D98): overload sheds new ones early, and answers those it took.
//!
//! A server that takes every request answers all of them too late, and clients that give up and ask again make it worse. So
//! what is over the limit gets 503 before its token is checked and its body is read, which costs next to nothing.
//!
//! A request has its place while the server works for it, and gives it back while it waits for the client's body, or for a
//! revision: clients that send slowly hold no place. It counts for nobody until its token is known, and for the owner from then on; while more
//! than half of the places are taken, an owner with a quarter of them gets no more. The place follows the task of the
//! request, so that whoever learns of the owner, or reads the body, need not be given it.

use std::cell::{Cell, OnceCell, RefCell};

use super::bodies::{Bodies, BodyLimits, RETRY_AFTER, Reception, SHED, Sender};
use super::slots::admissions::requests;
use super::slots::{NoPlace, Slots, WorkPlace};
use crate::server::http::api_error::ApiError;
use crate::server::prelude::*;
use crate::server::telemetry::request_labels::PROBES;

/// The default limit. A request that is handled costs little but its body, and those have limits of their own.
pub(crate) const DEFAULT_IN_FLIGHT: usize = 1024;

tokio::task_local! {
    static PLACE: RequestPlace;
}

/// Counts the requests that are being handled.
pub(crate) struct InFlight {
    requests: Slots,
    /// Probes, which are always answered and never cause others to be shed.
    probes: Slots,
    bodies: Arc<Bodies>,
}

/// The place of a request, until it is dropped.
pub(in crate::server) struct RequestPlace {
    limit: Arc<InFlight>,
    is_exempt: bool,
    /// Where the request comes from.
    subnet: Option<IpAddr>,
    owner: OnceCell<Id>,
    /// Whether the request was taken from the limit of its key.
    is_counted: Cell<bool>,
    /// None while the body is received, or a revision is waited for.
    place: RefCell<Option<WorkPlace>>,
    /// The memory of the body, which counts until the request is answered.
    body: Cell<Option<Reception>>,
}

impl InFlight {
    /// Creates a limit of requests, and of bodies that are received beside them.
    pub(super) fn new(most: usize, bodies: BodyLimits) -> Arc<Self> {
        Arc::new(Self {
            requests: Slots::new(requests(most)),
            probes: Slots::new(requests(usize::MAX)),
            bodies: Arc::new(Bodies::new(bodies)),
        })
    }

    /// Takes a place for a request, or returns the error for a client that must retry.
    pub(in crate::server) fn enter(
        self: &Arc<Self>,
        path: &str,
        subnet: Option<IpAddr>,
    ) -> Result<RequestPlace, ApiError> {
        let place = RequestPlace {
            limit: Arc::clone(self),
            is_exempt: PROBES.contains(&path),
            subnet,
            owner: OnceCell::new(),
            is_counted: Cell::new(false),
            place: RefCell::new(None),
            body: Cell::new(None),
        };
        place.take()?;
        Ok(place)
    }

    /// The number of requests that are being handled.
    pub(in crate::server) fn count(&self) -> usize {
        self.requests.running() + self.probes.running()
    }

    /// The number of bodies that are being received.
    pub(in crate::server) fn bodies(&self) -> usize {
        self.bodies.count()
    }

    fn shed(&self, refusal: &NoPlace) -> ApiError {
        metrics::counter!(SHED).increment(1);
        let most = self.requests.most();
        match refusal {
            NoPlace::Full(_) => {
                let message = format!("the server is already handling {}", number_of(most, "request"));
                ApiError::with_code(Code::Unavailable, message).retry_after(RETRY_AFTER)
            }
            NoPlace::Owner(counts) => {
                let count = counts.running;
                let message = format!(
                    "the owner of the API key has {count} of the server's {most} concurrent requests, which is its share \
                     while more than half of them are taken"
                );
                ApiError::with_code(Code::RateLimited, message).retry_after(RETRY_AFTER)
            }
        }
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

    /// Notes that the current request is taken from the limit of its key. Returns whether it was before.
    pub(super) fn was_counted() -> bool {
        PLACE.try_with(|place| place.is_counted.replace(true)).unwrap_or(false)
    }

    /// Gives the place of the current request back while it waits, until [`Self::come_back`].
    pub(in crate::server) fn leave() {
        let _ = PLACE.try_with(|place| place.place.borrow_mut().take());
    }

    /// Takes a place again, or returns the error for a client that must retry.
    pub(in crate::server) fn come_back() -> Result<(), ApiError> {
        PLACE.try_with(RequestPlace::take).unwrap_or(Ok(()))
    }

    /// Begins to receive the body of the current request, which has no place until [`Self::end_receiving`]. Outside a request,
    /// which only a bug causes, it fails with an internal error.
    pub(in crate::server) fn begin_receiving() -> Result<Reception, ApiError> {
        PLACE.try_with(RequestPlace::begin_body).unwrap_or_else(|_| Err(ApiError::internal()))
    }

    /// Takes a place again once the body is there, or returns the error for a client that must retry.
    pub(in crate::server) fn end_receiving(reception: Reception) -> Result<(), ApiError> {
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
            None => Sender::Subnet(self.subnet),
        };
        let reception = Bodies::begin(&self.limit.bodies, sender)?;
        *self.place.borrow_mut() = None;
        Ok(reception)
    }

    fn take(&self) -> Result<(), ApiError> {
        let slots = if self.is_exempt { &self.limit.probes } else { &self.limit.requests };
        let place = slots.anonymous().map_err(|refusal| self.limit.shed(&refusal))?;
        *self.place.borrow_mut() = Some(place);
        self.owner.get().map_or(Ok(()), |owner| self.count_owner(owner))
    }

    fn count_owner(&self, owner: &Id) -> Result<(), ApiError> {
        if let Some(place) = self.place.borrow_mut().as_mut() {
            place.assign(owner).map_err(|refusal| self.limit.shed(&refusal))?;
        }
        let _ = self.owner.set(owner.clone());
        Ok(())
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
        let probes: Vec<_> = PROBES.iter().map(|path| enter(path)).collect();
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

    #[tokio::test]
    async fn a_request_has_no_place_while_it_waits_and_counts_once() {
        let limit = limit(1);
        let waiting = limit.enter("/edges/https", None).unwrap();
        let handling = async {
            assert_eq!([RequestPlace::was_counted(), RequestPlace::was_counted()], [false, true]);
            RequestPlace::leave();
            let other = limit.enter("/edges/https", None).unwrap();
            assert_eq!(RequestPlace::come_back().unwrap_err().code(), Code::Unavailable);
            drop(other);
            assert!(RequestPlace::come_back().is_ok());
            assert_eq!(limit.count(), 1);
        };
        waiting.hold(handling).await;
        assert_eq!((limit.count(), RequestPlace::was_counted()), (0, false));
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
        assert!(enter("usr_a").is_ok());
        assert_eq!(limit.count(), 0);
    }
}
