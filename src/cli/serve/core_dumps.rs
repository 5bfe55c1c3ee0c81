//! No core dumps: they would have the secrets that are in memory.

use rustix::process::{Resource, Rlimit, setrlimit};

/// Limits core dumps to no bytes, also for children.
pub(crate) fn turn_off() {
    let _ = setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) });
}

/// Also turns off core dumps that a program receives through a pipe, to which no limit applies. Other processes of the same
/// user can no longer read this one's memory either.
pub(super) fn turn_off_for_server() {
    #[cfg(target_os = "linux")]
    let _ = rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable);
}
