//! Fail points: the places at which a test can make the disk fail, kill the process or set the clock. There is one before
//! every write, sync, rename and removal of the store's files. Only builds for tests have them: the feature that turns them
//! on is one of the development dependencies.

use std::{fs::File, io, os::unix::fs::FileExt};

use rustix::io::Errno;
use rustix::process::{Signal, getpid, kill_process};

/// The actions of a fail point, by the name that the variable `FAILPOINTS` gives it: `journal.sync=return(kill)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FaultAction {
    /// The operation fails, with an error of the operating system.
    Fail(Errno),
    /// The process dies as from `kill -9`.
    Kill,
    /// A write stops after its first half, and the disk is full.
    Short,
    /// A write stops after its first half, because the process dies.
    Torn,
}

impl FaultAction {
    fn named(name: &str) -> Self {
        match name {
            "kill" => FaultAction::Kill,
            "short" => FaultAction::Short,
            "torn" => FaultAction::Torn,
            "full" => FaultAction::Fail(Errno::NOSPC),
            "readonly" => FaultAction::Fail(Errno::ROFS),
            "descriptors" => FaultAction::Fail(Errno::MFILE),
            _ => FaultAction::Fail(Errno::IO),
        }
    }

    /// Carries out what does not need the operation.
    fn perform(self) -> io::Error {
        match self {
            FaultAction::Fail(error) => error.into(),
            FaultAction::Short => Errno::NOSPC.into(),
            FaultAction::Kill | FaultAction::Torn => {
                let _ = kill_process(getpid(), Signal::KILL);
                Errno::INTR.into()
            }
        }
    }
}

/// Returns what a test has set for a point, which may depend on how often it was reached.
fn set(point: &str) -> Option<String> {
    match fail::has_failpoints() {
        true => fail::eval(point, |given| given).flatten(),
        false => None,
    }
}

/// Passes a fail point.
pub(crate) fn point(name: &str) -> io::Result<()> {
    set(name).map_or(Ok(()), |given| Err(FaultAction::named(&given).perform()))
}

/// Writes bytes at an offset, after a fail point.
pub(crate) fn write_all_at(point: &str, file: &File, bytes: &[u8], offset: u64) -> io::Result<()> {
    let Some(action) = set(point).map(|given| FaultAction::named(&given)) else {
        return file.write_all_at(bytes, offset);
    };
    if matches!(action, FaultAction::Short | FaultAction::Torn) {
        file.write_all_at(bytes.get(..bytes.len() / 2).unwrap_or_default(), offset)?;
    }
    Err(action.perform())
}

/// Returns how many seconds a test has set the clock forward, or back if negative.
pub(crate) fn clock_jump() -> i64 {
    set("clock").and_then(|seconds| seconds.parse().ok()).unwrap_or_default()
}

/// Returns the least size of a log for a checkpoint, if a test sets one: with few bytes, checkpoints are frequent.
pub(crate) fn checkpoint_bytes() -> Option<u64> {
    set("checkpoint.bytes").and_then(|bytes| bytes.parse().ok())
}

/// Reads the fail points that a test sets, for as long as the returned value lives.
pub(crate) fn faults() -> Option<impl Drop> {
    fail::has_failpoints().then(fail::FailScenario::setup)
}
