//! Files of a store, without what they mean: how they are created, locked, synced and replaced.
//!
//! A file of a store is private to its owner, is never a link or a device, and is complete or missing: it is written beside
//! its name, synced, renamed, and then its folder is synced (`files`). What is beside the store but no part of it can be lost
//! at any time (`sidecar_files`). One process writes to a folder, or several read it (`folder_lock`); a lock that a process
//! which has just ended seems to hold is waited for (`lock_wait`). A look at a path says whether a store can be created there
//! (`existing_store`). Nothing here knows what is in a file.

pub(crate) mod existing_store;
pub(crate) mod files;
pub(crate) mod folder_lock;
pub(crate) mod lock_wait;
pub(crate) mod sidecar_files;
pub(crate) mod temp_dir;
