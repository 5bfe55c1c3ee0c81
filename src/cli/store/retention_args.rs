//! The options of the time for which a store keeps changed and deleted secrets (D96).

use crate::cli::prelude::*;
use crate::store::seal::{KeyLifetimes, MOST_DAYS};

/// The lifetimes of data keys. The store remembers them: a command without these options does not change them.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct SecretDays {
    /// Number of days after which the secrets in the store are encrypted with a new data key.
    ///
    /// The store remembers the number (7 if none was set).
    #[arg(help_heading = help::STORE, long, value_name = "DAYS", env = "EDGEWRIGHT_DATA_KEY_DAYS", value_parser = days,
        hide_short_help = true)]
    data_key_days: Option<u32>,
    /// Number of days for which a former data key decrypts the secrets of earlier revisions.
    ///
    /// The store remembers the number (30 if none was set).
    #[arg(help_heading = help::STORE, long, value_name = "DAYS", env = "EDGEWRIGHT_SECRET_DAYS", value_parser = days,
        hide_short_help = true)]
    secret_days: Option<u32>,
}

impl SecretDays {
    /// The lifetimes that are set.
    pub(super) fn lifetimes(&self) -> KeyLifetimes {
        KeyLifetimes { encrypts: self.data_key_days, decrypts: self.secret_days }
    }
}

fn days(text: &str) -> Result<u32, String> {
    let days = text.parse::<u32>().ok().filter(|days| (1..=MOST_DAYS).contains(days));
    days.ok_or_else(|| format!("expected a number of days from 1 to {MOST_DAYS}"))
}
