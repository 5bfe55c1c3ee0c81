//! Runs the binary of this build as a user does: a line of arguments in a folder, and `serve` in the background.

mod folder;
mod run;
mod serve;

use std::time::{Duration, Instant};

pub(crate) use folder::{Folder, MadeFolder, beside, copy, run_in_repository};
pub(crate) use run::{Run, finish, has, on_terminal};
pub(crate) use serve::Serve;

/// The binary under test.
pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_edgewright");
/// The repository.
pub(crate) const REPOSITORY: &str = env!("CARGO_MANIFEST_DIR");
/// A folder of the user for configuration that cannot be created.
pub(crate) const NO_CONFIG: &str = "/dev/null";
/// The configuration file, which the program finds in its working folder.
pub(crate) const CONFIG: &str = "edgewright.config.yaml";
/// Names a configuration file. An empty variable is unset.
pub(crate) const CONFIG_VARIABLE: &str = "EDGEWRIGHT_CONFIG";
/// Has the allocator do without pages of two megabytes: clearing them is a tenth of the work of a short process.
pub(crate) const SMALL_PAGES: (&str, &str) = ("MIMALLOC_ALLOW_THP", "0");
/// How long something may take that takes a moment; a test that reaches it fails.
pub(super) const PATIENCE: Duration = Duration::from_secs(20);

/// Looks again and again until there is something, and fails after a while.
pub(crate) fn until<T>(what: &str, look: impl FnMut() -> Option<T>) -> T {
    within(PATIENCE, what, look)
}

/// The same for what has to come within a time.
pub(crate) fn within<T>(time: Duration, what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let since = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        let waited = since.elapsed();
        assert!(waited < time, "waited in vain for {what}");
        // What takes long is looked at less often.
        std::thread::sleep((waited / 10).clamp(Duration::from_millis(5), Duration::from_millis(40)));
    }
}

/// How much of something slow a test does: `usual` in `cargo test`, and `long` with `EDGEWRIGHT_LONG=1`, as in `.ci/run`.
pub(crate) fn rounds<T>(usual: T, long: T) -> T {
    if std::env::var("EDGEWRIGHT_LONG").is_ok_and(|value| value == "1") { long } else { usual }
}

/// The number in an environment variable, or the usual one.
pub(crate) fn number_in(variable: &str, usual: u64) -> u64 {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(usual)
}

/// Whether nginx and the Python of the examples can run here. If not, says what is left out.
pub(crate) fn has_nginx(what: &str) -> bool {
    let check = "command -v nginx && python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))'";
    let found =
        std::process::Command::new("sh").args(["-c", check]).output().is_ok_and(|output| output.status.success());
    if !found {
        eprintln!("skipped without nginx and Python 3.11: {what}");
    }
    found
}
