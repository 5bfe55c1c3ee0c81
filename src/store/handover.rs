//! Hands values from one thread to another, one at a time. The channels of the standard library are made for many values:
//! each has two cache lines of its own, and a block for 31 messages. Every commit needs two channels, for one or two values.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// Gives values.
pub(super) struct Giver<T>(Arc<Handover<T>>);

/// Takes the values of a [`Giver`].
pub(super) struct Taker<T>(Arc<Handover<T>>);

struct Handover<T> {
    hands: Mutex<Hands<T>>,
    changed: Condvar,
}

struct Hands<T> {
    /// What was given and not taken yet.
    value: Option<T>,
    /// Whether one of the two is gone.
    is_closed: bool,
    /// How many threads wait for a change. Telling nobody would be a system call, too.
    waiting: usize,
}

/// Creates the two ends.
pub(super) fn handover<T>() -> (Giver<T>, Taker<T>) {
    let hands = Hands { value: None, is_closed: false, waiting: 0 };
    let shared = Arc::new(Handover { hands: Mutex::new(hands), changed: Condvar::new() });
    (Giver(Arc::clone(&shared)), Taker(shared))
}

impl<T> Handover<T> {
    /// Waits as long as a condition holds and both ends exist.
    fn wait_while(&self, condition: impl Fn(&Hands<T>) -> bool) -> MutexGuard<'_, Hands<T>> {
        let mut hands = self.hands.lock().unwrap_or_else(PoisonError::into_inner);
        while condition(&hands) && !hands.is_closed {
            hands.waiting += 1;
            hands = self.changed.wait(hands).unwrap_or_else(PoisonError::into_inner);
            hands.waiting -= 1;
        }
        hands
    }

    /// Ends a change.
    fn tell(&self, hands: MutexGuard<'_, Hands<T>>) {
        let is_awaited = hands.waiting > 0;
        drop(hands);
        if is_awaited {
            self.changed.notify_all();
        }
    }

    fn close(&self) {
        let mut hands = self.hands.lock().unwrap_or_else(PoisonError::into_inner);
        hands.is_closed = true;
        self.tell(hands);
    }
}

impl<T> Giver<T> {
    /// Gives a value, once the one before it is taken. Returns false if nobody will take it.
    pub(super) fn give(&self, value: T) -> bool {
        let mut hands = self.0.wait_while(|hands| hands.value.is_some());
        if hands.is_closed {
            return false;
        }
        hands.value = Some(value);
        self.0.tell(hands);
        true
    }
}

impl<T> Taker<T> {
    /// Waits for a value. Returns none if there will be none.
    pub(super) fn take(&self) -> Option<T> {
        let mut hands = self.0.wait_while(|hands| hands.value.is_none());
        let value = hands.value.take();
        self.0.tell(hands);
        value
    }
}

impl<T> Drop for Giver<T> {
    fn drop(&mut self) {
        self.0.close();
    }
}

impl<T> Drop for Taker<T> {
    fn drop(&mut self) {
        self.0.close();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_arrive_in_order_whoever_waits() {
        let (giver, taker) = handover();
        std::thread::scope(|scope| {
            // Each side waits for the other one again and again.
            scope.spawn(move || (0..1000).for_each(|number| assert!(giver.give(number))));
            let taken: Vec<u32> = std::iter::from_fn(|| taker.take()).collect();
            assert!(taken.into_iter().eq(0..1000));
        });
    }

    #[test]
    fn the_end_of_one_side_is_told_to_the_other() {
        let (giver, taker) = handover();
        assert!(giver.give(1));
        drop(giver);
        assert_eq!((taker.take(), taker.take()), (Some(1), None), "what was given is not lost");
        let (giver, taker) = handover();
        drop(taker);
        assert!(!giver.give(1));
        let (giver, taker) = handover::<u32>();
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| taker.take());
            drop(giver);
            assert_eq!(waiting.join().ok(), Some(None));
        });
    }
}
