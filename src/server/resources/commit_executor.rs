//! Commits of requests: one thread puts them into the queue of the store, and another one waits for the disk. If each request
//! had a thread for this, changing from one to the next would take longer than the commits.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;
use std::sync::mpsc::{SendError, Sender, channel};
use std::thread;

use tokio::sync::oneshot;

/// Puts a commit into the queue.
type Enter = Box<dyn FnOnce() -> Settle + Send>;
/// Waits until it is durable, and answers the request.
type Settle = Box<dyn FnOnce() + Send>;

/// The commits of requests. Its threads start with the first one.
#[derive(Default)]
pub(crate) struct CommitExecutor(OnceLock<Option<Sender<Enter>>>);

impl CommitExecutor {
    /// Runs `enter`, and then `settle` on its result. Both happen even if the client disconnects. A commit that is not
    /// `quick` gets a thread of its own, because others would wait for it. Returns none if one of the two panics.
    pub(super) async fn commit<P: Send + 'static, T: Send + 'static>(
        &self,
        quick: bool,
        enter: impl FnOnce() -> P + Send + 'static,
        settle: impl FnOnce(P) -> T + Send + 'static,
    ) -> Option<T> {
        let (sender, answer) = oneshot::channel();
        let enter: Enter = Box::new(move || -> Settle {
            let entered = enter();
            Box::new(move || {
                let _ = sender.send(settle(entered));
            })
        });
        let threads = if quick { self.0.get_or_init(start).as_ref() } else { None };
        let unsent = match threads {
            Some(threads) => threads.send(enter).err().map(|SendError(enter)| enter),
            None => Some(enter),
        };
        if let Some(enter) = unsent {
            drop(tokio::task::spawn_blocking(move || enter()()));
        }
        answer.await.ok()
    }
}

/// Starts the threads, which end when the executor is dropped. Returns none if the system has no threads left.
fn start() -> Option<Sender<Enter>> {
    let (entering, requests) = channel::<Enter>();
    let (settling, entered) = channel::<Settle>();
    let settle_all = move || {
        for settle in entered {
            // The request of one that panics is told by its channel.
            let _ = catch_unwind(AssertUnwindSafe(settle));
        }
    };
    let enter_all = move || {
        for enter in requests {
            if let Ok(settle) = catch_unwind(AssertUnwindSafe(enter))
                && let Err(SendError(settle)) = settling.send(settle)
            {
                settle();
            }
        }
    };
    thread::Builder::new().name("durable".into()).spawn(settle_all).ok()?;
    thread::Builder::new().name("commits".into()).spawn(enter_all).ok()?;
    Some(entering)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic)]
mod tests {
    use std::sync::{Arc, Mutex};
    use std::thread::ThreadId;

    use super::*;

    fn this_thread() -> ThreadId {
        thread::current().id()
    }

    #[tokio::test]
    async fn commits_share_threads_and_enter_in_order_while_others_wait_for_the_disk() {
        let (executor, order) = (CommitExecutor::default(), Arc::new(Mutex::new(Vec::new())));
        let (go, disk) = channel();
        let disk = Mutex::new(disk);
        let one = |number: u32, wait: Box<dyn FnOnce() + Send>| {
            let order = Arc::clone(&order);
            let enter = move || {
                order.lock().unwrap().push(number);
                this_thread()
            };
            executor.commit(true, enter, move |entered| {
                wait();
                (number, entered, this_thread())
            })
        };
        let first = one(1, Box::new(move || disk.lock().unwrap().recv().unwrap()));
        let second = one(2, Box::new(|| {}));
        let unblock = async {
            // The second one enters although the first one is not durable.
            while order.lock().unwrap().len() < 2 {
                tokio::task::yield_now().await;
            }
            go.send(()).unwrap();
        };
        let (first, second, ()) = tokio::join!(first, second, unblock);
        let (first, second) = (first.unwrap(), second.unwrap());
        assert_eq!((first.0, second.0, order.lock().unwrap().as_slice()), (1, 2, [1, 2].as_slice()));
        assert_eq!((first.1, first.2), (second.1, second.2));
        assert!(first.1 != first.2 && first.1 != this_thread());
    }

    #[tokio::test]
    async fn a_commit_that_panics_stops_no_other() {
        let executor = CommitExecutor::default();
        for quick in [true, false] {
            let in_enter = executor.commit(quick, || -> u32 { panic!("for a test") }, |number| number).await;
            let in_settle = executor.commit(quick, || 1, |_| -> u32 { panic!("for a test") }).await;
            assert_eq!((in_enter, in_settle), (None, None));
            assert_eq!(executor.commit(quick, || 3, |number| number + 1).await, Some(4));
        }
    }
}
