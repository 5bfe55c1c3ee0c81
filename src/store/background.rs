//! The priority of work that nobody waits for within milliseconds: planning, applying, and what the store does behind
//! commits, beside the requests of a server.

/// How much lower the priority is, in nice levels: requests get nearly all of a processor that both need.
#[cfg(target_os = "linux")]
const NICE: i32 = 10;

/// Lowers the priority of this thread. Only Linux has a priority for each thread; elsewhere nothing happens.
pub(crate) fn lower_priority() {
    // Without it, requests only wait longer.
    #[cfg(target_os = "linux")]
    let _ = rustix::process::setpriority_process(None, NICE);
}

/// Lowers the priority of the threads that share the work of a run. Has no effect if they were used before.
pub(crate) fn lower_priority_of_pool() {
    let _ = rayon::ThreadPoolBuilder::new().start_handler(|_| lower_priority()).build_global();
}
