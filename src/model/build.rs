//! The build of the program. `src/build.rs` determines the values.

/// The version with the commit and its date, as far as the build knows them: `0.1.0 (5f3a2b1c9d0e 2026-11-22)`.
pub(crate) const VERSION: &str = env!("EDGEWRIGHT_BUILD_VERSION");

/// Returns the commit that the program was built from, if the build knows it.
pub(crate) fn commit() -> Option<&'static str> {
    Some(env!("EDGEWRIGHT_BUILD_COMMIT")).filter(|commit| !commit.is_empty())
}
