//! Secrets at rest (D96): data keys encrypt them, and a master key, which is kept elsewhere, wraps the data keys.
//!
//! # The problem
//!
//! The private key of a certificate leaked, and was replaced. The former one is in the log, because a rollback must be able
//! to bring it back; in a state that was replaced; in every backup since; and in blocks of the disk that no file has any
//! more. None of these can be overwritten. But it must be gone at some time, and whoever finds a disk or a backup must read
//! neither the former key nor the new one.
//!
//! # The idea
//!
//! What cannot be deleted is encrypted, and its key is deleted. Every secret in every file is encrypted with a *data key*.
//! Data keys live in one small file, `keys`, wrapped by the *master key*, which is not in the store. A data key encrypts for
//! some days, and then only decrypts, until it is destroyed: with it go all secrets that it encrypted, wherever their copies
//! are.
//!
//! ```text
//! day 0    key A encrypts
//! day 7    key B encrypts; a checkpoint writes the state again, with B. A still decrypts former values in the log
//! day 14   key C …
//! day 37   A is destroyed: removed from `keys` and its copy. Nobody can read what it encrypted, wherever that is
//! ```
//!
//! A leak does not wait: `store rekey --forget-secrets` destroys all former keys at once. The master key can change without
//! any record, because only `keys` is written again.
//!
//! # What is bound
//!
//! [`Keyring::seal`] and [`Keyring::open`] are all that the rest of the store needs. What is sealed is bound to the store and
//! to what the caller names: the key of the record, and the rest of its Spec. Moved to another record, it does not open. A
//! digest beside each secret, whose key comes from the root secret and thus outlives data keys, says whether two secrets are
//! the same after both are lost.
//!
//! # What it never does
//!
//! The master key is never written to a file of the store, unless there is no other place, and never logged; neither is what
//! a key command prints. A key is never destroyed while the state, or the log from which it could be rebuilt, needs it. A
//! wrong master key changes nothing. What is destroyed keeps its ID, so that it is told from damage.

pub(crate) mod cipher;
pub(crate) mod command;
mod form;
mod ids;
mod keyring;
mod keys_file;
mod lifetimes;
mod master;
mod sealed;
mod source;
#[cfg(test)]
mod tests;

#[cfg(test)]
pub(crate) use ids::id_of;
pub(crate) use ids::{KeyId, StoreId, name_of, store_named};
pub use keyring::Keyring;
pub(crate) use keyring::{FormerKey, NewMaster, NotOpened, ReadMaster, SaveKeys};
pub(crate) use keys_file::EncryptedKeys;
pub(crate) use lifetimes::{KeyLifetimes, MOST_DAYS};
pub(crate) use master::MasterKey;
pub(crate) use sealed::Sealed;
pub use source::MasterKeySource;
