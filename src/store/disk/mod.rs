//! Files of a store, without what they mean: how they are created, locked, synced and replaced.

pub(crate) mod files;
pub(crate) mod lock_wait;
pub(crate) mod probe;
pub(crate) mod sidecar_files;
pub(crate) mod temp_dir;
