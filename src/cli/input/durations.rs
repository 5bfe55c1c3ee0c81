//! Durations as people write them.

use std::{ops::RangeInclusive, time::Duration};

use jiff::{Span, SpanRelativeTo};

/// The intervals between syncs, and the times for clients: the loop resolves its paths once a second, and lints depend on the
/// day.
pub(crate) const INTERVALS: RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_secs(24 * 3600);

/// Parses a duration: a number of seconds, or numbers with units such as `90s`, `5m`, `1h 30m` and `2d`.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let seconds = text.trim().parse::<u64>().ok().map(Duration::from_secs);
    let with_units = || {
        let days = SpanRelativeTo::days_are_24_hours();
        Duration::try_from(text.trim().parse::<Span>().ok()?.to_duration(days).ok()?).ok()
    };
    seconds.or_else(with_units).ok_or_else(|| "expected a duration such as 30s, 5m or 2h".to_owned())
}

/// Parses a duration that must have a unit: what somebody types in an incident may mean minutes or hours.
pub(crate) fn duration_with_unit(text: &str) -> Result<Duration, String> {
    match text.trim().parse::<u64>() {
        Ok(_) => Err("add a unit, such as 2h, 5m or 30s".to_owned()),
        Err(_) => duration(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_has_a_unit_or_is_in_seconds() {
        let seconds = |text: &str| duration(text).map(|found| found.as_secs()).ok();
        assert_eq!(["45", "45s", "5m", "2h", "1h 30m"].map(seconds), [45, 45, 300, 7200, 5400].map(Some));
        assert_eq!(["2d", "1d 1h", "1w"].map(seconds), [172_800, 90_000, 604_800].map(Some));
        for other in ["", "-5s", "soon", "5 parsecs", "1 month", "2y"] {
            assert_eq!(seconds(other), None, "{other}");
        }
    }

    #[test]
    fn what_people_type_has_a_unit() {
        assert_eq!(duration_with_unit("2h"), Ok(Duration::from_secs(7200)));
        for bare in ["2", " 0 "] {
            assert!(duration_with_unit(bare).is_err_and(|told| told.contains("add a unit")), "{bare}");
        }
    }
}
