//! The options of commands that change a store: what it keeps of its history (D77) and of changed and deleted secrets (D96).

use crate::cli::prelude::*;
use crate::store::Retention;
use crate::store::seal::{KeyLifetimes, MOST_DAYS};

/// What a store keeps after a change. Commands that only read do not have these options.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct RetentionArgs {
    /// Maximum number of history records to keep after a change.
    #[arg(help_heading = help::RETENTION, hide_short_help = true)]
    #[arg(long, value_name = "N", env = "EDGEWRIGHT_HISTORY_RECORDS", default_value_t = 100_000)]
    history_records: u64,
    /// Maximum age of history records to keep after a change, in days.
    #[arg(help_heading = help::RETENTION, hide_short_help = true)]
    #[arg(long, value_name = "DAYS", env = "EDGEWRIGHT_HISTORY_DAYS", default_value_t = 730)]
    history_days: u32,
    /// Number of days after which the secrets in the store are encrypted with a new data key.
    ///
    /// The store remembers the number (7 if none was set).
    #[arg(help_heading = help::RETENTION, long, value_name = "DAYS", env = "EDGEWRIGHT_DATA_KEY_DAYS", value_parser = days,
        hide_short_help = true)]
    data_key_days: Option<u32>,
    /// Number of days for which a former data key decrypts the secrets of earlier revisions.
    ///
    /// The store remembers the number (30 if none was set).
    #[arg(help_heading = help::RETENTION, long, value_name = "DAYS", env = "EDGEWRIGHT_SECRET_DAYS", value_parser = days,
        hide_short_help = true)]
    secret_days: Option<u32>,
}

impl RetentionArgs {
    pub(super) fn retention(&self) -> Retention {
        let age = Duration::from_secs(u64::from(self.history_days) * 24 * 3600);
        Retention { records: self.history_records, age, ..Retention::default() }
    }

    /// The lifetimes of data keys that are set. The store remembers them: a command without these options does not change them.
    pub(super) fn lifetimes(&self) -> KeyLifetimes {
        KeyLifetimes { encrypts: self.data_key_days, decrypts: self.secret_days }
    }
}

fn days(text: &str) -> Result<u32, String> {
    let days = text.parse::<u32>().ok().filter(|days| (1..=MOST_DAYS).contains(days));
    days.ok_or_else(|| format!("expected a number of days from 1 to {MOST_DAYS}"))
}
