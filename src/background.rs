//! Work that nobody waits for within milliseconds: planning, applying, and what the store does behind commits, beside the
//! requests of a server.

use std::cell::Cell;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};
use std::{io, thread};

/// How much lower the priority is, in nice levels: requests get nearly all of a processor that both need.
#[cfg(target_os = "linux")]
const NICE: i32 = 12;
/// The longest turn of a thread with a lower priority. The system looks only every few milliseconds who waits.
const LONGEST_TURN: Duration = Duration::from_micros(200);

/// Ends a thread when it is dropped.
pub(crate) struct ThreadGuard {
    _alive: Sender<()>,
}

impl ThreadGuard {
    /// Starts a thread. Its work gets what waits for a time, and then tells whether the thread goes on.
    pub(crate) fn start(name: &str, work: impl FnOnce(&dyn Fn(Duration) -> bool) + Send + 'static) -> io::Result<Self> {
        let (alive, ended) = channel::<()>();
        let goes_on = move |pause: Duration| ended.recv_timeout(pause) == Err(RecvTimeoutError::Timeout);
        thread::Builder::new().name(name.to_owned()).spawn(move || work(&goes_on))?;
        Ok(Self { _alive: alive })
    }
}

thread_local! {
    /// When this thread yielded the last time; none with the usual priority.
    static LAST_YIELD: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// Lowers the priority of this thread. Only Linux has a priority for each thread; elsewhere nothing happens.
pub(crate) fn lower_priority() {
    // Without it, requests only wait longer.
    #[cfg(target_os = "linux")]
    if rustix::process::setpriority_process(None, NICE).is_ok() {
        LAST_YIELD.set(Some(Instant::now()));
    }
}

/// Lowers the priority of the threads that share the work of a run. Has no effect if they were used before.
pub(crate) fn lower_priority_of_pool() {
    let _ = rayon::ThreadPoolBuilder::new().start_handler(|_| lower_priority()).build_global();
}

/// Lets requests go first that wait for the processor of a thread with a lower priority. Long loops call it for each item.
pub(crate) fn yield_to_requests() {
    if let Some(last) = LAST_YIELD.get()
        && last.elapsed() >= LONGEST_TURN
    {
        thread::yield_now();
        LAST_YIELD.set(Some(Instant::now()));
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn only_a_thread_with_a_lower_priority_gives_way() {
        let times = thread::spawn(|| {
            yield_to_requests();
            let usual = LAST_YIELD.get();
            lower_priority();
            let first = LAST_YIELD.get();
            yield_to_requests();
            let soon = LAST_YIELD.get();
            thread::sleep(LONGEST_TURN);
            yield_to_requests();
            (usual, first, soon, LAST_YIELD.get())
        });
        let (usual, first, soon, later) = times.join().unwrap_or_default();
        assert!(usual.is_none());
        assert!(first.is_some() && first <= soon && soon < later, "{first:?}, {soon:?}, {later:?}");
    }
}
