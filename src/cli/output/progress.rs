//! Progress on stderr for work that takes more than a second: a spinner on a terminal, plain lines elsewhere.

use crate::cli::prelude::*;
use std::io::{IsTerminal, Write};
use std::sync::mpsc::{RecvTimeoutError, channel};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Shorter work shows no progress.
const DELAY: Duration = Duration::from_secs(1);
/// The interval of plain lines.
const PLAIN: Duration = Duration::from_secs(10);

/// Runs `work`, with `what` as the progress message.
pub(crate) fn during<T>(what: &str, work: impl FnOnce() -> T) -> T {
    let began = Instant::now();
    let (done, waiting) = channel::<()>();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            if waiting.recv_timeout(DELAY) != Err(RecvTimeoutError::Timeout) {
                return;
            }
            if std::io::stderr().is_terminal() {
                let bar =
                    ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr()).with_elapsed(began.elapsed());
                if let Ok(style) = ProgressStyle::with_template("{spinner} {msg} {elapsed}") {
                    bar.set_style(style);
                }
                bar.set_message(format!("{what} …"));
                bar.enable_steady_tick(Duration::from_millis(100));
                let _ = waiting.recv();
                bar.finish_and_clear();
                return;
            }
            loop {
                let _ = writeln!(std::io::stderr(), "{what} … {} s", began.elapsed().as_secs());
                if waiting.recv_timeout(PLAIN) != Err(RecvTimeoutError::Timeout) {
                    return;
                }
            }
        });
        let result = work();
        drop(done);
        result
    })
}
