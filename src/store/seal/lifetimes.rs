//! How long data keys encrypt and decrypt (D96).

use jiff::SignedDuration;
use serde::{Deserialize, Serialize};

/// How long a data key encrypts, unless the store has another time.
const ENCRYPTS_DAYS: u32 = 7;
/// How long a former data key decrypts, unless the store has another time: earlier states have their secrets for this long.
const DECRYPTS_DAYS: u32 = 30;
/// The most days: ten years.
pub(crate) const MOST_DAYS: u32 = 3650;

/// The lifetimes of data keys, in days. The file of the keyring has them, so that a command without the options does not
/// destroy what a server is to keep.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct KeyLifetimes {
    /// How long a data key encrypts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) encrypts: Option<u32>,
    /// How long a former data key decrypts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) decrypts: Option<u32>,
}

impl KeyLifetimes {
    /// Whether no lifetime was set.
    pub(super) fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// Adds the lifetimes of `former` where none is set.
    pub(super) fn with_defaults(self, former: Self) -> Self {
        Self { encrypts: self.encrypts.or(former.encrypts), decrypts: self.decrypts.or(former.decrypts) }
    }

    /// How long a data key encrypts.
    pub(super) fn encrypts_for(&self) -> SignedDuration {
        days(self.encrypts.unwrap_or(ENCRYPTS_DAYS))
    }

    /// How long a former data key decrypts.
    pub(super) fn decrypts_for(&self) -> SignedDuration {
        days(self.decrypts.unwrap_or(DECRYPTS_DAYS))
    }
}

/// The file may be from elsewhere, so its numbers have a limit, too.
fn days(days: u32) -> SignedDuration {
    SignedDuration::from_hours(24 * i64::from(days.min(MOST_DAYS)))
}
