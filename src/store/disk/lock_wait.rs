//! Waiting for a lock. The lock of a process that has just ended can still be held for a moment, by a child that it was
//! starting: until the child runs its own program, it has all files of its parent open.

use std::thread;
use std::time::{Duration, Instant};

/// How long a lock is waited for that its holder keeps for as long as it runs.
pub(crate) const MOMENT: Duration = Duration::from_millis(500);
/// The pause between two tries.
const PAUSE: Duration = Duration::from_millis(10);

/// Tries again for a while if another process holds a lock.
pub(crate) fn retry_while_locked<T, E>(
    timeout: Duration,
    is_held: impl Fn(&E) -> bool,
    lock: impl Fn() -> Result<T, E>,
) -> Result<T, E> {
    let started = Instant::now();
    loop {
        match lock() {
            Err(error) if is_held(&error) && started.elapsed() < timeout => thread::sleep(PAUSE),
            done => return done,
        }
    }
}
