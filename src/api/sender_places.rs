//! Places of which one address has only a few: clients that nobody has authenticated must leave some to others (D90).

use std::{
    collections::HashMap,
    net::IpAddr,
    sync::{Arc, Mutex, PoisonError},
};

use axum::http::header;

use super::answer::ApiError;
use crate::model::code::Code;

/// The Retry-After of a refused request, in seconds.
const RETRY_AFTER: &str = "5";

/// Counts the places of each address.
pub(super) struct SenderPlaces {
    most: usize,
    taken: Arc<Mutex<HashMap<IpAddr, usize>>>,
}

/// A place of an address, until it is dropped.
pub(super) struct SenderPlace {
    taken: Arc<Mutex<HashMap<IpAddr, usize>>>,
    sender: IpAddr,
}

impl SenderPlaces {
    /// Creates a limit of places for each address.
    pub(super) fn new(most: usize) -> Self {
        Self { most, taken: Arc::default() }
    }

    /// Takes a place, or returns the error for a client that must retry. Loopback addresses have no limit: a proxy that is not
    /// known as one sends everything from there.
    pub(super) fn place(&self, sender: Option<IpAddr>) -> Result<Option<SenderPlace>, ApiError> {
        let Some(sender) = sender.filter(|sender| !sender.is_loopback()) else { return Ok(None) };
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let places = taken.entry(sender).or_default();
        if *places >= self.most {
            let message = format!("{} other large webhooks from this address are being received", self.most);
            return Err(ApiError::of(Code::Unavailable, message).header(header::RETRY_AFTER, RETRY_AFTER));
        }
        *places += 1;
        Ok(Some(SenderPlace { taken: Arc::clone(&self.taken), sender }))
    }
}

impl Drop for SenderPlace {
    fn drop(&mut self) {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(places) = taken.get_mut(&self.sender) {
            *places -= 1;
            if *places == 0 {
                taken.remove(&self.sender);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_some_places_and_leaves_the_others() {
        let places = SenderPlaces::new(2);
        let of = |last: u8| places.place(Some(IpAddr::from([192, 0, 2, last])));
        let held = (of(1), of(1));
        assert!(held.0.is_ok() && held.1.is_ok());
        assert_eq!(of(1).err().map(|error| error.code()), Some(Code::Unavailable));
        assert!(of(2).is_ok());
        drop(held);
        assert!(of(1).is_ok());
        assert!(places.taken.lock().is_ok_and(|taken| taken.is_empty()), "nothing is remembered");
        for free in [None, Some(IpAddr::from([127, 0, 0, 1]))] {
            assert!(places.place(free).is_ok_and(|place| place.is_none()));
        }
    }
}
