//! What is done to a store as a whole, mostly by commands: backups and restores, checks and repairs (D100), other keys and
//! the destruction of former ones (D96), and the removal of tokens from the history (D23).

pub(crate) mod backup;
pub(crate) mod backup_read;
pub(crate) mod backup_write;
pub(crate) mod check;
pub(crate) mod inspect;
mod loss_report;
pub(crate) mod rekey;
pub(crate) mod repair;
pub(crate) mod resealing;
pub(crate) mod restore;
mod salvage;
pub(crate) mod scrub;
